"""Page of the archive's state: coverage, lost originals, secrets, disk, costs of extraction, and health checks."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from ..archiver.formats.recorded_usage import COUNTED
from ..archiver.formats.registry import all_formats
from ..archiver.ingest.transcripts import folders, of_this_user
from ..archiver.reading.parsing import secrets_in
from ..archiver.store import Store
from ..archiver.store.session_list import SessionFilter
from ..core.conversation import Milliseconds, now
from ..core.home import Home
from ..observe.llm.ledger import load_stats
from ..observe.llm.model_settings import why_off
from ..observe.upkeep.archive_status import state_of
from ..observe.upkeep.health_check import HealthContext
from ..search.index.generation import Generations
from ..templates.environment import outcomes, step
from .pages import archive_of, pages_of, render, route
from .session_rows import columns_of, rows_of
from .verdict import Verdict, verdict_of

_LISTED: Final = 20
"""Maximum number of sessions and of files with secrets in a list."""
_FOLDERS: Final = {
    "archive": "Raw copies of transcripts",
    "palaver.db": "Database",
    "index": "Search index (can be rebuilt)",
    "backups": "Backups of the database",
}
"""Description of each part of the home on the disk."""


class AgentState(NamedTuple):
    """Agent with its number of sessions, the time of the latest, its folders, and whether tokens are counted."""

    name: str
    sessions: int
    latest: Milliseconds | None
    folders: list[str]
    is_counted: bool


class DiskUse(NamedTuple):
    """Part of the home, with its description and size in bytes."""

    name: str
    description: str
    size: int


def state(request: Request) -> Response:
    """Show the state of the archive. The health checks are a page of their own, because they take longer."""
    archive = archive_of(request)
    store = archive.store
    status = state_of(archive.home, store, Generations(archive.home.index), archive.config.model)
    observations = sum(store.observations.count_by_type(cards=False).values())
    own_files = [source for source in store.sources.all() if not source.is_contained]
    lost = [source for source in own_files if not os.path.lexists(source.path)]
    latest = sorted({source.session for source in lost if source.session is not None}, reverse=True)
    rows = rows_of(store, [number for number in latest if number in store.session_list.totals(latest)][:_LISTED])
    secrets = secrets_in(store)
    disk = list(_disk_use(archive.home))
    return render(
        request,
        "archive.html.j2",
        status=status,
        observations=observations,
        cards=sum(status.observations.values()) - observations,
        sessions=store.session_list.count(SessionFilter()),
        coverage=list(outcomes(status.skipped, status.repeated)),
        originals=len(own_files),
        lost=len(latest),
        rows=rows,
        columns=columns_of(rows),
        secrets=secrets,
        secret_files=secrets.sessions[:_LISTED],
        agents=sorted(_agents(store), key=lambda agent: -agent.sessions),
        disk=disk,
        disk_total=sum(part.size for part in disk),
        stats=load_stats(archive.store, archive.config),
        step=step,
        now=now(),
    )


def checks(request: Request) -> Response:
    """Show the results of `palaver doctor`: as a part of the page if htmx asks for it, else as a page."""
    is_part = "hx-request" in request.headers
    return render(request, "checks_part.html.j2" if is_part else "checks.html.j2", verdict=_verdict(request))


def verdict(request: Request) -> Response:
    """Return the verdict of the checks as a link to them, for the home page."""
    return render(request, "verdict.html.j2", verdict=_verdict(request))


def _verdict(request: Request) -> Verdict:
    home = archive_of(request).home
    return verdict_of(HealthContext(home, pages_of(request).version, of_this_user, why_off))


def _agents(store: Store) -> Iterator[AgentState]:
    """Yield the agents that Palaver knows, in the order of their formats."""
    counts = store.session_list.count_by_agent()
    for known in all_formats():
        sessions, latest = counts.get(known.agent, (0, None))
        shown = [str(path).replace(str(Path.home()), "~", 1) for path in folders(known) if path.exists()]
        yield AgentState(known.agent, sessions, latest, shown, known.agent in COUNTED)


def _disk_use(home: Home) -> Iterator[DiskUse]:
    """Yield the parts of the home, the largest first."""
    sizes = dict.fromkeys((*_FOLDERS, ""), 0)
    for folder, _, names in os.walk(home.root):
        for name in names:
            path = Path(folder, name)
            top = path.relative_to(home.root).parts[0]
            part = next((part for part in _FOLDERS if top == part or top.startswith(f"{part}-")), "")
            try:
                sizes[part] += path.lstat().st_size
            except FileNotFoundError:  # Another process has just removed the file.
                continue
    named = {**_FOLDERS, "": "Other files"}
    parts = (DiskUse(name, named[name], size) for name, size in sizes.items() if size)
    yield from sorted(parts, key=lambda part: -part.size)


routes: Final[list[BaseRoute]] = [
    route("/archive", state, slow=True),
    route("/archive/checks", checks, slow=True),
    route("/archive/verdict", verdict, slow=True),
]
