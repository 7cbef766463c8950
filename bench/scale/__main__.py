"""Build and search synthetic archives of growing size: `python -m bench.scale`."""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from ..shared import SetMissing
from ..stopwatch import crowd
from ..table import table, write_section
from .row import Row
from .steps import asking, building, living, run

_SOME = 0.1


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; `--write` updates RESULTS.md."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("--items", type=int, nargs="+", default=[10_000, 100_000], help="the sizes, in order")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep archives here, and ask those that are there")
    parser.add_argument("--build", action="store_true", help="build what is to be kept, and ask nothing")
    parser.add_argument("--write", action="store_true", help="keep the table in bench/RESULTS.md")
    chosen = parser.parse_args(arguments)
    if chosen.build and (chosen.write or not chosen.keep):
        parser.error("--build needs --keep, and has nothing to --write")
    steps = [building] if chosen.build else [building, living, asking]
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
        write_section("Scale", f"`python -m bench.scale --write --items {sizes}`; {crowd()}\n\n{text}")
    return 0


def _table(sizes: Sequence[int], columns: Sequence[Sequence[Row]]) -> str:
    header = ["measure", *(f"{items:,} items" for items in sizes), "growth"]
    return table(header, [_line(list(rows)) for rows in zip(*columns, strict=True)])


def _line(rows: Sequence[Row]) -> list[str]:
    return [rows[0].name, *map(str, rows), _growth(*rows[-2:]) if len(rows) > 1 else ""]


def _growth(before: Row, after: Row) -> str:
    """Return the growth factor, or an empty text for shares and zero times."""
    if not before.unit or before.figures[-1] < _SOME:
        return ""
    return f"{after.figures[-1] / before.figures[-1]:.1f} x"


if __name__ == "__main__":
    sys.exit(main())
