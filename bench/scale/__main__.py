"""Measure ingest, indexing and search in synthetic archives of several sizes: `python -m bench.scale`."""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from ..shared import SetMissing
from ..stopwatch import machine_load
from ..table import table, write_section
from .row import Row
from .steps import add_live_session, build_archive, measure_searches, run

_MIN_GROWTH_BASE = 0.1


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print. With `--write`, update RESULTS.md."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("--items", type=int, nargs="+", default=[10_000, 100_000], help="numbers of items")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep and reuse archives in FOLDER")
    parser.add_argument("--build", action="store_true", help="only build the archives in FOLDER")
    parser.add_argument("--write", action="store_true", help="write the table to bench/RESULTS.md")
    chosen = parser.parse_args(arguments)
    if chosen.build and (chosen.write or not chosen.keep):
        parser.error("--build requires --keep and excludes --write")
    steps = [build_archive] if chosen.build else [build_archive, add_live_session, measure_searches]
    try:
        with tempfile.TemporaryDirectory() if chosen.keep is None else nullcontext(chosen.keep) as folder:
            columns = [run(steps, Path(folder) / str(items), items) for items in chosen.items]
    except SetMissing as missing:
        print(f"scale: {missing}")
        return 0
    text = _table(chosen.items, columns)
    print(text)
    if chosen.write:
        sizes = " ".join(map(str, chosen.items))
        write_section("Scale", f"`python -m bench.scale --write --items {sizes}`; {machine_load()}\n\n{text}")
    return 0


def _table(sizes: Sequence[int], columns: Sequence[Sequence[Row]]) -> str:
    header = ["measure", *(f"{items:,} items" for items in sizes), "growth"]
    return table(header, [_line(list(rows)) for rows in zip(*columns, strict=True)])


def _line(rows: Sequence[Row]) -> list[str]:
    return [rows[0].name, *map(str, rows), _growth(*rows[-2:]) if len(rows) > 1 else ""]


def _growth(before: Row, after: Row) -> str:
    """Return the growth factor, or an empty string for shares and for values too small to compare."""
    if not before.unit or before.figures[-1] < _MIN_GROWTH_BASE:
        return ""
    return f"{after.figures[-1] / before.figures[-1]:.1f} x"


if __name__ == "__main__":
    sys.exit(main())
