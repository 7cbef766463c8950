"""Measure the pages of a long session: `python -m bench.view`.

A session of 50 MB is made: prompts, prose with lists and code, edits, commands and large outputs, as in real
transcripts of this size. The first page, a page in the middle, an opened call, the outline and a search in the session
are requested alternately with a bare Starlette page, so that the ratios of CPU time hold on other machines. The cache
of rendered Markdown is emptied before each request.
"""

import argparse
import random
import re
import resource
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final

import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

from palaver.archiver.copies.raw_copy import RawArchive
from palaver.archiver.ingest.ingest import Ingest
from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.store import Store
from palaver.core.home import Home
from palaver.observe.archive import Archive
from palaver.viewer import markdown_html, session_pages
from palaver.viewer.pages import Pages

from .stopwatch import Took, machine_load, took
from .table import table, write_section

_SESSION: Final = "11111111-0000-4000-8000-000000000001"
_SIZE: Final = 50 << 20
_RUNS: Final = 15
_WORDS: Final = (
    "the cart total rounds each item before the sum so that a page shows one cent less than a receipt".split()
)
_PAGES: Final = {
    "bare Starlette page": "/bare",
    "first page": f"/view/sessions/{_SESSION}",
    "last page": f"/view/sessions/{_SESSION}?end=1",
    "page in the middle": f"/view/sessions/{_SESSION}?line=7500",
    "opened call": f"/view/sessions/{_SESSION}/call?part=1&line={{call}}&position=0&call=0&fragment=1",
    "poll without news": f"/view/sessions/{_SESSION}/after?part=1&line=1&known=999999999&fragment=1",
    "outline": f"/view/sessions/{_SESSION}/outline?fragment=1",
    "find": f"/view/sessions/{_SESSION}/find?q=receipt+of+77",
    "token usage": f"/view/sessions/{_SESSION}/tokens?fragment=1",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the pages and print the table. `--write` updates RESULTS.md."""
    parser = argparse.ArgumentParser(prog="python -m bench.view", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the table to bench/RESULTS.md")
    chosen = parser.parse_args(arguments)
    with TemporaryDirectory(prefix="palaver-bench-") as folder:
        text = _measured(Path(folder))
    print(text)
    if chosen.write:
        write_section("Session page", f"`python -m bench.view --write`; {machine_load()}\n\n{text}")
    return 0


def _measured(folder: Path) -> str:
    home = _archived(folder)
    archive = Archive(home)
    app = Starlette(routes=[Mount("/view", routes=session_pages.routes), Route("/bare", _bare)])
    app.state.pages = Pages(archive, "token", "bench")
    with TestClient(app) as client:
        middle = client.get(_PAGES["page in the middle"]).text
        call = re.search(r"line=(\d+)&amp;position=0&amp;call=0", middle)
        assert call is not None
        paths = {name: path.format(call=call[1]) for name, path in _PAGES.items()}
        times: dict[str, list[Took]] = {name: [] for name in paths}
        answers: dict[str, Response] = {}
        for _ in range(_RUNS):
            for name, path in paths.items():
                markdown_html.forget_rendered()

                def request(name: str = name, path: str = path) -> None:
                    answers[name] = client.get(path)  # type: ignore[assignment]

                times[name].append(took(request))
    return _table(times, {name: answer.text for name, answer in answers.items()})  # type: ignore[attr-defined]


def _table(times: dict[str, list[Took]], texts: dict[str, str]) -> str:
    bare = median(each.cpu for each in times["bare Starlette page"])
    rows = list[tuple[str, ...]]()
    for name, taken in times.items():
        cpu, wall = median(each.cpu for each in taken), median(each.wall for each in taken)
        elements = len(re.findall(r"<[a-z]", texts[name]))
        size = len(texts[name].encode()) / 1000
        rows.append(
            (name, f"{cpu * 1000:.1f}", f"{cpu / bare:.1f}", f"{wall * 1000:.1f}", f"{size:.0f}", f"{elements:,}")
        )
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    header = ("Page", "CPU ms", "ratio", "wall ms", "kB", "elements")
    return f"{table(header, rows)}\n\nPeak memory with ingest: {memory:.0f} MB"


async def _bare(_: Request) -> Response:
    return PlainTextResponse("Hello")


def _archived(folder: Path) -> Home:
    path = folder / "projects" / "shop" / f"{_SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        for record in _records():
            file.write(orjson.dumps(record) + b"\n")
            if file.tell() > _SIZE:
                break
    home = Home(folder / "home")
    home.make()
    with Store.create(home.database) as store:
        Ingest(store, RawArchive(home.archive)).run(in_paths([folder / "projects"]))
    return home


def _records() -> Iterator[dict[str, Any]]:
    """Yield the records of an endless session."""
    source, number = random.Random(32), 0

    def record(kind: str, content: object, **fields: object) -> dict[str, Any]:
        nonlocal number
        number += 1
        minute, second = divmod(number, 60)
        usage = {"input_tokens": 4, "output_tokens": number % 900, "cache_read_input_tokens": 50_000 + number}
        message = {"role": kind, "content": content, "id": f"msg-{number}", "model": "model-1", "usage": usage}
        time = f"2026-03-{1 + minute // 1440:02}T{minute // 60 % 24:02}:{minute % 60:02}:{second:02}.000Z"
        return {
            "type": kind, "message": message, "uuid": f"{number:08x}-0000-4000-8000-000000000000", "timestamp": time,
            "sessionId": _SESSION, "cwd": "/code/shop", "requestId": f"req-{number}", **fields,
        }  # fmt: skip

    def words(count: int) -> str:
        return " ".join(source.choices(_WORDS, k=count))

    prompt = 0
    while True:
        prompt += 1
        yield record("user", f"Prompt {prompt}: {words(30)} receipt of {prompt}")
        for step in range(source.randint(8, 40)):
            prose = f"{words(25).capitalize()}.\n\n- `{words(2)}` {words(8)}\n- **{words(2)}** {words(9)}"
            code = "\n\n```python\ndef total(items):\n    return sum(items)\n```" if step % 5 == 0 else ""
            yield record("assistant", [{"type": "text", "text": prose + code}])
            for call in range(source.randint(1, 4)):
                yield from _call(record, words, f"toolu-{prompt}-{step}-{call}", call)


def _call(record: Any, words: Any, name: str, call: int) -> Iterator[dict[str, Any]]:
    path = f"/code/shop/src/file{call}.py"
    if call % 2:
        arguments: dict[str, str] = {
            "file_path": path,
            "old_string": words(60),
            "new_string": f"{words(60)}\n{words(9)}",
        }
        extra: dict[str, Any] = {"filePath": path, "structuredPatch": [], "originalFile": words(500)}
        tool, output = "Edit", "The file was updated."
    else:
        arguments, extra = {"command": "make test | tail -40", "description": words(5)}, {"stdout": words(900)}
        tool, output = "Bash", words(900)
    yield record("assistant", [{"type": "tool_use", "id": name, "name": tool, "input": arguments}])
    block = {"type": "tool_result", "tool_use_id": name, "content": output}
    yield record("user", [block], toolUseResult=extra)


if __name__ == "__main__":
    sys.exit(main())
