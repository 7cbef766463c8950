"""Search in what the others of a team share, beside a search of this machine and within a time limit.

Only the words and the filters of a search leave this machine, without secrets and home folders. Nothing leaves for a
search in a private project, and for one that only this machine can answer, such as with a tag.
"""

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from ...archiver.redaction.home_paths import HomePaths
from ...archiver.store.team_table import Membership
from ...core.errors import PalaverError, TeamRefused
from ...core.home import Home, is_in_project
from ...core.query import HitKind, Query
from ...observe.archive import Archive
from ...search.query.query_analysis import without_secrets
from ..protocol import TeamHit, TeamHits, TeamQuery
from .membership import connect
from .server_connection import OutOfStep

SECONDS: Final = 0.7
"""Seconds to wait for the team."""
UNREACHED: Final = "Team server not reached"
_HITS: Final = 5
_KINDS: Final = frozenset({HitKind.OBSERVATION, HitKind.EXCHANGE, HitKind.MEMORY})
"""Kinds of entries that a team shares."""


class TeamResult(Struct, frozen=True):
    """Hits of the others, or a note why there are none. At `url`, a browser shows them, and at `url`/mcp an agent."""

    team: str
    url: str
    hits: Sequence[TeamHit] = ()
    note: str = ""


class TeamSearch:
    """Search that runs in another thread while this machine searches itself."""

    def __init__(self, home: Home, membership: Membership, query: TeamQuery) -> None:
        """Begin to search."""
        self._home, self._membership, self._query = home, membership, query
        self._result = TeamResult(membership.team_name, membership.url, note=UNREACHED)
        self._end = time.monotonic() + SECONDS
        # The thread can outlive the command, for example while a name is looked up.
        self._thread = threading.Thread(target=self._search, name="team-search", daemon=True)
        self._thread.start()

    def result(self) -> TeamResult:
        """Return the hits, or a note if the server did not answer in time."""
        self._thread.join(max(0.0, self._end - time.monotonic()))
        return self._result

    def _search(self) -> None:
        name, url = self._membership.team_name, self._membership.url
        try:
            with connect(self._home, self._membership, SECONDS) as server:
                reply = server.post("search", self._query, TeamHits)
        except TeamRefused as problem:
            self._result = TeamResult(name, url, note=problem.full_message.removesuffix("."))
        except (PalaverError, OutOfStep, OSError):
            return
        else:
            self._result = TeamResult(name, url, reply.hits, reply.note.removesuffix("."))


def begin(archive: Archive, query: Query, folder: Path) -> TeamSearch | None:
    """Begin to search the team, or return None if the search must stay on this machine.

    `folder` is the folder in which the user searches.
    """
    filters, config = query.filters, archive.config
    names = (*filters.projects, str(folder))
    is_private = any(is_in_project(config.private_projects, Path(name).name, name) for name in names)
    is_local = filters.sessions or filters.tags or (filters.kinds and _KINDS.isdisjoint(filters.kinds))
    if not config.team_search or is_private or is_local or len(query.concepts) != 1 or query.cursor:
        return None
    membership = archive.store.team.joined()
    return TeamSearch(archive.home, membership, _request(archive.home, query)) if membership is not None else None


def _request(home: Home, query: Query) -> TeamQuery:
    """Return the request, without secrets and home folders. Folders of projects become names."""
    projects = tuple(dict.fromkeys(Path(name).name if "/" in name else name for name in query.filters.projects))
    clean = without_secrets(replace(query, filters=replace(query.filters, projects=projects)), home)
    paths = HomePaths(Path.home())
    filters = paths.shorten(msgspec.json.encode(clean.filters).decode())
    return TeamQuery(paths.shorten(clean.concepts[0]), min(query.limit, _HITS), Raw(filters.encode()), others=True)
