"""Requests of the three layers of search: queries and filters."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any, cast

from msgspec import Struct

from .conversation import Milliseconds
from .errors import ConceptCount, FilterNotAllowed, InvalidInput, InvalidLimit, QueryNotText, QueryTooShort
from .observation import ObservationType
from .origin import Origin
from .time_expressions import between

LIMIT_MAX = 50
IDS_MAX = 20


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
        """Return filters for the values a caller sent. Both dates are included, and read as in `time_expressions`.

        Raises:
            InvalidInput: if a value is invalid.
        """
        first = end = None
        if after is not None or before is not None:
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
