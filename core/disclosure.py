"""The three layers' values: what is asked, and what each layer hands back.

Layer 1 is `Query` -> `Results`, layer 2 ids -> `Detail`s, layer 3 a path and lines -> `Transcript`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import cast

from .clock import day_end, day_start
from .conversation import Exchange, Milliseconds, SessionKind
from .errors import ConceptCount, FilterNotAllowed, InvalidInput, InvalidLimit, QueryNotText, QueryTooShort
from .observation import Observation, ObservationType

LIMIT_MAX = 50
IDS_MAX = 20


class Mode(StrEnum):
    """Which engines answer."""

    VECTOR = "vector"
    TEXT = "text"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Filters:
    """What a hit must satisfy. Different filters combine with AND, the values of one with OR; empty means no filter.

    `after` is the first instant allowed, `before` the first instant no longer allowed. `projects` are names or full
    paths; `files` match a path, its end, or its name, read or modified. `kinds` are those of `Hit.kind`: what was
    said, what was learned from it, what is held.
    """

    after: Milliseconds | None = None
    before: Milliseconds | None = None
    projects: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    concepts: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self != Filters()


@dataclass(frozen=True, slots=True)
class Query:
    """A search that is known to be well-formed. `concepts` has one entry, or two to five that must all be present."""

    concepts: tuple[str, ...]
    mode: Mode = Mode.BOTH
    limit: int = 10
    filters: Filters = Filters()

    @classmethod
    def parse(
        cls,
        query: object,
        *,
        mode: str = "both",
        limit: object = 10,
        after: str | None = None,
        before: str | None = None,
        projects: Sequence[str] = (),
        types: Sequence[str] = (),
        concepts: Sequence[str] = (),
        files: Sequence[str] = (),
    ) -> "Query":
        """A query from what a caller sent; raises the `InvalidInput` that says how to correct it."""
        wanted = _concepts(query)
        if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= LIMIT_MAX:
            raise InvalidLimit(limit)
        single_only = {"types": types, "concepts": concepts, "files": files}
        given = [name for name, values in single_only.items() if values]
        if len(wanted) > 1 and given:
            raise FilterNotAllowed(given)
        filters = Filters(
            after=day_start(after) if after is not None else None,
            before=day_end(before) if before is not None else None,
            projects=tuple(projects),
            types=tuple(dict.fromkeys(ObservationType.parse(name) for name in types)),
            concepts=tuple(concepts),
            files=tuple(files),
        )
        return cls(wanted, _mode(mode), limit, filters)


def _concepts(query: object) -> tuple[str, ...]:
    if isinstance(query, str):
        wanted = [query]
    elif isinstance(query, list | tuple) and all(isinstance(concept, str) for concept in cast("list[object]", query)):
        wanted = list(cast("list[str]", query))
        if not 2 <= len(wanted) <= 5:
            raise ConceptCount(len(wanted))
    else:
        raise QueryNotText
    wanted = [concept.strip() for concept in wanted]
    if any(len(concept) < 2 for concept in wanted):
        raise QueryTooShort
    return tuple(wanted)


def _mode(name: str) -> Mode:
    try:
        return Mode(name)
    except ValueError:
        raise InvalidInput(f"Unknown mode: {name}", hint="Use vector, text or both.") from None


@dataclass(frozen=True, slots=True)
class Hit:
    """One line of layer 1.

    `score` ordered the list; `similarity` is a true cosine, or None where no vector was compared. `tokens` is what
    layer 2 would cost for this hit. `path` is relative to the archive; the lines are those that prove the hit.
    """

    id: str
    kind: str
    type: str
    title: str
    project: str
    at: Milliseconds | None
    score: float
    similarity: float | None
    session_id: str
    path: str
    start_line: int
    end_line: int
    tokens: int
    facts: tuple[str, ...] = ()
    snippet: str = ""


@dataclass(frozen=True, slots=True)
class Results:
    """The answer of layer 1. `total` counts the hits, as on the reference page.

    `index_lag` is how many changes the published index is behind the archive (they are searched too);
    `searched` names the engines that answered, so that a missing one is seen.
    """

    query: Query
    hits: tuple[Hit, ...]
    total: int
    index_lag: int
    searched: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Detail:
    """One entry of layer 2. An exchange without observations is shown as an observation of type `general`.

    `tokens` is what layer 3 would cost for the lines that prove it.
    """

    id: str
    kind: str
    observation: Observation
    project: str
    branch: str
    session_id: str
    session_title: str
    path: str
    start_line: int
    end_line: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Transcript:
    """The answer of layer 3: whole exchanges or the part of them that lies in the lines asked for.

    `parent_id` is the session that sent a sub-agent out, or the one that a main session was forked from.
    `pull_request` is the address of the one that came of it, if any. `next_line` is where to go on when the reply had
    to be cut, otherwise None.
    """

    path: str
    session_id: str
    kind: SessionKind
    parent_id: str
    agent: str
    project: str
    cwd: str
    branch: str
    version: str
    title: str
    pull_request: str
    started: Milliseconds | None
    start_line: int
    end_line: int
    total_lines: int
    exchanges: tuple[Exchange, ...]
    tokens: int
    next_line: int | None = None
