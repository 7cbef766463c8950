"""Measure the command line over 98 real sessions as ratios to bare work: `python -m bench.speed`."""

import argparse
import sys
from collections.abc import Sequence

from ..shared import SetMissing
from ..table import table, write_section
from .measures import Measure, measures


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; `--write` updates RESULTS.md. A missing set is named."""
    parser = argparse.ArgumentParser(prog="python -m bench.speed", description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the table in bench/RESULTS.md")
    chosen = parser.parse_args(arguments)
    rows: list[list[str]] = []
    try:
        for measure in measures():
            rows.append(_row(measure))
            print(" ".join(rows[-1]), file=sys.stderr)
    except SetMissing as missing:
        print(f"speed: {missing}")
        return 0
    text = table(["measure", "Palaver", "bare work", "ratio", "aim", "what the bare work is"], rows)
    print(text)
    if chosen.write:
        write_section("Speed", f"`python -m bench.speed --write`\n\n{text}")
    return 0


def _row(measure: Measure) -> list[str]:
    if measure.bare is None:
        return [measure.name, _show(measure.ours, measure.unit), "", "", measure.aim, measure.against]
    ratio = f"{measure.ours / measure.bare:.1f}"
    shown = [_show(seconds, measure.unit) for seconds in (measure.ours, measure.bare)]
    return [measure.name, *shown, ratio, measure.aim, measure.against]


def _show(value: float, unit: str) -> str:
    return f"{value * 1000:.1f} ms" if unit == "s" and value < 1 else f"{value:.1f} {unit}"


if __name__ == "__main__":
    sys.exit(main())
