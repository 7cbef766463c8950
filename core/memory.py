"""Memories: content that users and agents store explicitly, with types, state, statistics, edges and filters.

All toolsets share one record. Its fields have these meanings:

- The caller sets `importance` (0-1). A weight w of 1-5 is the importance (w - 1) / 4.
- `confidence` (0-1) depends on reported outcomes alone. If a caller states a certainty, it is stored in `metadata`.
- `namespace` is the scope and determines the layer: `session:NAME` is layer 1, `project:NAME` layer 2, `global` and
  `default` layer 3.
- Times are `Milliseconds`. A time-to-live is stored as `valid_until`.
- The vocabulary of types is open. Each known type belongs to a family, because toolsets name the same kind
  differently, such as `pattern` and `code_pattern`. An unknown type belongs to `fact`, but a toolset may reject it.
- Only the toolset `rag` sets both `level` and a category, as the type. Other memories get defaults.
"""

import re
from collections.abc import Collection, Mapping
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from . import ids
from .conversation import Milliseconds, Origin, least
from .errors import InvalidInput, InvalidMemoryType, InvalidNamespace
from .text import nfc

GOLDEN_RULE = "golden_rule"
"""Type of a memory that proved useful and that the user approved. Callers cannot store this type directly."""


class Family(StrEnum):
    """Meaning of a type, independent of the toolset."""

    PREFERENCE = "preference"
    DECISION = "decision"
    PATTERN = "pattern"
    FACT = "fact"
    ISSUE = "issue"
    SESSION = "session"
    SUMMARY = "summary"

    @property
    def promotes(self) -> bool:
        """True if memories of the family can become golden rules."""
        return self in {Family.PREFERENCE, Family.DECISION, Family.PATTERN}


HISTORIAN_TYPES: Final = {
    "architectural-decision": "A decision about the overall architecture, with its reasons",
    "design-decision": "A decision about the design of a part, with its reasons",
    "learning": "An insight gained while working",
    "user-preference": "A preference of the user in every project",
    "project-preference": "A preference for this project",
    "issue": "A known problem, with its cause or workaround",
    "context": "General background; use it if no other type fits",
    "recurring-pattern": "A solution that was used repeatedly",
    "conventions-pattern": "A rule of naming, style or layout",
}
"""Types of the Historian toolset, with their descriptions."""

FAMILIES: Final = {
    "preference": Family.PREFERENCE,
    "decision": Family.DECISION,
    "pattern": Family.PATTERN,
    "session": Family.SESSION,
    "fact": Family.FACT,
    "architectural-decision": Family.DECISION,
    "design-decision": Family.DECISION,
    "learning": Family.FACT,
    "user-preference": Family.PREFERENCE,
    "project-preference": Family.PREFERENCE,
    "issue": Family.ISSUE,
    "context": Family.FACT,
    "recurring-pattern": Family.PATTERN,
    "conventions-pattern": Family.PATTERN,
    "event": Family.SESSION,
    "workflow": Family.PATTERN,
    "code_pattern": Family.PATTERN,
    "bug_fix": Family.ISSUE,
    "convention": Family.PATTERN,
    "scratchpad": Family.SESSION,
    "relationship": Family.PREFERENCE,
    "summary": Family.SUMMARY,
}
"""Family of each known type."""


def family_of(name: str) -> Family:
    """Return the family of a type, or `fact` for an unknown type."""
    return FAMILIES.get(name, Family.FACT)


def known_type(name: str, stored: Collection[str] = ()) -> str:
    """Return the name if it is a known type or the type of a stored memory. Raises `InvalidMemoryType` otherwise."""
    plain = name.strip()
    if plain in stored:
        return plain
    if plain.lower() not in {*FAMILIES, GOLDEN_RULE}:
        raise InvalidMemoryType(name, hint=f"Use one of: {', '.join(dict.fromkeys((*FAMILIES, *stored)))}.")
    return plain.lower()


def storable(name: str) -> str:
    """Return a type without surrounding spaces. Raises `InvalidMemoryType` for `golden_rule` or an invalid name."""
    plain = name.strip()
    if not plain or not plain.replace("_", "").replace("-", "").isalnum():
        raise InvalidMemoryType(name, hint=f"Use one of: {', '.join(FAMILIES)}, or a word of your own.")
    if plain == GOLDEN_RULE:
        raise InvalidMemoryType(
            name, hint="Golden rules cannot be stored. Store a preference, decision or pattern and report outcomes."
        )
    return plain


class ContextLevel(StrEnum):
    """Level of a memory: it concerns the user, a project or one session. Memories of `SESSION_STATE` expire."""

    USER_PREFERENCE = "USER_PREFERENCE"
    PROJECT_CONTEXT = "PROJECT_CONTEXT"
    SESSION_STATE = "SESSION_STATE"


class Category(StrEnum):
    """Category of a memory: the kind of its content, such as a preference or a workflow."""

    PREFERENCE = "preference"
    FACT = "fact"
    EVENT = "event"
    WORKFLOW = "workflow"
    CONTEXT = "context"


CATEGORY_OF: Final[Mapping[Family, Category]] = {
    Family.PREFERENCE: Category.PREFERENCE,
    Family.DECISION: Category.FACT,
    Family.PATTERN: Category.WORKFLOW,
    Family.FACT: Category.FACT,
    Family.ISSUE: Category.FACT,
    Family.SESSION: Category.EVENT,
    Family.SUMMARY: Category.CONTEXT,
}
"""Default categories: map the family of a memory to its category. Used if the type of the memory is not a category."""
LEVEL_OF: Final[Mapping[Category, ContextLevel]] = {
    Category.PREFERENCE: ContextLevel.USER_PREFERENCE,
    Category.FACT: ContextLevel.PROJECT_CONTEXT,
    Category.EVENT: ContextLevel.SESSION_STATE,
    Category.WORKFLOW: ContextLevel.PROJECT_CONTEXT,
    Category.CONTEXT: ContextLevel.PROJECT_CONTEXT,
}
"""Default levels: map the category of a memory to its level. Used if the memory has no level of its own."""


def category_of(memory_type: str, family: Family) -> Category:
    """Return the category of a memory: its type if that is a category, otherwise the default category of its family."""
    return Category(memory_type) if memory_type in frozenset(Category) else CATEGORY_OF[family]


def level_of(level: str, category: Category) -> ContextLevel:
    """Return the stored level of a memory, or the default level of its category if it has none."""
    return ContextLevel(level) if level in frozenset(ContextLevel) else LEVEL_OF[category]


def families_of(category: Category) -> tuple[Family, ...]:
    """Return the families that have this category as their default (see `CATEGORY_OF`)."""
    return tuple(family for family, each in CATEGORY_OF.items() if each is category)


CONTENT_MAX = 51_200
"""Maximum size of the content of a memory, in bytes of UTF-8."""
GOLDEN_FROM, STARTS_AT = 0.9, 0.3
"""Confidence from which a memory is protected, and confidence of a new memory."""
SESSION_LIFETIME = 48 * 3_600_000
"""Milliseconds until a session memory expires, unless it is stored with another expiry time."""
PROJECT, SESSION = "project:", "session:"
"""Prefix of the namespaces of projects, and prefix of the namespaces of sessions."""
_NAME_MAX = 200
_PLAIN_MAX = 180
"""Maximum characters of a session ID in a namespace. A hash replaces the rest of a longer ID."""
_NAMESPACE = re.compile(rf"default|global|(?:project|session):[\w-]{{1,{_NAME_MAX}}}")
_UNFIT = re.compile(r"[^\w-]+")


class MemoryState(StrEnum):
    """State of a memory.

    Search finds active and superseded memories. An archived memory was forgotten. It is not found, but can be restored.
    """

    ACTIVE = "active"
    SUPERSEDED = "superseded"
    ARCHIVED = "archived"


class Relation(StrEnum):
    """Relation of a memory to another, such as `supersedes`."""

    RELATES_TO = "relates_to"
    SUPERSEDES = "supersedes"
    CAUSED_BY = "caused_by"
    CONTRADICTS = "contradicts"


class EventKind(StrEnum):
    """Kind of event in the history of a memory."""

    CREATED = "created"
    EDITED = "edited"
    APPLIED = "applied"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    PROMOTED = "promoted"
    DEMOTED = "demoted"
    DECLINED = "declined"
    DECAYED = "decayed"
    SUPERSEDED = "superseded"
    ARCHIVED = "archived"
    RESTORED = "restored"


def state_label(state: MemoryState | EventKind) -> str:
    """Return the label of a state or event for users. Archived memories are called `forgotten`."""
    return "forgotten" if state in {MemoryState.ARCHIVED, EventKind.ARCHIVED} else str(state)


VALIDATION = (EventKind.APPLIED, EventKind.SUCCEEDED, EventKind.FAILED)
"""Events in the validation history of a memory: its applications and their outcomes."""


class Memory(Struct, frozen=True):
    """Content, scope and origin of a memory, without its ID.

    `level` is a classification by the toolset, in addition to the type. `source` states how the memory was created,
    such as `user_explicit`. `session_id` is the session that stored the memory. `path` is the file of the memory, if
    the toolset uses files. `metadata` is JSON.
    """

    content: str
    type: str = "fact"
    title: str = ""
    namespace: str = "global"
    project: str = ""
    level: str = ""
    importance: float = 0.5
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    source: str = ""
    origin: Origin = Origin.ASSISTANT
    session_id: str = ""
    path: str = ""
    pinned: bool = False
    valid_from: Milliseconds | None = None
    valid_until: Milliseconds | None = None

    @property
    def content_hash(self) -> str:
        """SHA-256 of the content, in hexadecimal."""
        return sha256(self.content.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def layer(self) -> int:
        """Layer of the namespace: 1 for a session, 2 for a project, 3 for all projects."""
        return {"session": 1, "project": 2}.get(self.namespace.partition(":")[0], 3)

    @property
    def weight(self) -> int:
        """Importance as a weight of 1 to 5."""
        return round(1 + 4 * self.importance)

    def is_current_at(self, at: Milliseconds) -> bool:
        """Return whether an instant is within the period in which the memory is valid."""
        begun = self.valid_from is None or self.valid_from <= at
        return begun and (self.valid_until is None or self.valid_until > at)

    def expiring(self, at: Milliseconds) -> "Memory":
        """Return the memory. If it is an unpinned session memory without an expiry time, set the expiry time."""
        if self.layer == 1:
            of_session = True
        elif self.level:
            of_session = self.level == ContextLevel.SESSION_STATE
        else:
            of_session = family_of(self.type) is Family.SESSION
        if not of_session or self.pinned or self.valid_until is not None:
            return self
        return replace(self, valid_until=at + SESSION_LIFETIME)

    def checked(self) -> "Memory":
        """Return the memory itself if it is valid.

        Raises:
            InvalidInput: The content, importance, namespace or type is invalid.
        """
        if not self.content.strip():
            raise InvalidInput("Content cannot be empty", hint="Give the text to remember.")
        if len(self.content.encode("utf-8", "surrogatepass")) > CONTENT_MAX:
            raise InvalidInput(
                f"Content is longer than {CONTENT_MAX:,} bytes", hint="Split it into several memories, one claim each."
            )
        if not 0 <= self.importance <= 1:
            raise InvalidInput(f"Importance out of range: {self.importance}", hint="Give a number from 0.0 to 1.0.")
        valid_namespace(self.namespace)
        storable(self.type)
        return self


class MemoryStats(Struct, frozen=True):
    """Statistics of a memory's outcomes. `strikes` counts the consecutive failures of a golden rule."""

    confidence: float = STARTS_AT
    successes: int = 0
    failures: int = 0
    strikes: int = 0
    promoted_from: str = ""


class StoredMemory(Struct, frozen=True):
    """Memory with its identity, statistics, state and times. Each recall sets `accessed` and increments `accesses`."""

    key: int
    memory: Memory
    stats: MemoryStats
    state: MemoryState
    created: Milliseconds
    updated: Milliseconds
    accessed: Milliseconds | None = None
    accesses: int = 0
    decayed: Milliseconds | None = None

    @property
    def id(self) -> str:
        """Public ID, such as `mem_1042`."""
        return ids.show("memory", self.key)

    @property
    def protected(self) -> bool:
        """True for a golden rule, and for a confidence of at least `GOLDEN_FROM`.

        Changing or forgetting a protected memory needs `force`.
        """
        return self.memory.type == GOLDEN_RULE or self.stats.confidence >= GOLDEN_FROM

    @property
    def family(self) -> Family:
        """Family of the memory's type. A golden rule has the family of its former type."""
        return family_of(self.stats.promoted_from or self.memory.type)

    @property
    def category(self) -> Category:
        """Category of the memory: its type if that is a category, otherwise the default category of its family."""
        return category_of(self.memory.type, self.family)

    @property
    def level(self) -> ContextLevel:
        """Context level of the memory, or the default of its category."""
        return level_of(self.memory.level, self.category)

    def is_valid_at(self, at: Milliseconds) -> bool:
        """Return whether the memory is valid at an instant and not forgotten."""
        return self.state is not MemoryState.ARCHIVED and self.memory.is_current_at(at)


class MemoryRevision(Struct, frozen=True):
    """Changes to a memory. None leaves a field unchanged.

    Metadata is merged with the stored metadata, and a metadata value of None removes its key. `origin` is the author of
    the revision. If the content changes, the memory gets the less trusted of its former origin and this origin.
    """

    content: str | None = None
    type: str | None = None
    title: str | None = None
    namespace: str | None = None
    project: str | None = None
    level: str | None = None
    importance: float | None = None
    tags: tuple[str, ...] | None = None
    path: str | None = None
    pinned: bool | None = None
    valid_from: Milliseconds | None = None
    valid_until: Milliseconds | None = None
    metadata: Mapping[str, Any] | None = None
    origin: Origin = Origin.ASSISTANT

    def applied_to(self, stored: StoredMemory) -> Memory:
        """Return the memory after the revision. Raises `InvalidInput` if the result cannot be stored."""
        changed_fields = {name: value for name, value in asdict(self).items() if value is not None}
        del changed_fields["origin"]
        if self.metadata is not None:
            merged = {**stored.memory.metadata, **self.metadata}
            changed_fields["metadata"] = {name: value for name, value in merged.items() if value is not None}
        changed = replace(stored.memory, **changed_fields)
        if changed.content != stored.memory.content:
            changed = replace(changed, origin=least([stored.memory.origin, self.origin]))
        if changed.type != GOLDEN_RULE or stored.memory.type != GOLDEN_RULE:
            return changed.checked()
        replace(changed, type=stored.stats.promoted_from).checked()
        return changed

    def changes_claim(self, stored: StoredMemory) -> bool:
        """Return whether the revision changes the content, type or expiry, which makes the statistics obsolete."""
        content = self.content not in {None, stored.memory.content}
        return content or self.type not in {None, stored.memory.type} or self.valid_until is not None


class Edge(Struct, frozen=True):
    """Typed and directed edge between two memories.

    `weight` is 0-1. `reason` states why the edge was added, and by whom. `proposed` is true for a `supersedes` edge
    that is only a suggestion. Such an edge does not change the state of its target.
    """

    source: int
    target: int
    relation: Relation
    weight: float = 1.0
    reason: str = ""
    inferred: bool = False
    proposed: bool = False
    id: int = 0

    @property
    def disagrees(self) -> bool:
        """True if the memories cannot both be true: for a `contradicts` edge and a proposed `supersedes` edge."""
        return self.proposed or self.relation is Relation.CONTRADICTS

    @property
    def source_id(self) -> str:
        """Public ID of the memory at the start of the edge."""
        return ids.show("memory", self.source)

    @property
    def target_id(self) -> str:
        """Public ID of the memory at the end of the edge."""
        return ids.show("memory", self.target)


class MemoryEvent(Struct, frozen=True):
    """Event in the history of a memory. `before` is a snapshot of the memory before the event, or empty."""

    memory: int
    kind: EventKind
    at: Milliseconds
    context: str = ""
    session_id: str = ""
    before: str = ""
    id: int = 0


def valid_namespace(namespace: str) -> str:
    """Return the namespace if it is valid. Raises `InvalidNamespace` otherwise."""
    if not _NAMESPACE.fullmatch(namespace):
        raise InvalidNamespace(namespace)
    return namespace


def project_namespace(project: str) -> str:
    """Return the namespace of a project by its name or folder, or `global` for an empty name.

    For two projects of the same name, this function returns the same namespace. `ProjectTable` adds a number to make
    their namespaces different.
    """
    name = _UNFIT.sub("-", nfc(project).rstrip("/\\").replace("\\", "/").rpartition("/")[2])[: _NAME_MAX - 4].strip("-")
    return f"{PROJECT}{name}" if name else "global"


def session_namespace(session_id: str) -> str:
    """Return the namespace of a session, such as `session:NAME`.

    If the ID is too long or has characters that a namespace cannot contain, the namespace ends with a hash of the ID.
    No two sessions therefore share a namespace.
    """
    name = _UNFIT.sub("-", session_id)[:_PLAIN_MAX]
    if name == session_id and name:
        return f"{SESSION}{name}"
    return f"{SESSION}{name}-{sha256(session_id.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


ACTIVE = (MemoryState.ACTIVE,)
STORED = (MemoryState.ACTIVE, MemoryState.SUPERSEDED)


class MemoryOrder(StrEnum):
    """Field by which a list of memories is sorted."""

    CREATED = "created_at"
    UPDATED = "updated_at"
    ACCESSED = "accessed_at"
    IMPORTANCE = "importance"
    CONFIDENCE = "confidence"


class MemoryFilter(Struct, frozen=True):
    """Conditions for a memory. Fields are combined with AND, the values of one field with OR.

    An empty field is not a condition.

    Attributes:
        projects: Values of `Memory.project`. Memories in a namespace `project:NAME` match regardless of this condition.
        protected: True for protected memories only, False for other memories only.
        states: States of the memories.
        valid_at: Time at which the memories must be valid. None also admits expired memories, except that lists and
            counts with the default `states` then use the current time.
    """

    namespaces: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    categories: tuple[Category, ...] = ()
    levels: tuple[ContextLevel, ...] = ()
    states: tuple[MemoryState, ...] = STORED
    min_importance: float = 0.0
    min_confidence: float = 0.0
    pinned: bool | None = None
    protected: bool | None = None
    created_before: Milliseconds | None = None
    created_from: Milliseconds | None = None
    valid_at: Milliseconds | None = None

    def admits(self, stored: StoredMemory) -> bool:
        """Return whether a memory satisfies the filter."""
        memory, at = stored.memory, self.valid_at
        conditions = (
            not self.namespaces or memory.namespace in self.namespaces,
            not self.projects or memory.namespace.startswith(PROJECT) or memory.project in self.projects,
            not self.types or memory.type in self.types,
            not self.states or stored.state in self.states,
            not self.tags or not set(self.tags).isdisjoint(memory.tags),
            not self.categories or stored.category in self.categories,
            not self.levels or stored.level in self.levels,
            memory.importance >= self.min_importance,
            stored.stats.confidence >= self.min_confidence,
            self.pinned is None or memory.pinned is self.pinned,
            self.protected is None or stored.protected is self.protected,
            self.created_before is None or stored.created < self.created_before,
            self.created_from is None or stored.created >= self.created_from,
            at is None or memory.is_current_at(at),
        )
        return all(conditions)


def order_of(name: str) -> MemoryOrder:
    """Return the sort order with this name. Raises `InvalidInput` for an unknown name."""
    try:
        return MemoryOrder(name)
    except ValueError:
        raise InvalidInput(f"Invalid order: {name}", hint=f"Use one of: {', '.join(MemoryOrder)}.") from None
