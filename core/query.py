"""Search requests, which consist of queries and filters, and the table of the filters."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum, StrEnum, auto
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias, cast

from msgspec import Struct
from msgspec.structs import fields

from .agent_names import agent_named
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
from .home import working_folders
from .observation import ObservationType
from .time_expressions import between

if TYPE_CHECKING:
    from .conversation import Exchange, Session
    from .document import StoredChunk
    from .memory import Memory
    from .observation import Observation

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
    """Kind of the content that a hit shows. The kinds in `LISTS` are not indexed."""

    OBSERVATION = "observation"
    EXCHANGE = "exchange"
    MEMORY = "memory"
    DOCUMENT = "document"
    CODE = "code"
    COMMAND = "command"
    FIX = "fix"
    OPEN = "open"


LISTS: Final = frozenset((HitKind.COMMAND, HitKind.FIX, HitKind.OPEN))
"""Kinds whose rows are computed from conversations: commands of projects, fixes of errors, and open items."""


class Grouping(StrEnum):
    """Content of one hit: an event or a whole session."""

    EVENT = "event"
    SESSION = "session"


class IndexedItem(Struct, frozen=True):
    """Item of the archive from which the filters read their values. Parts that the item does not have are empty.

    Attributes:
        exchange: The exchange, or that of the observation.
        observations: Observations of the exchange, or the observation alone.
    """

    kind: str
    session: "Session | None" = None
    exchange: "Exchange | None" = None
    observations: "Sequence[Observation]" = ()
    memory: "Memory | None" = None
    chunk: "StoredChunk | None" = None

    @property
    def folder(self) -> str:
        """Folder against which the paths of the item are resolved."""
        own = self.exchange.cwd if self.exchange and self.kind == HitKind.EXCHANGE else ""
        return own or (self.session.cwd if self.session else "")


class Comparison(Enum):
    """How a filter compares its values with those of an item."""

    DATE = auto()
    EQUAL = auto()
    BEGINNING = auto()
    PROJECT = auto()
    """By name, namespace or folder."""
    PATH = auto()
    """By path, end of a path, name, folder or glob (`*`, `**`, `?`)."""
    LABEL = auto()
    """By the labels of sessions. The search replaces the values by session IDs; they are not in the index."""
    ROLE = auto()
    """By the author of each text of an item. The text index stores the texts of each role separately."""


class ToolParameter(Struct, frozen=True):
    """Parameter of the MCP tool `search`. If `is_single`, the client gives one value instead of a list."""

    description: str = ""
    is_single: bool = False


class FilterField(Struct, frozen=True):
    """Row of the table of filters. Index, command line, MCP tool, messages and documentation are derived from it.

    Attributes:
        name: Name of the field in the text index, and of the option on the command line.
        help: Help of the option.
        metavar: Name of the option's value in the help.
        read: Function that returns the values of an item. The text index normalises them.
        comparison: How values are compared.
        choices: Valid values, or None if any value is valid.
        parse: Function that returns the choice for a value, if aliases are valid.
        aliases: Other names of the option.
        parameter: Parameter of the MCP tool, or None if the tool does not have this filter.
        unknown: Beginning of the sentence about a value without entries. If empty, values are not checked.
        lists_values: True if this sentence lists values of the index, because there are few.
        in_output: True if the filter applies to the output of tools.
        in_code: True if the filter applies to the search for symbols and lines of code.
        one_concept: True if the filter is allowed only for a query of one concept.
    """

    name: str
    help: str
    metavar: str = "DATE"
    read: Callable[[IndexedItem], Iterable[str]] = lambda _: ()
    comparison: Comparison = Comparison.EQUAL
    choices: type[StrEnum] | None = None
    parse: Callable[[str], str] | None = None
    aliases: tuple[str, ...] = ()
    parameter: ToolParameter | None = None
    unknown: str = ""
    lists_values: bool = False
    in_output: bool = True
    in_code: bool = False
    one_concept: bool = False

    @property
    def option(self) -> str:
        """Option on the command line."""
        return f"--{self.name}"

    def parsed(self, values: Sequence[str]) -> tuple[str, ...]:
        """Return the values in a request. Raises `InvalidInput` for a value outside the choices."""
        if self.parse is not None:
            return tuple(dict.fromkeys(map(self.parse, values)))
        return tuple(values) if self.choices is None else _chosen(self.name, values, self.choices)


def _types(item: IndexedItem) -> Iterable[str]:
    return (item.memory.type,) if item.memory else (observation.type for observation in item.observations)


def _concepts_of(item: IndexedItem) -> Iterable[str]:
    return item.memory.tags if item.memory else (tag for learned in item.observations for tag in learned.concepts)


def _files(item: IndexedItem) -> Iterable[str]:
    if item.chunk:
        return (str(item.chunk.source_file),)
    if item.exchange and item.kind == HitKind.EXCHANGE:
        return (*item.exchange.reads, *item.exchange.writes)
    return (path for learned in item.observations for path in (*learned.files_read, *learned.files_modified))


def _projects(item: IndexedItem) -> Iterable[str]:
    if item.memory:
        return (item.memory.namespace, item.memory.project)
    if item.chunk:
        return (item.chunk.namespace,)
    return (item.session.project, *working_folders(item.session.cwd)) if item.session else ()


def _sessions(item: IndexedItem) -> Iterable[str]:
    return (item.memory.session_id,) if item.memory else (item.session.native_id,) if item.session else ()


def _tag(name: str) -> str:
    return name.strip().removeprefix("#").lower()


def _branches(item: IndexedItem) -> Iterable[str]:
    own = item.exchange.branch if item.exchange else ""
    return (own or item.session.branch,) if item.session else ()


def _origins(item: IndexedItem) -> Iterable[str]:
    if item.memory:
        return (item.memory.origin,)
    if item.chunk:
        return (Origin.DOCUMENT,)
    if item.exchange and item.kind == HitKind.EXCHANGE:
        return (Origin.HUMAN if item.exchange.prompt else Origin.ASSISTANT,)
    return (learned.origin for learned in item.observations)


_Values: TypeAlias = tuple[str, ...]


class Filters(Struct, frozen=True):
    """Conditions for hits. A hit must match at least one value of each filter.

    The annotation of each attribute is its row in the table `FIELDS`. `after` is inclusive, `before` is exclusive.
    """

    after: Annotated[
        Milliseconds | None,
        FilterField(
            "after",
            "First date, inclusive: 2026-03-01, yesterday, last tuesday, 3 weeks ago, march.",
            comparison=Comparison.DATE,
            aliases=("--since",),
            parameter=ToolParameter("YYYY-MM-DD, or words: yesterday, 3 weeks ago, last march"),
        ),
    ] = None
    before: Annotated[
        Milliseconds | None,
        FilterField(
            "before",
            "Last date, inclusive.",
            comparison=Comparison.DATE,
            aliases=("--until",),
            parameter=ToolParameter("YYYY-MM-DD, or words; included"),
        ),
    ] = None
    projects: Annotated[
        _Values,
        FilterField(
            "project",
            "Only this project: name, folder, or `.` (current folder).",
            "NAME",
            _projects,
            Comparison.PROJECT,
            parameter=ToolParameter(),
            unknown="Unknown project",
            in_code=True,
        ),
    ] = ()
    types: Annotated[
        _Values,
        FilterField(
            "type",
            "Only observations of this type: decision, bug-fix, ...",
            "TYPE",
            _types,
            choices=ObservationType,
            parse=ObservationType.parse,
            parameter=ToolParameter(", ".join(ObservationType)),
            one_concept=True,
        ),
    ] = ()
    concepts: Annotated[
        _Values,
        FilterField(
            "concept",
            "Only entries with this tag.",
            "WORD",
            _concepts_of,
            parameter=ToolParameter(),
            unknown="No entry is tagged",
            one_concept=True,
        ),
    ] = ()
    files: Annotated[
        _Values,
        FilterField(
            "file",
            "Only entries that read or modified FILE (also folder/ and globs).",
            "FILE",
            _files,
            Comparison.PATH,
            parameter=ToolParameter("Read or modified"),
            unknown="No entry touched the file",
            in_code=True,
            one_concept=True,
        ),
    ] = ()
    sessions: Annotated[
        _Values,
        FilterField(
            "session",
            "Only this session (its ID or the first characters).",
            "ID",
            _sessions,
            Comparison.BEGINNING,
            parameter=ToolParameter("Session id, or its beginning", is_single=True),
            unknown="No session ID begins with",
        ),
    ] = ()
    tags: Annotated[
        _Values,
        FilterField(
            "tag",
            "Only sessions with this tag of `palaver session tag`.",
            "TAG",
            comparison=Comparison.LABEL,
            parse=_tag,
        ),
    ] = ()
    branches: Annotated[
        _Values,
        FilterField(
            "branch",
            "Only this git branch.",
            "NAME",
            _branches,
            parameter=ToolParameter(is_single=True),
            unknown="Unknown branch",
        ),
    ] = ()
    agents: Annotated[
        _Values,
        FilterField(
            "agent",
            "Only this agent: claude-code, codex, ...",
            "NAME",
            lambda item: (item.session.agent,) if item.session else (),
            parse=agent_named,
            unknown="Unknown agent",
        ),
    ] = ()
    kinds: Annotated[
        _Values,
        FilterField(
            "kind",
            "Only this kind: observation, exchange, memory, ..., command, fix, open.",
            "KIND",
            lambda item: (item.kind,),
            choices=HitKind,
            parameter=ToolParameter(
                "command: to test, lint, build; fix: what mended the error in query; open: unfinished work",
                is_single=True,
            ),
            in_output=False,
        ),
    ] = ()
    origins: Annotated[
        _Values,
        FilterField("origin", "Only this source: human, assistant, tool, ...", "WHO", _origins, choices=Origin),
    ] = ()
    roles: Annotated[
        _Values,
        FilterField(
            "role",
            "Only texts by human, assistant or tool.",
            "WHO",
            comparison=Comparison.ROLE,
            choices=Role,
            in_output=False,
        ),
    ] = ()
    languages: Annotated[
        _Values,
        FilterField(
            "language",
            "Only files in this language: python, go, ...",
            "NAME",
            lambda item: (item.chunk.language,) if item.chunk else (),
            unknown="No file is in the language",
            lists_values=True,
            in_output=False,
            in_code=True,
        ),
    ] = ()
    units: Annotated[
        _Values,
        FilterField(
            "unit",
            "Only code units of this kind: function, class, ...",
            "KIND",
            lambda item: (item.chunk.chunk.unit,) if item.chunk else (),
            unknown="No code unit is of the kind",
            lists_values=True,
            in_output=False,
            in_code=True,
        ),
    ] = ()

    @classmethod
    def parse(cls, *, after: str | None = None, before: str | None = None, **values: Sequence[str]) -> "Filters":
        """Return filters for the values in a request, by the names of the attributes.

        Both dates are inclusive and are parsed by `time_expressions`.

        Raises:
            InvalidInput: A value is invalid.
        """
        start, end = (None, None) if after is None and before is None else between(after, before)
        return cls(start, end, **{attribute: FIELDS[attribute].parsed(given) for attribute, given in values.items()})

    def __bool__(self) -> bool:
        return self != Filters()


FIELDS: Final[Mapping[str, FilterField]] = {field.name: field.type.__metadata__[0] for field in fields(Filters)}
"""Table of the filters: the row of each attribute of `Filters`, by its name."""


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
        most, texts = _limit(limit), _concepts(query)
        refused = [attribute for attribute, field in FIELDS.items() if field.one_concept and filters.get(attribute)]
        if len(texts) > 1 and refused:
            raise FilterNotAllowed(refused)
        return cls(
            texts,
            Mode(*_chosen("mode", [mode], Mode)),
            most,
            Filters.parse(**filters),
            weak,
            Grouping(*_chosen("grouping", [by], Grouping)),
            cursor,
            per_session,
            _rewordings(also, texts),
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


def _chosen(label: str, names: Sequence[str], choices: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct names in lower case. Raises `InvalidInput` for a name that is not in `choices`."""
    chosen = tuple(dict.fromkeys(name.strip().lower() for name in names))
    allowed = [str(name) for name in choices]
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
    if not isinstance(also, list | tuple) or not all(
        isinstance(wording, str) for wording in cast("list[object]", also)
    ):
        raise InvalidInput("`also` must be an array of strings", hint=_ALSO_HINT)
    wordings = [" ".join(checked_length(wording).split()) for wording in cast("list[str]", also)]
    if len(wordings) > ALSO_MAX:
        raise InvalidInput(f"{len(wordings)} other wordings given, at most {ALSO_MAX} allowed", hint=_ALSO_HINT)
    if any(len(wording) < 2 for wording in wordings):
        raise InvalidInput("Another wording is empty or too short", hint="Use at least 2 characters, or leave it out.")
    if wordings and len(concepts) > 1:
        raise InvalidInput(
            "Other wordings apply only to a query of one concept", hint="Search each concept on its own."
        )
    distinct = {wording.casefold(): wording for wording in sorted(wordings)}
    repeated = {" ".join(wording.split()).casefold() for wording in concepts}
    return tuple(sorted(wording for name, wording in distinct.items() if name not in repeated))
