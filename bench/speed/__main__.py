"""Measure the speed of the command line with 98 real sessions, compared with baselines: `python -m bench.speed`."""

import argparse
import sys
from collections.abc import Sequence

from ..shared import SetMissing
from ..table import table, write_section
from .measures import Measure, measures


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print. With `--write`, update RESULTS.md. A missing development set is reported."""
    parser = argparse.ArgumentParser(prog="python -m bench.speed", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the table to bench/RESULTS.md")
    chosen = parser.parse_args(arguments)
    rows: list[list[str]] = []
    try:
        for measure in measures():
            rows.append(_row(measure))
            print(" ".join(rows[-1]), file=sys.stderr)
    except SetMissing as missing:
        print(f"speed: {missing}")
        return 0
    text = table(["measure", "Palaver", "baseline", "ratio", "target", "baseline task"], rows)
    print(text)
    if chosen.write:
        write_section("Speed", f"`python -m bench.speed --write`\n\n{text}")
    return 0


def _row(measure: Measure) -> list[str]:
    if measure.baseline is None:
        return [measure.name, _show(measure.ours, measure.unit), "", "", measure.target, measure.task]
    ratio = f"{measure.ours / measure.baseline:.1f}"
    shown = [_show(seconds, measure.unit) for seconds in (measure.ours, measure.baseline)]
    return [measure.name, *shown, ratio, measure.target, measure.task]


def _show(value: float, unit: str) -> str:
    return f"{value * 1000:.1f} ms" if unit == "s" and value < 1 else f"{value:.1f} {unit}"


if __name__ == "__main__":
    sys.exit(main())
