"""`python -m bench.scale`: build and ask made-up archives, each ten times the one before."""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ..table import table, write_section
from .measures import Row, measures

_QUESTIONS = 200


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and with `--write` keep the table in RESULTS.md."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the table in bench/RESULTS.md")
    parser.add_argument("--items", type=int, nargs="+", default=[10_000, 100_000], help="the sizes, in order")
    chosen = parser.parse_args(arguments)
    columns = [_measured(items) for items in chosen.items]
    header = ["measure", *(f"{items:,} items" for items in chosen.items), "growth"]
    text = table(header, [_line([column[place] for column in columns]) for place in range(len(columns[0]))])
    print(text)
    if chosen.write:
        write_section("Scale", f"`python -m bench.scale --write`\n\nCells: median / 99th percentile.\n\n{text}")
    return 0


def _measured(items: int) -> list[Row]:
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for row in measures(Path(folder) / "home", items, _QUESTIONS, partial(_progress, items)):
            rows.append(row)
            _show(f"{items:,} items: {row.name.strip()}: {_cell(row)}\n")
    return rows


def _progress(items: int, done: int) -> None:
    if sys.stderr.isatty():
        _show(f"{done:,} of {items:,} items")


def _line(rows: Sequence[Row]) -> list[str]:
    growth = f"{rows[-1].value / rows[-2].value:.1f} x" if len(rows) > 1 else ""
    return [rows[0].name, *map(_cell, rows), growth]


def _cell(row: Row) -> str:
    tail = "" if row.p99 is None else f" / {row.p99:.1f}"
    return f"{row.value:.1f}{tail} {row.unit}".strip()


def _show(text: str) -> None:
    print(f"\r{text}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
