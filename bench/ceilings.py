"""Measure peak memory of archiver and server, and the size of the index: `python -m bench.ceilings`.

The archiver reads very large synthetic sessions. The other measures use the 98 real sessions.
"""

import argparse
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import orjson
from msgspec import Struct

from palaver.archiver.copies.raw_copy import RawArchive
from palaver.archiver.copies.verification import CopyCompressor
from palaver.archiver.ingest.ingest import Ingest
from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.store import Store
from palaver.core.home import Home
from palaver.search.archive_search import ArchiveSearch
from palaver.search.index.generation import Generations

from . import shared
from .speed.process import PALAVER, Client, Place, run
from .table import table, write_section

_ARCHIVER = 600
"""Maximum resident memory of the archiver in megabytes. README.md states all limits."""
_SERVER, _SEARCHED = 120, 250
"""Maximum resident memory of a server in megabytes before and after the first semantic search."""
_INDEX = 1.5
"""Maximum ratio of the size of the index to the size of the compressed archive."""
_READ = 100
"""Maximum milliseconds for reading 100 lines in the middle of a session of 100 MB."""
_READING_HEAD = ["100 lines from the middle of", "uncompressed", "compressed", "limit"]
_LONG_AGO = 1_700_000_000
_SESSION = "33333333-0000-4000-8000-000000000003"
_WORDS = "archive index lease store line query token frame cache branch deploy invoice retry timeout".split()


class Case(Struct, frozen=True):
    """Synthetic session: name, and size in megabytes of the session and of one long line in its middle."""

    name: str
    size: int
    line: int = 0


CASES = (Case("a session of 500 MB", 500), Case("a session of 100 MB with a line of 20 MB", 100, line=20))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print. With `--write`, update RESULTS.md."""
    parser = argparse.ArgumentParser(prog="python -m bench.ceilings", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the table to bench/RESULTS.md")
    parser.add_argument("--reading", action="store_true", help="measure only reading from the middle of a session")
    chosen = parser.parse_args(arguments)
    if chosen.reading:
        print(table(_READING_HEAD, reading()))
        return 0
    rows: list[list[str]] = []
    for case in CASES:
        seconds, peak = measure(case)
        rows.append([case.name, f"{peak:.0f} MB", f"{_ARCHIVER} MB", f"{seconds:.0f} s"])
        print(" ".join(rows[-1]), file=sys.stderr)
    text = table(["`palaver archive` of", "peak memory", "limit", "time"], rows)
    try:
        text += "\n\n" + table(["98 real sessions", "measured", "limit"], footprint())
    except shared.SetMissing as missing:
        print(missing, file=sys.stderr)
    text += "\n\n" + table(_READING_HEAD, reading())
    print(text)
    if chosen.write:
        write_section("Ceilings", f"`python -m bench.ceilings --write`\n\n{text}")
    return 0


def measure(case: Case) -> tuple[float, float]:
    """Archive a session in a new home and return the seconds and the peak memory in megabytes."""
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder) / "home" / "palaver", Path(folder) / "user" / ".claude")
        place.home.parent.mkdir()
        path = place.history / "projects" / "-home-demo-shop" / f"{_SESSION}.jsonl"
        path.parent.mkdir(parents=True)
        with path.open("wb") as file:
            file.writelines(session(case))
        finished = run((*PALAVER, "archive"), place)
        with path.open("rb") as file, Store.open(Home(place.home).database) as store:
            if store.sources.totals()[:3] != (1, path.stat().st_size, sum(1 for _ in file)):
                raise RuntimeError(f"{case.name} was not archived completely")
    return finished.seconds, finished.peak


def footprint() -> list[list[str]]:
    """Return rows with the memory of a server and the size of the index for the real sessions. Raises `SetMissing`."""
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder) / "home" / "palaver", Path(folder) / "user" / ".claude")
        place.home.parent.mkdir()
        for path in shared.unpack(shared.transcripts(), place.history.parent):
            os.utime(path, (_LONG_AGO, _LONG_AGO))
        run((*PALAVER, "archive"), place)
        before, after = serving(place)
        index, archive = sizes(Home(place.home))
    return [
        ["`palaver mcp`, after a text search", f"{before:.0f} MB", f"{_SERVER} MB"],
        ["`palaver mcp`, after a semantic search", f"{after:.0f} MB", f"{_SEARCHED} MB"],
        ["index size / size of the compressed archive", f"{index / archive:.2f}", f"{_INDEX}"],
    ]


def reading() -> list[list[str]]:
    """Return rows with the median time of reading 100 lines, by storage format and size of the exchanges."""
    rows: list[list[str]] = []
    for name, single in (("many exchanges", False), ("one exchange", True)):
        with tempfile.TemporaryDirectory() as folder:
            home, path = Home(Path(folder) / "palaver"), Path(folder) / "projects" / "-shop" / f"{_SESSION}.jsonl"
            home.make()
            path.parent.mkdir(parents=True)
            with path.open("wb") as file:
                file.writelines(session(Case(name, 100), single=single))
            os.utime(path, (_LONG_AGO, _LONG_AGO))
            with Store.create(home.database) as store:
                raw = RawArchive(home.archive)
                Ingest(store, raw).run(in_paths([path]))
                plain = _reading(home)
                CopyCompressor(store, raw).run(budget=float("inf"))
            rows.append([f"100 MB in {name}", f"{plain:.0f} ms", f"{_reading(home):.0f} ms", f"{_READ} ms"])
    return rows


def _reading(home: Home) -> float:
    """Return the median milliseconds of reading 100 lines at different positions, after a warm-up."""
    with ArchiveSearch(home) as layers, Store.open(home.database) as store:
        [source] = store.sources.all()
        times: list[float] = []
        for start in range(source.lines // 2, source.lines // 2 + 1_100, 100):
            began = time.perf_counter()
            layers.read(source.archived, start, start + 99)
            times.append((time.perf_counter() - began) * 1_000)
        return statistics.median(times[1:])


def serving(place: Place) -> tuple[float, float]:
    """Return the peak memory of a server in megabytes after a text search, and after a semantic search."""
    command, pipe = (*PALAVER, "mcp"), subprocess.PIPE
    with subprocess.Popen(command, env=place.environment, stdin=pipe, stdout=pipe) as program:
        assert program.stdin
        assert program.stdout
        client = Client(program.stdin, program.stdout)
        client.initialize()
        client.request("tools/list", {})
        peaks = list[float]()
        for mode in ("text", "both"):
            client.request(
                "tools/call", {"name": "search", "arguments": {"query": "why did the build fail", "mode": mode}}
            )
            peaks.append(_peak(program.pid))
        program.stdin.close()
    return peaks[0], peaks[1]


def _peak(number: int) -> float:
    """Return the peak resident memory of a process in megabytes. This works only on Linux."""
    status = Path(f"/proc/{number}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found
    return int(found[1]) / 1024


def sizes(home: Home) -> tuple[int, int]:
    """Return the bytes of the published index and of the compressed archive."""
    with Store.open(home.database) as store:
        CopyCompressor(store, RawArchive(home.archive)).run(budget=float("inf"))
    generation = Generations(home.index).current()
    assert generation
    index = sum(size for size, _ in generation.manifest.files.values())
    return index, sum(path.stat().st_size for path in home.archive.rglob("*") if path.is_file())


def session(case: Case, *, single: bool = False) -> Iterator[bytes]:
    """Yield the lines of a session.

    Exchanges have thirty tool calls each. With `single`, there is only one exchange.
    """
    chance, size, number, long = random.Random(1), 0, 0, case.line
    while size < case.size * 1_000_000:
        number += 1
        if long and size > case.size * 500_000:
            output, long = 1_000_000 * long, 0
        else:
            output = 0
        for line in islice(_exchange(chance, number, output), 1 if single and number > 1 else 0, None):
            size += len(line)
            yield line


def _exchange(chance: random.Random, number: int, output: int) -> Iterator[bytes]:
    place = {"sessionId": _SESSION, "cwd": "/home/demo/shop", "timestamp": "2026-03-01T10:00:00.000Z"}

    def line(role: str, content: object, part: str) -> bytes:
        message = {"role": role, "content": content, "id": f"m{number}-{part}", "model": "model-1"}
        return orjson.dumps({"type": role, "message": message, "uuid": f"{number}-{part}", **place}) + b"\n"

    yield line("user", _prose(chance, 40), "asked")
    yield line("assistant", [{"type": "text", "text": _prose(chance, 30)}], "began")
    for step in range(30):
        call = {"type": "tool_use", "id": f"t{number}-{step}", "name": "Read", "input": {"file_path": f"src/{step}.py"}}
        yield line("assistant", [call], f"call{step}")
        text = _prose(chance, chance.choice((50, 500, 3000)) if step or not output else output // 7)
        yield line("user", [{"type": "tool_result", "tool_use_id": f"t{number}-{step}", "content": text}], f"got{step}")
    yield line("assistant", [{"type": "text", "text": _prose(chance, 120)}], "answered")


def _prose(chance: random.Random, words: int) -> str:
    return " ".join(chance.choices(_WORDS, k=words))


if __name__ == "__main__":
    sys.exit(main())
