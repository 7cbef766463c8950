"""Measure the indexing of source trees until they are searchable: `python -m bench.code [FOLDER ...]`. Linux only.

Without a folder, the standard library of this Python is indexed.
"""

import argparse
import os
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from palaver.archiver.store import Store
from palaver.core.home import Home
from palaver.observe.archive import Archive
from palaver.search.index.generation import Generations

from .speed.process import PALAVER, Place, compile_modules
from .stopwatch import machine_load, took
from .table import table, write_section

_OFTEN = 0.05
"""Interval between two checks of the processes, in seconds."""
_TICKS = os.sysconf("SC_CLK_TCK")
_HEADING = ["tree", "files", "chunks", "files/s", "CPU s", "files/CPU s", "peak MB", "again s", "changes again"]


class TreeRun(Struct):
    """Indexing of one tree until its text is searchable: seconds, CPU seconds and peak memory of all processes."""

    seconds: float = 0.0
    cpu: float = 0.0
    peak: float = 0.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one row for each tree."""
    parser = argparse.ArgumentParser(prog="python -m bench.code", description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, default=[Path(sysconfig.get_path("stdlib"))])
    parser.add_argument("--write", action="store_true", help="update RESULTS.md")
    given = parser.parse_args(arguments)
    compile_modules()
    body = table(_HEADING, [_row(folder.resolve()) for folder in given.folders]) + f"\n\n{machine_load()}."
    print(body)
    if given.write:
        write_section("Code", f"`python -m bench.code --write`\n\n{body}")
    return 0


def _row(tree: Path) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder) / "home" / "palaver", Path(folder) / "none")
        place.home.parent.mkdir()
        first = _until_searchable(tree, place)
        with Store.open(place.home / "palaver.db") as store:
            files = store.documents.files()
            before = store.changes.last()
        with Archive(Home(place.home)).documents([tree]) as documents:
            again = took(lambda: documents.index_directory(tree, documents.namespace_of(tree))).wall
        with Store.open(place.home / "palaver.db") as store:
            changes = store.changes.last() - before
    count = len(files)
    chunks = sum(file.chunks for file in files)
    rates = (f"{count / first.seconds:.0f}", f"{first.cpu:.1f}", f"{count / first.cpu:.0f}")
    return [tree.name, f"{count:,}", f"{chunks:,}", *rates, f"{first.peak:.0f}", f"{again:.1f}", str(changes)]


def _until_searchable(tree: Path, place: Place) -> TreeRun:
    """Run `palaver index` until the first index is published, then kill it.

    Raises:
        RuntimeError: The program ended before that.
    """
    found, started = TreeRun(), time.perf_counter()
    command = (*PALAVER, "index", str(tree))
    with subprocess.Popen(command, env=place.environment, stdout=subprocess.DEVNULL) as program:
        while not Generations(Home(place.home).index).name():
            if program.poll() is not None:
                raise RuntimeError(f"{' '.join(command)} ended early with exit status {program.returncode}")
            usage = [_usage(number) for number in _family(program.pid)]
            found.cpu = max(found.cpu, sum(cpu for cpu, _ in usage))
            found.peak = max(found.peak, sum(memory for _, memory in usage))
            time.sleep(_OFTEN)
        found.seconds = time.perf_counter() - started
        program.kill()
    return found


def _family(number: int) -> Iterator[int]:
    """Yield a process and its descendants."""
    yield number
    try:
        for children in Path(f"/proc/{number}/task").glob("*/children"):
            for child in children.read_text().split():
                yield from _family(int(child))
    except OSError:  # The process has ended.
        return


def _usage(number: int) -> tuple[float, float]:
    """Return the CPU seconds of a process, with those of its ended children, and its resident megabytes."""
    try:
        fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0, 0.0
    pages = int(fields[21])
    return sum(map(int, fields[11:15])) / _TICKS, pages * os.sysconf("SC_PAGE_SIZE") / 2**20


if __name__ == "__main__":
    raise SystemExit(main())
