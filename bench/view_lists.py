"""Measure the list pages of the viewer on a synthetic archive of 5,000 sessions: `python -m bench.view_lists`.

Each page is requested in this process, behind the gate. CPU times are compared with those of a bare Starlette page.
"""

import asyncio
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import numpy as np
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from palaver.agents.loopback_server import App, Message
from palaver.archiver.store import Source, Store
from palaver.core.conversation import Exchange, Kind, Session, Span, Speaker, Turn
from palaver.core.home import Home
from palaver.core.observation import OPEN, OUTCOME, SUMMARY, Evidence, Observation, ObservationType
from palaver.core.query import Query
from palaver.observe.archive import Archive
from palaver.search.index.generation import Generations
from palaver.search.index.indexer import Indexer
from palaver.search.model.embedder import DEFAULT_MODEL, load
from palaver.viewer.app import viewer_app
from palaver.viewer.gate import Access

from .table import table

SESSIONS, EXCHANGES, RUNS = 5_000, 10, 15
_START, _HOUR = 1_770_000_000_000, 3_600_000
_WORDS = "parser index cache token merge branch login schema retry timeout header queue worker render layout".split()
_QUERY = "cache of the parser"
PAGES = (
    "/",
    "/open",
    "/files?path=file7.py",
    "/sessions",
    "/sessions?page=60",
    "/sessions?edited=file7.py",
    "/sessions?ending=no+final+reply",
    "/observations",
    "/memories",
    "/archive",
)


class Writer:
    """Writer of sessions with exchanges, edits and a card."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(7)

    def fill(self, store: Store, sessions: int) -> None:
        """Write a number of sessions, fifty in a transaction."""
        for first in range(0, sessions, 50):
            with store.transaction():
                for number in range(first, min(first + 50, sessions)):
                    self._session(store, number)

    def _session(self, store: Store, number: int) -> None:
        at = _START + number * _HOUR
        session = Session(
            "claude-code",
            f"{number:08x}-0000-4000-8000-000000000000",
            project=f"/src/project{number % 40}",
            cwd=f"/src/project{number % 40}",
            branch=f"topic-{number % 300}",
            title=self._words(6),
            title_rank=5,
            models=[f"model-{number % 4}"],
            started=at,
            ended=at + 40 * 60_000,
        )
        key = store.sessions.save(session)
        name = f"synthetic/{number}.jsonl"
        source = store.sources.save(Source("claude-code", Path("/") / name, name, 0, 0, 0, 0, b"", b"", session=key))
        exchanges = [self._exchange(ordinal, at + ordinal * 60_000) for ordinal in range(EXCHANGES)]
        store.exchanges.replace(key, source, 0, exchanges)
        [first, *_] = store.exchanges.in_source(source)
        store.edits.replace(first, [f"/src/project{number % 40}/file{number % 100}.py"])
        facts = (f"{OUTCOME}{self._words(9)}", f"{OPEN}{self._words(9)}")
        card = Observation(ObservationType.GENERAL, SUMMARY + self._words(6), facts=facts, at=at, extractor="bench-1")
        store.observations.replace(first, key, [self._observation(at)], "bench-1")
        store.summaries.put(key, first, card)

    def _exchange(self, ordinal: int, at: int) -> Exchange:
        line = 2 * ordinal + 1
        turns = (
            Turn(line, Speaker.HUMAN, Kind.PROMPT, self._words(20), at),
            Turn(line + 1, Speaker.ASSISTANT, Kind.PROSE, self._words(100), at + 30_000),
        )
        return Exchange(ordinal, Span(line, line + 1, 0, 0), turns, at, at + 30_000, tokens_in=9_000, tokens_out=700)

    def _observation(self, at: int) -> Observation:
        return Observation(
            ObservationType.FEATURE,
            self._words(8),
            narrative=self._words(40),
            evidence=(Evidence(1, 2, "quote"),),
            at=at,
            extractor="bench-1",
        )

    def _words(self, count: int) -> str:
        positions: list[int] = self._random.integers(len(_WORDS), size=count).tolist()
        return " ".join(_WORDS[position] for position in positions)


def build(home: Home, sessions: int) -> None:
    """Write a synthetic archive, and publish its text index. The items have no vectors."""
    home.make()
    with Store.create(home.database) as store:
        Writer().fill(store, sessions)
        Indexer(store, Generations(home.index), load(DEFAULT_MODEL)).publish()


async def _get(app: App, access: Access, path: str) -> int:
    """Request a page as the browser does, and return its size in bytes."""
    target, _, query = path.partition("?")
    headers = [(b"host", access.authority.encode()), (b"cookie", f"{access.cookie_name}={access.cookie}".encode())]
    scope = {"type": "http", "method": "GET", "path": target, "query_string": query.encode(), "headers": headers}
    size, status = 0, 0

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        nonlocal size, status
        size += len(message.get("body", b""))
        status = message.get("status", status)

    await app({**scope, "root_path": "", "raw_path": target.encode()}, receive, send)
    assert status == 200, (path, status)
    return size


async def _measured(app: App, access: Access, path: str) -> tuple[float, int]:
    """Return the median CPU time of a page in milliseconds, and its size."""
    size, times = await _get(app, access, path), list[float]()
    for _ in range(RUNS):
        start = time.process_time()
        await _get(app, access, path)
        times.append((time.process_time() - start) * 1000)
    return median(times), size


async def _rows(home: Home) -> list[Sequence[str]]:
    def bare(_: Request) -> Response:
        return HTMLResponse("<p>page")

    access = Access("localhost", 1)
    plain, _ = await _measured(Starlette(routes=[Route("/", bare)]), access, "/")
    rows: list[Sequence[str]] = [("bare Starlette page", f"{plain:.1f}", "1", "")]
    app = viewer_app(Archive(home), access, "bench", lambda: None)
    for page in PAGES:
        spent, size = await _measured(app, access, f"/view{page}")
        rows.append((page, f"{spent:.1f}", f"{spent / plain:.0f}", f"{size / 1000:.0f}"))
    with Archive(home) as archive:
        query, times = Query.parse(_QUERY, limit=50), list[float]()
        for _ in range(RUNS + 1):
            start = time.process_time()
            archive.search.find(query)
            times.append((time.process_time() - start) * 1000)
    found = median(times[1:])
    spent, size = await _measured(app, access, f"/view/search?q={_QUERY.replace(' ', '+')}")
    rows += [
        ("the search alone", f"{found:.1f}", f"{found / plain:.0f}", ""),
        ("/search", f"{spent:.1f}", f"{spent / plain:.0f}", f"{size / 1000:.0f}"),
    ]
    return rows


def main() -> None:
    """Build the archive in the folder that is given, or in a temporary one, and print the measurements."""
    with tempfile.TemporaryDirectory() as scratch:
        home = Home(Path(sys.argv[1] if len(sys.argv) > 1 else scratch).absolute())
        if home.is_new:
            build(home, SESSIONS)
        rows = asyncio.run(_rows(home))
    print(table(("page", "CPU ms", "to a bare page", "kB"), rows))
    print(f"\nPeak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
