"""Search requests, which consist of queries and filters, and patterns of paths.

User input in a path pattern never becomes a regular expression, so matching takes polynomial time.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Any, TypeVar, cast

from msgspec import Struct

from .conversation import Milliseconds, Origin
from .errors import (
    ConceptCount,
    FilterNotAllowed,
    InvalidInput,
    InvalidLimit,
    QueryNotText,
    QueryTooLong,
    QueryTooShort,
)
from .observation import ObservationType
from .time_expressions import between

QUERY_MAX = 10_000
"""Maximum number of characters of a query. Analysing a longer one would keep a server busy."""
LIMIT_MAX = 50
IDS_MAX = 20
ALSO_MAX = 4
"""Maximum number of alternative wordings of a query."""
_ALSO_HINT = f"Give up to {ALSO_MAX} other wordings of the query."
PER_SESSION = 3
"""Default maximum number of hits of one session."""
CONTEXT_MAX = 10
"""Maximum number of lines before and after a match in tool output."""


class Mode(StrEnum):
    """Search engines to use: text search, vector search or both."""

    VECTOR = "vector"
    TEXT = "text"
    BOTH = "both"


class Role(StrEnum):
    """Author of a text. For `tool`, the text is the output of a failed call."""

    HUMAN = "human"
    ASSISTANT = "assistant"
    TOOL = "tool"


class HitKind(StrEnum):
    """Kind of the content that a hit shows."""

    OBSERVATION = "observation"
    EXCHANGE = "exchange"
    MEMORY = "memory"
    DOCUMENT = "document"
    CODE = "code"


class Grouping(StrEnum):
    """Content of one hit: an event or a whole session."""

    EVENT = "event"
    SESSION = "session"


class Filters(Struct, frozen=True):
    """Conditions for hits. A hit must match at least one value of each filter.

    Attributes:
        after: Start of the time range, inclusive. `before` is its end, exclusive.
        projects: Project names or full paths.
        files: Files that were read or modified: paths, ends of paths, names, folders or globs (`*`, `**`, `?`).
        kinds: Values of `HitKind`.
        sessions: Session IDs or prefixes of session IDs.
        origins: Values of `Origin`.
        roles: Values of `Role`. Only texts by these roles are searched.
        languages: Languages of documents and code, such as `python` or `markdown`.
        units: Kinds of units of code, such as `function` or `class`.
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
    languages: tuple[str, ...] = ()
    units: tuple[str, ...] = ()

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
        """Return filters for the values in a request.

        Both dates are inclusive and are parsed by `time_expressions`.

        Raises:
            InvalidInput: A value is invalid.
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
    """Validated search request.

    Attributes:
        concepts: One query, or two to five concepts that must all match. If empty, the newest entries are listed.
        weak: True to include hits below the relevance threshold.
        cursor: `Results.cursor` of the previous page.
        per_session: Maximum number of hits of one session, or 0 for any number.
        also: Alternative wordings of the same question, sorted. All wordings are searched together.
        here: Name or folder of the project in which the user searches. Hits in this project rank slightly higher.
    """

    concepts: tuple[str, ...]
    mode: Mode = Mode.BOTH
    limit: int = 10
    filters: Filters = Filters()
    weak: bool = False
    by: Grouping = Grouping.EVENT
    cursor: str = ""
    per_session: int = 0
    also: tuple[str, ...] = ()
    here: str = ""

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
        per_session: int = PER_SESSION,
        also: object = (),
        here: str = "",
        **filters: Any,
    ) -> "Query":
        """Return the query for the values in a request. `filters` are the arguments of `Filters.parse`.

        Duplicate wordings in `also` are removed.

        Raises:
            InvalidInput: A value is invalid.
        """
        most, wanted = _limit(limit), _concepts(query)
        names = [name for name in ("types", "concepts", "files") if filters.get(name)]
        if len(wanted) > 1 and names:
            raise FilterNotAllowed(names)
        return cls(
            wanted,
            Mode(*_chosen("mode", [mode], Mode)),
            most,
            Filters.parse(**filters),
            weak,
            Grouping(*_chosen("grouping", [by], Grouping)),
            cursor,
            per_session,
            _rewordings(also, wanted),
            here,
        )

    @property
    def prefers_project(self) -> bool:
        """True if `here` affects the ranking: for a single query without a filter for projects or sessions."""
        return len(self.concepts) == 1 and not (self.filters.projects or self.filters.sessions)

    @classmethod
    def newest(cls, *, limit: object = 10, by: str = "event", cursor: str = "", **filters: Any) -> "Query":
        """Return a query for the newest entries that satisfy the filters. Raises the same errors as `parse`."""
        return cls(
            (),
            Mode.TEXT,
            _limit(limit),
            Filters.parse(**filters),
            by=Grouping(*_chosen("grouping", [by], Grouping)),
            cursor=cursor,
        )


def checked_length(query: str) -> str:
    """Return a query. Raises `QueryTooLong` if it has more than `QUERY_MAX` characters."""
    if len(query) > QUERY_MAX:
        raise QueryTooLong(len(query), QUERY_MAX)
    return query


def _limit(limit: object) -> int:
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= LIMIT_MAX:
        raise InvalidLimit(limit)
    return limit


def _chosen(label: str, names: Sequence[str], known: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct names in lower case. Raises `InvalidInput` for a name that is not in `known`."""
    chosen = tuple(dict.fromkeys(name.strip().lower() for name in names))
    allowed = [str(name) for name in known]
    for name in chosen:
        if name not in allowed:
            raise InvalidInput(f"Unknown {label}: {name}", hint=f"Use one of: {', '.join(allowed)}.")
    return chosen


def _concepts(query: object) -> tuple[str, ...]:
    if isinstance(query, str):
        texts = [query]
    elif isinstance(query, list | tuple) and all(isinstance(concept, str) for concept in cast("list[object]", query)):
        texts = list(cast("list[str]", query))
        if not 2 <= len(texts) <= 5:
            raise ConceptCount
    else:
        raise QueryNotText
    texts = [checked_length(concept.strip()) for concept in texts]
    if any(len(concept) < 2 for concept in texts):
        raise QueryTooShort
    return tuple(texts)


def _rewordings(also: object, concepts: Sequence[str]) -> tuple[str, ...]:
    """Return the distinct alternative wordings of a query. They are sorted, so that their order has no effect."""
    if not isinstance(also, list | tuple) or not all(isinstance(each, str) for each in cast("list[object]", also)):
        raise InvalidInput("`also` must be an array of strings", hint=_ALSO_HINT)
    given = [" ".join(checked_length(each).split()) for each in cast("list[str]", also)]
    if len(given) > ALSO_MAX:
        raise InvalidInput(f"{len(given)} other wordings given, at most {ALSO_MAX} allowed", hint=_ALSO_HINT)
    if any(len(each) < 2 for each in given):
        raise InvalidInput("Another wording is empty or too short", hint="Use at least 2 characters, or leave it out.")
    if given and len(concepts) > 1:
        raise InvalidInput(
            "Other wordings apply only to a query of one concept", hint="Search each concept on its own."
        )
    distinct = {each.casefold(): each for each in sorted(given)}
    repeated = {" ".join(each.split()).casefold() for each in concepts}
    return tuple(sorted(each for name, each in distinct.items() if name not in repeated))


_T = TypeVar("_T")


def is_pattern(path: str) -> bool:
    """Return whether a path can match several files, because it is a glob or ends with a slash."""
    return path.endswith("/") or any(sign in path for sign in "*?")


def fits(pattern: str, path: str) -> bool:
    """Return whether a pattern matches a path, with slashes as separators. The comparison is case-sensitive.

    `*` and `?` match within a name. `**` matches any number of folders. A pattern without a leading slash may begin at
    any folder. A pattern with a final slash matches all files below that folder.
    """
    complete = f"{pattern}**" if pattern.endswith("/") else pattern
    names = complete.split("/")
    return _fits(names if complete.startswith("/") else ["**", *names], path.split("/"), "**", _name_fits)


def _name_fits(pattern: str, name: str) -> bool:
    return _fits(pattern, name, "*", lambda wanted, sign: wanted in {sign, "?"})


def _fits(pattern: Sequence[_T], parts: Sequence[_T], star: _T, equal: Callable[[_T, _T], bool]) -> bool:
    """Return whether the parts match a pattern in which `star` matches any number of parts.

    After a mismatch, the function backtracks only to the last star. Its time is therefore at most proportional to the
    product of both lengths.
    """
    index, part, last_star, resumed = 0, 0, -1, 0
    while part < len(parts):
        if index < len(pattern) and pattern[index] == star:
            last_star, resumed = index, part
            index += 1
        elif index < len(pattern) and equal(pattern[index], parts[part]):
            index, part = index + 1, part + 1
        elif last_star >= 0:
            resumed += 1
            index, part = last_star + 1, resumed
        else:
            return False
    return all(each == star for each in pattern[index:])
