"""Requests and answers of the three layers of search.

Layer 1: `Query` -> `Results`. Layer 2: ids -> `Detail`. Layer 3: path and lines -> `TranscriptExcerpt`.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, cast

from msgspec import Struct

from .conversation import Exchange, Milliseconds, SessionKind, Span
from .errors import ConceptCount, FilterNotAllowed, InvalidInput, InvalidLimit, QueryNotText, QueryTooShort
from .observation import Observation, ObservationType
from .origin import Origin

LIMIT_MAX = 50
IDS_MAX = 20
BUDGET = 10_000
"""Default token limit of a reply."""


class Mode(StrEnum):
    """Search engines to ask."""

    VECTOR = "vector"
    TEXT = "text"
    BOTH = "both"


class Role(StrEnum):
    """Author of a text. `tool` is the output of a program that failed."""

    HUMAN = "human"
    ASSISTANT = "assistant"
    TOOL = "tool"


class HitKind(StrEnum):
    """Kinds of hits."""

    OBSERVATION = "observation"
    EXCHANGE = "exchange"
    MEMORY = "memory"
    DOCUMENT = "document"
    CODE = "code"


class Grouping(StrEnum):
    """Unit of a result."""

    EVENT = "event"
    SESSION = "session"


class Filters(Struct, frozen=True):
    """Conditions for hits: AND between different filters, OR between the values of one.

    Attributes:
        after: First instant; `before` is the first instant excluded.
        projects: Names or full paths.
        files: Paths, ends of paths, names, folders or globs (`*`, `**`, `?`) of files read or modified.
        kinds: Values of `HitKind`.
        sessions: Ids or their beginnings.
        origins: Values of `Origin`.
        roles: Values of `Role`; only their texts are searched.
    """

    after: Milliseconds | None = None
    before: Milliseconds | None = None
    projects: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    concepts: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    branches: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()

    @classmethod
    def parse(
        cls,
        *,
        after: str | None = None,
        before: str | None = None,
        types: Sequence[str] = (),
        kinds: Sequence[str] = (),
        origins: Sequence[str] = (),
        roles: Sequence[str] = (),
        **names: Sequence[str],
    ) -> "Filters":
        """Return filters for the values a caller sent. Both dates are included, and read as in `periods`.

        Raises:
            InvalidInput: if a value is invalid.
        """
        first = end = None
        if after is not None or before is not None:
            from .periods import between  # few queries have dates, and every search would compile the patterns

            first, end = between(after, before)
        return cls(
            after=first,
            before=end,
            types=tuple(dict.fromkeys(ObservationType.parse(name) for name in types)),
            kinds=_chosen("kind", kinds, HitKind),
            origins=_chosen("origin", origins, Origin),
            roles=_chosen("role", roles, Role),
            **{name: tuple(values) for name, values in names.items()},
        )

    def __bool__(self) -> bool:
        return self != Filters()


class Query(Struct, frozen=True):
    """Well-formed search request.

    Attributes:
        concepts: One query, two to five that must all match, or none to list the newest entries.
        weak: Include hits below the relevance threshold.
        cursor: `Results.cursor` of the previous page.
    """

    concepts: tuple[str, ...]
    mode: Mode = Mode.BOTH
    limit: int = 10
    filters: Filters = Filters()
    weak: bool = False
    by: Grouping = Grouping.EVENT
    cursor: str = ""

    @classmethod
    def parse(
        cls,
        query: object,
        *,
        mode: str = "both",
        limit: object = 10,
        weak: bool = False,
        by: str = "event",
        cursor: str = "",
        **filters: Any,
    ) -> "Query":
        """Return the query for the values a caller sent; `filters` are the arguments of `Filters.parse`.

        Raises:
            InvalidInput: if a value is invalid.
        """
        wanted = _concepts(query)
        given = [name for name in ("types", "concepts", "files") if filters.get(name)]
        if len(wanted) > 1 and given:
            raise FilterNotAllowed(given)
        return cls(
            wanted,
            Mode(*_chosen("mode", [mode], Mode)),
            _limit(limit),
            Filters.parse(**filters),
            weak,
            Grouping(*_chosen("grouping", [by], Grouping)),
            cursor,
        )

    @classmethod
    def newest(cls, *, limit: object = 10, by: str = "event", cursor: str = "", **filters: Any) -> "Query":
        """Return a query without words, for the newest entries that match the filters. Raises as `parse` does."""
        return cls(
            (),
            Mode.TEXT,
            _limit(limit),
            Filters.parse(**filters),
            by=Grouping(*_chosen("grouping", [by], Grouping)),
            cursor=cursor,
        )


def _limit(limit: object) -> int:
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= LIMIT_MAX:
        raise InvalidLimit(limit)
    return limit


def _chosen(label: str, names: Sequence[str], known: Iterable[str]) -> tuple[str, ...]:
    """Return the names without repetition; raise `InvalidInput` for an unknown one."""
    wanted = tuple(dict.fromkeys(name.strip().lower() for name in names))
    allowed = [str(name) for name in known]
    for name in wanted:
        if name not in allowed:
            raise InvalidInput(f"Unknown {label}: {name}", hint=f"Use one of: {', '.join(allowed)}.")
    return wanted


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


class ScorePart(NamedTuple):
    """Component of a score: the measured `value` and the `points` it adds to the score."""

    name: str
    value: float
    points: float


class Hit(Struct, frozen=True):
    """One result of layer 1.

    `score` orders the list and is the sum of the points of `parts`. `similarity` is a cosine; None if no vectors were
    compared. `tokens` is the cost of layer 2 for this hit. `path` is relative to the archive; the lines are the
    evidence for the hit. `matched` are the terms found in the snippet. `more` counts the other matching events of the
    session in a search for sessions. `cursor` continues after this hit. `also_in` are ids of other sessions with the
    same text: forks, resumed sessions and copies.
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
    parts: tuple[ScorePart, ...] = ()
    matched: tuple[str, ...] = ()
    more: int = 0
    cursor: str = ""
    also_in: tuple[str, ...] = ()


class UnknownName(NamedTuple):
    """Value of a `filter` (a field of `Filters`) that no entry has; up to three similar ones, and how many `more`."""

    filter: str
    name: str
    nearest: tuple[str, ...]
    more: int = 0


class Correction(NamedTuple):
    """Word that does not occur in the archive, and the most similar one that does."""

    word: str
    nearest: str


class TimeExpression(NamedTuple):
    """Time expression of a query, and its range: from the instant `after` until `before`, exclusive."""

    text: str
    after: Milliseconds
    before: Milliseconds


class ConceptHits(NamedTuple):
    """Number of conversations that match one of several concepts by itself."""

    concept: str
    conversations: int


class ToolOutputLine(NamedTuple):
    """Archived line with a quoted phrase in the output of a tool: path below the archive, line, surrounding text."""

    path: str
    line: int
    text: str


class ToolOutputMatches(Struct, frozen=True):
    """First few matches of quoted phrases in tool output that is not indexed.

    `unread` copies were not searched before the time limit. `searched` tells whether any copy was to be searched.
    """

    lines: tuple[ToolOutputLine, ...] = ()
    unread: int = 0
    searched: bool = False


class ZeroResultExplanation(Struct, frozen=True):
    """Reasons for an empty result, and ways to find something.

    Attributes:
        weak: Nearest hits below the relevance threshold, or without the quoted phrases.
        without: Number of hits without each filter.
        earlier: Nearest instant before the date range that has a hit; `later` the nearest one after it.
        similar: Similar terms for words of the query.
        unknown: Filter values that no entry has.
        phrases: Quoted phrases that no entry has under the filters.
        concepts: Number of conversations for each of several concepts.
        disjoint: Pairs of concepts that occur, but never in the same conversation.
        no_known_term: True if no word of the query, nor a similar one, occurs in the index.
        tool_output: Matches of the quoted phrases in tool output that is not indexed.
        missing: Words of a short query that do not occur.
        without_missing: Number of hits without the missing words; None if no other words are left.
    """

    weak: tuple[Hit, ...] = ()
    without: tuple[tuple[str, int], ...] = ()
    earlier: Milliseconds | None = None
    later: Milliseconds | None = None
    similar: tuple[Correction, ...] = ()
    unknown: tuple[UnknownName, ...] = ()
    phrases: tuple[str, ...] = ()
    concepts: tuple[ConceptHits, ...] = ()
    disjoint: tuple[tuple[str, str], ...] = ()
    no_known_term: bool = False
    tool_output: ToolOutputMatches = ToolOutputMatches()
    missing: tuple[str, ...] = ()
    without_missing: int | None = None


class Results(Struct, frozen=True):
    """Answer of layer 1.

    Attributes:
        total: Number of hits.
        index_lag: Number of changes that are not in the published index; they are searched as well.
        engines: Search engines that answered.
        cursor: Start of the next page; empty on the last one.
        explanation: Reasons for an empty result; None if there are hits.
        corrections: Words that were searched in a similar spelling.
        inexact: Quoted phrases that match only with other forms of their words.
        relaxed: Quoted phrases without any match, searched as single words.
        times: Time expressions of the query; hits within their ranges rank higher.
        empty_times: Time expressions without any entry in their ranges, searched as words.
        newest: Date of the newest entry, given together with `empty_times`.
        ranking_limit: True on the last page if more entries may match than a search ranks.
    """

    query: Query
    hits: tuple[Hit, ...]
    total: int
    index_lag: int
    engines: tuple[str, ...]
    cursor: str = ""
    explanation: ZeroResultExplanation | None = None
    corrections: tuple[Correction, ...] = ()
    inexact: tuple[str, ...] = ()
    relaxed: tuple[str, ...] = ()
    times: tuple[TimeExpression, ...] = ()
    empty_times: tuple[TimeExpression, ...] = ()
    newest: Milliseconds | None = None
    ranking_limit: bool = False


class Timeline(Struct, frozen=True):
    """Events of a session around the one with the id `anchor`, in order."""

    anchor: str
    hits: tuple[Hit, ...]
    session_id: str
    path: str


class Detail(Struct, frozen=True):
    """One entry of layer 2. An exchange without observations has one of type `general`.

    `tokens` is the cost of layer 3 for its evidence. `also_in` are ids of other sessions with the same exchange. Later
    exchanges repeated it `confirmed` times, last at `confirmed_at`. `left_out` parts exceeded the token limit.
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
    also_in: tuple[str, ...] = ()
    confirmed: int = 0
    confirmed_at: Milliseconds | None = None
    left_out: int = 0


class TranscriptExcerpt(Struct, frozen=True):
    """Answer of layer 3: the exchanges within a range of lines.

    The turns are those of the lines asked for; the spans and tokens are those of whole exchanges. `parent_id` is the
    session that started a sub-agent, or that a main session was forked from. `pull_request` is an address.
    `next_line` continues a truncated answer. `also_in` are ids of other sessions with some of the same text.
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
    also_in: tuple[str, ...] = ()

    def shown(self, span: Span) -> tuple[int, int]:
        """Return the first and last line of an exchange's span that are in this answer."""
        return max(span.start_line, self.start_line), min(span.end_line, self.end_line)
