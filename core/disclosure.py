"""The three layers' values: what is asked, and what each layer hands back.

Layer 1 is `Query` -> `Results`, layer 2 ids -> `Detail`s, layer 3 a path and lines -> `Transcript`.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, cast

from msgspec import Struct

from .conversation import Exchange, Milliseconds, SessionKind, Span
from .errors import ConceptCount, FilterNotAllowed, InvalidInput, InvalidLimit, QueryNotText, QueryTooShort
from .observation import Observation, ObservationType
from .origin import Origin
from .printed import Printed

LIMIT_MAX = 50
IDS_MAX = 20
BUDGET = 10_000
"""Tokens that no reply exceeds unless more is asked for."""


class Mode(StrEnum):
    """Which engines answer."""

    VECTOR = "vector"
    TEXT = "text"
    BOTH = "both"


class Role(StrEnum):
    """Who said what is searched for. `tool` is what a program printed when it failed."""

    HUMAN = "human"
    ASSISTANT = "assistant"
    TOOL = "tool"


class HitKind(StrEnum):
    """What a hit can be: something learned, said, held, written."""

    OBSERVATION = "observation"
    EXCHANGE = "exchange"
    MEMORY = "memory"
    DOCUMENT = "document"
    CODE = "code"


class Grouping(StrEnum):
    """What counts as one result."""

    EVENT = "event"
    SESSION = "session"


class Filters(Struct, frozen=True):
    """What a hit must satisfy. Different filters combine with AND, the values of one with OR; empty means no filter.

    `after` is the first instant allowed, `before` the first instant no longer allowed. `projects` are names or full
    paths; `files` match what was read or modified: by path, end of a path, name, folder, or glob (`*`, `**`, `?`).
    `kinds` are those of `Hit.kind`. `sessions` are ids or the beginnings of ids; `origins` say whose word it is. With
    `roles` only what these said is searched.
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
        projects: Sequence[str] = (),
        types: Sequence[str] = (),
        concepts: Sequence[str] = (),
        files: Sequence[str] = (),
        kinds: Sequence[str] = (),
        sessions: Sequence[str] = (),
        branches: Sequence[str] = (),
        agents: Sequence[str] = (),
        origins: Sequence[str] = (),
        roles: Sequence[str] = (),
    ) -> "Filters":
        """Filters from what a caller sent; dates are as `periods` takes them, and included. Raises the `InvalidInput`
        that says how to correct them.
        """
        first = end = None
        if after is not None or before is not None:
            from .periods import between  # few queries have dates, and every search would compile the patterns

            first, end = between(after, before)
        return cls(
            after=first,
            before=end,
            projects=tuple(projects),
            types=tuple(dict.fromkeys(ObservationType.parse(name) for name in types)),
            concepts=tuple(concepts),
            files=tuple(files),
            kinds=_chosen("kind", kinds, HitKind),
            sessions=tuple(sessions),
            branches=tuple(branches),
            agents=tuple(agents),
            origins=_chosen("origin", origins, Origin),
            roles=_chosen("role", roles, Role),
        )

    def __bool__(self) -> bool:
        return self != Filters()


class Query(Struct, frozen=True):
    """A search that is known to be well-formed.

    `concepts` has one entry, or two to five that must all be present; none asks for the newest of what satisfies the
    filters. `weak` asks for what is not clearly relevant too. `cursor` is what `Results.cursor` was, to go on there.
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
        """A query from what a caller sent, `filters` as `Filters.parse` takes them; raises the `InvalidInput` that
        says how to correct it.
        """
        wanted = _concepts(query)
        given = [name for name in ("types", "concepts", "files") if filters.get(name)]
        if len(wanted) > 1 and given:
            raise FilterNotAllowed(given)
        return cls(wanted, _mode(mode), _limit(limit), Filters.parse(**filters), weak, _grouping(by), cursor)

    @classmethod
    def newest(cls, *, limit: object = 10, by: str = "event", cursor: str = "", **filters: Any) -> "Query":
        """A query without words: the newest of what satisfies the filters. Raises as `parse` does."""
        return cls((), Mode.TEXT, _limit(limit), Filters.parse(**filters), by=_grouping(by), cursor=cursor)


def _limit(limit: object) -> int:
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= LIMIT_MAX:
        raise InvalidLimit(limit)
    return limit


def _grouping(name: str) -> Grouping:
    [chosen] = _chosen("grouping", [name], Grouping)
    return Grouping(chosen)


def _chosen(what: str, names: Sequence[str], known: Iterable[str]) -> tuple[str, ...]:
    """The names without repetition; raises `InvalidInput` for one that is none of the known ones."""
    wanted = tuple(dict.fromkeys(name.strip().lower() for name in names))
    allowed = [str(name) for name in known]
    for name in wanted:
        if name not in allowed:
            raise InvalidInput(f"Unknown {what}: {name}", hint=f"Use one of: {', '.join(allowed)}.")
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


def _mode(name: str) -> Mode:
    [chosen] = _chosen("mode", [name], Mode)
    return Mode(chosen)


class Part(NamedTuple):
    """A part of a score: how much of something was found (`value`), and what that adds to the score (`points`)."""

    name: str
    value: float
    points: float


class Hit(Struct, frozen=True):
    """One line of layer 1.

    `score` ordered the list, and is what `parts` add up to; `similarity` is a true cosine, or None where no vector was
    compared. `tokens` is what layer 2 would cost for this hit. `path` is relative to the archive; the lines are those
    that prove the hit. `matched` are the words found, as they stand in the snippet. `more` is how many other events of
    its session matched, where sessions are asked for. `cursor` goes on after this hit. `also_in` are the ids of other
    sessions that repeat it, as forks, resumed sessions and copies do.
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
    parts: tuple[Part, ...] = ()
    matched: tuple[str, ...] = ()
    more: int = 0
    cursor: str = ""
    also_in: tuple[str, ...] = ()


class Unknown(NamedTuple):
    """A name of a `filter` (a field of `Filters`) that nothing has; something has the `nearest`, and so many `more`."""

    filter: str
    name: str
    nearest: tuple[str, ...]
    more: int = 0


class Spelling(NamedTuple):
    """A word that stands nowhere in the archive, and the one that does and is spelled most like it."""

    word: str
    nearest: str


class Occasion(NamedTuple):
    """When something was, as a query `said`: from the instant `after` on, until `before`, as in `Filters`."""

    said: str
    after: Milliseconds
    before: Milliseconds


class Present(NamedTuple):
    """In how many conversations that satisfy the filters one of several concepts is clearly present by itself."""

    concept: str
    conversations: int


class Absence(Struct, frozen=True):
    """Why nothing was found.

    `phrases` were quoted, and nothing that satisfies the filters has them so. `weak` are the nearest of what was left
    out because it is not clearly relevant, or because it has the words but not as they were quoted; there are none of a
    query that is `unheard`, no sentence, and none of its words stands in what is searched. `without` tells for each
    filter how many there would be without it, `earlier` and `later` the nearest instants outside the range that have
    some. Of several concepts `present` tells each, and `apart` those two that no conversation has together, although it
    has each. What was quoted is looked for in what tools `printed`, too, which is not searched otherwise. Of few words
    those are told that stand `nowhere`, and of one concept how many hits the `others` would have, if there are others.
    """

    weak: tuple[Hit, ...] = ()
    without: tuple[tuple[str, int], ...] = ()
    earlier: Milliseconds | None = None
    later: Milliseconds | None = None
    spelling: tuple[Spelling, ...] = ()
    unknown: tuple[Unknown, ...] = ()
    phrases: tuple[str, ...] = ()
    present: tuple[Present, ...] = ()
    apart: tuple[tuple[str, str], ...] = ()
    unheard: bool = False
    printed: Printed = Printed()
    nowhere: tuple[str, ...] = ()
    others: int | None = None


class Results(Struct, frozen=True):
    """The answer of layer 1. `total` counts the hits, as on the reference page.

    `index_lag` is how many changes the published index is behind the archive (they are searched too);
    `searched` names the engines that answered, so that a missing one is seen. `cursor` asks for the next page; empty
    where there is none. `why` is given where there are no hits. `respelled` are the words that were looked for in
    another spelling, because they stand nowhere; `reworded` what was quoted and stands nowhere word for word, or
    nowhere together, but in other forms of its words; `loosened` what was quoted in a sentence and stands in no form,
    whose words were looked for. `beyond` is whether this is the last page although more may match than a search ranks.
    `occasions` were said in the query and not searched as words: what is of then comes earlier. Nothing is of
    `vacant` ones; the `newest` is told with these.
    """

    query: Query
    hits: tuple[Hit, ...]
    total: int
    index_lag: int
    searched: tuple[str, ...]
    cursor: str = ""
    why: Absence | None = None
    respelled: tuple[Spelling, ...] = ()
    reworded: tuple[str, ...] = ()
    loosened: tuple[str, ...] = ()
    occasions: tuple[Occasion, ...] = ()
    vacant: tuple[Occasion, ...] = ()
    newest: Milliseconds | None = None
    beyond: bool = False


class Timeline(Struct, frozen=True):
    """What was said and learned just before and after a hit, in order; `anchor` is the id of what stands for that."""

    anchor: str
    hits: tuple[Hit, ...]
    session_id: str
    path: str


class Detail(Struct, frozen=True):
    """One entry of layer 2. An exchange without observations is shown as an observation of type `general`.

    `tokens` is what layer 3 would cost for the lines that prove it. `also_in` are the ids of other sessions that repeat
    the exchange. Later exchanges said it again `confirmed` times, the last of them at `confirmed_at`. `left_out` parts
    of the observation are not in it, as there was no room to show them.
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


class Transcript(Struct, frozen=True):
    """The answer of layer 3: whole exchanges or the part of them that lies in the lines asked for. Of a part, the turns
    are those of these lines; the span and the tokens used are those of the whole exchange.

    `parent_id` is the session that sent a sub-agent out, or the one that a main session was forked from.
    `pull_request` is the address of the one that came of it, if any. `next_line` is where to go on when the reply had
    to be cut, otherwise None. `also_in` are the ids of other sessions in which some of it stands, too.
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
        """The first and the last line of an exchange's span that are in this answer."""
        return max(span.start_line, self.start_line), min(span.end_line, self.end_line)
