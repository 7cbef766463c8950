"""Steps of a measurement. Each step runs in a separate process, so that its peak memory is separate, too."""

import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TypeAlias

from palaver.search.model.embedder import load

from .building import build
from .material import Material
from .measures import ask, live
from .row import Row

_QUESTIONS = 200
Step: TypeAlias = Callable[[Path, int], Sequence[Row]]
"""Function that takes the folder of an archive and its number of items, and returns rows. Raises `SetMissing`."""


def run(steps: Sequence[Step], folder: Path, items: int) -> list[Row]:
    """Run the steps and return their rows."""
    rows: list[Row] = []
    for step in steps:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            rows += process.submit(step, folder, items).result()
    return rows


def build_archive(folder: Path, items: int) -> Sequence[Row]:
    """Build the archive and measure the build."""
    embedder = load()
    return _collected(items, build(folder, items, partial(_progress, items), Material.real(embedder), embedder))


def add_live_session(folder: Path, items: int) -> Sequence[Row]:
    """Add a session to the archive and measure its publication."""
    embedder = load()
    return _collected(items, live(folder, Material.real(embedder), embedder))


def measure_searches(folder: Path, items: int) -> Sequence[Row]:
    """Search the archive and measure the searches."""
    embedder = load()
    return _collected(items, ask(folder, _QUESTIONS, Material.real(embedder), embedder))


def _collected(items: int, rows: Iterable[Row]) -> list[Row]:
    every: list[Row] = []
    for row in rows:
        every.append(row)
        _show(f"{items:,} items: {row.name.strip()}: {row}\n")
    return every


def _progress(items: int, done: int) -> None:
    if sys.stderr.isatty():
        _show(f"{done:,} of {items:,} items")


def _show(text: str) -> None:
    print(f"\r{text}", end="", file=sys.stderr, flush=True)
