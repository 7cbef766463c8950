"""`python -m bench.ceilings`: how much memory the archiver needs at most, for sessions larger than any we have seen."""

import argparse
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from palaver.archiver.store import Store
from palaver.core.home import Home

from .speed.process import PALAVER, Place, run
from .table import table, write_section

_CEILING = 600
"""Megabytes of resident memory, stated in README.md."""
_SESSION = "33333333-0000-4000-8000-000000000003"
_WORDS = "archive index lease store line query token frame cache branch deploy invoice retry timeout".split()


@dataclass(frozen=True, slots=True)
class Case:
    """A made-up session: what it is, its size in megabytes, and one line of that many megabytes in its middle."""

    name: str
    size: int
    line: int = 0


CASES = (Case("a session of 500 MB", 500), Case("a session of 100 MB with a line of 20 MB", 100, line=20))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and with `--write` keep the table in RESULTS.md."""
    parser = argparse.ArgumentParser(prog="python -m bench.ceilings", description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the table in bench/RESULTS.md")
    chosen = parser.parse_args(arguments)
    rows: list[list[str]] = []
    for case in CASES:
        seconds, peak = measure(case)
        rows.append([case.name, f"{peak:.0f} MB", f"{_CEILING} MB", f"{seconds:.0f} s"])
        print(" ".join(rows[-1]), file=sys.stderr)
    text = table(["`palaver archive` of", "peak memory", "ceiling", "time"], rows)
    print(text)
    if chosen.write:
        write_section("Ceilings", f"`python -m bench.ceilings --write`\n\n{text}")
    return 0


def measure(case: Case) -> tuple[float, float]:
    """Seconds and peak megabytes of archiving this session in a fresh home, all stages."""
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
                raise RuntimeError(f"{case.name} was not taken up whole")
    return finished.seconds, finished.peak


def session(case: Case) -> Iterator[bytes]:
    """The lines of a session of this size: each exchange asks, works with thirty tools, and answers."""
    chance, size, number, long = random.Random(1), 0, 0, case.line
    while size < case.size * 1_000_000:
        number += 1
        if long and size > case.size * 500_000:
            output, long = 1_000_000 * long, 0
        else:
            output = 0
        for line in _exchange(chance, number, output):
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
