"""`python -m bench.scale`: build and ask made-up archives, each ten times the one before."""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from palaver.search.embedder import Embedder, load

from ..shared import SetMissing
from ..table import table, write_section
from .material import Material
from .measures import Row, measures

_QUESTIONS = 200


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and with `--write` keep the table in RESULTS.md."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the table in bench/RESULTS.md")
    parser.add_argument("--items", type=int, nargs="+", default=[10_000, 100_000], help="the sizes, in order")
    chosen = parser.parse_args(arguments)
    embedder = load()
    try:
        material = Material.real(embedder)
    except SetMissing as missing:
        print(f"scale: {missing}")
        return 0
    columns = [_measured(items, material, embedder) for items in chosen.items]
    header = ["measure", *(f"{items:,} items" for items in chosen.items), "growth"]
    text = table(header, [_line([column[place] for column in columns]) for place in range(len(columns[0]))])
    print(text)
    if chosen.write:
        sizes = " ".join(map(str, chosen.items))
        said = f"`python -m bench.scale --write --items {sizes}`\n\nCells: median / 99th percentile; growth is from the"
        write_section("Scale", f"{said} second last\nsize to the last.\n\n{text}")
    return 0


def _measured(items: int, material: Material, embedder: Embedder) -> list[Row]:
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for row in measures(Path(folder) / "home", items, _QUESTIONS, partial(_progress, items), material, embedder):
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
    if not row.unit:
        return f"{row.value:.3f}"
    tail = "" if row.p99 is None else f" / {row.p99:.1f}"
    return f"{row.value:.1f}{tail} {row.unit}"


def _show(text: str) -> None:
    print(f"\r{text}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
