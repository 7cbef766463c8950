"""What is held to be true: memories, what became of them, and how they hang together.

One record serves every surface. Where their words differ, this is what they mean here:

- `importance` (0-1) is how much it matters; a weight w of 1-5 is the importance (w - 1) / 4.
- `confidence` (0-1) is earned by outcomes only. What a caller declares about its own certainty is metadata.
- `namespace` says where it holds; scope and layer follow from it: `session:NAME` is layer 1, `project:NAME` layer 2,
  `global` and `default` layer 3.
- Times are `Milliseconds`; a time-to-live is a `valid_until`.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from hashlib import sha256
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from . import ids
from .conversation import Milliseconds
from .errors import InvalidInput, InvalidNamespace
from .memory_types import GOLDEN_RULE, Family, family_of, storable
from .origin import Origin

CONTENT_MAX = 51_200
"""Bytes of UTF-8 that a memory's content may have."""
GOLDEN_FROM, STARTS_AT = 0.9, 0.3
"""From which confidence on a memory is protected, and with which one it starts."""
SESSION_LIFETIME = 48 * 3_600_000
"""Milliseconds after which the memory of a session expires, unless it was stored with another end."""
PROJECT = "project:"
"""The beginning of the namespace of a project."""
_NAME_MAX = 200
_NAMESPACE = re.compile(rf"default|global|(?:project|session):[\w-]{{1,{_NAME_MAX}}}")
_UNFIT = re.compile(r"[^\w-]+")


class MemoryState(StrEnum):
    """State of a memory. Active and superseded ones are found; archived ones can be restored."""

    ACTIVE = "active"
    SUPERSEDED = "superseded"
    ARCHIVED = "archived"


class Relation(StrEnum):
    """How one memory stands to another."""

    RELATES_TO = "relates_to"
    SUPERSEDES = "supersedes"
    CAUSED_BY = "caused_by"
    CONTRADICTS = "contradicts"


class EventKind(StrEnum):
    """What can happen to a memory."""

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


def spoken(what: MemoryState | EventKind) -> str:
    """A state or an event as people call it: archived is what is kept, and this was forgotten by `palaver forget`."""
    return "forgotten" if what in {MemoryState.ARCHIVED, EventKind.ARCHIVED} else str(what)


VALIDATION = (EventKind.APPLIED, EventKind.SUCCEEDED, EventKind.FAILED)
"""The events by which confidence is earned."""


class Memory(Struct, frozen=True):
    """One thing held to be true, without identity: what is said, where it holds, whose word it is.

    `level` is a surface's own classification beside the type; `source` says by what way it came (a surface's word, such
    as `user_explicit`); `session_id` is the session in which it was stored; `path` is the file it is kept in, where a
    surface keeps it in one. `metadata` is JSON.
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
        """SHA-256 of the content."""
        return sha256(self.content.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def layer(self) -> int:
        """1 for a session's working memory, 2 for a project's, 3 for what holds everywhere."""
        return {"session": 1, "project": 2}.get(self.namespace.partition(":")[0], 3)

    @property
    def weight(self) -> int:
        """The importance as a weight of 1 to 5."""
        return round(1 + 4 * self.importance)

    def expiring(self, at: Milliseconds) -> "Memory":
        """Return the memory as stored at this time: a session's memory gets an end, unless it has one or is pinned."""
        of_session = self.layer == 1 or family_of(self.type) is Family.SESSION
        if not of_session or self.pinned or self.valid_until is not None:
            return self
        return replace(self, valid_until=at + SESSION_LIFETIME)

    def checked(self) -> "Memory":
        """The memory itself when it can be stored; raises the `InvalidInput` that says what to correct."""
        if not self.content.strip():
            raise InvalidInput("Content cannot be empty", hint="Say what to remember.")
        if len(self.content.encode("utf-8", "surrogatepass")) > CONTENT_MAX:
            raise InvalidInput(f"Content is over {CONTENT_MAX:,} bytes", hint="Store it in parts, one claim each.")
        if not 0 <= self.importance <= 1:
            raise InvalidInput(f"Importance out of range: {self.importance}", hint="Give a number from 0.0 to 1.0.")
        named_namespace(self.namespace)
        storable(self.type)
        return self


class MemoryStats(Struct, frozen=True):
    """Statistics of a memory's outcomes. Counts never decrease; `strikes` count failures since its promotion."""

    confidence: float = STARTS_AT
    successes: int = 0
    failures: int = 0
    strikes: int = 0
    promoted_from: str = ""


class StoredMemory(Struct, frozen=True):
    """A memory as the store holds it. `accessed` and `accesses` count what was recalled, and earn nothing."""

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
        """The public id, as in `mem_1042`."""
        return ids.show("memory", self.key)

    @property
    def protected(self) -> bool:
        """Return whether it is a golden rule, or as trusted as one, so that only force changes or forgets it."""
        return self.memory.type == GOLDEN_RULE or self.stats.confidence >= GOLDEN_FROM

    @property
    def family(self) -> Family:
        """What its type means; a golden rule is still what it was promoted from."""
        return family_of(self.stats.promoted_from or self.memory.type)

    def is_valid_at(self, at: Milliseconds) -> bool:
        """Return whether it is stored, superseded or not, and valid at an instant."""
        begun = self.memory.valid_from is None or self.memory.valid_from <= at
        ended = self.memory.valid_until is not None and self.memory.valid_until <= at
        return self.state is not MemoryState.ARCHIVED and begun and not ended


class Edge(Struct, frozen=True):
    """A typed arrow between two memories. `weight` is 0-1, `reason` says why it was drawn and by whom.

    `proposed` marks a `supersedes` edge that is not applied: its target stays as it is.
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
        """True if its two memories cannot both be true, and both are active."""
        return self.proposed or self.relation is Relation.CONTRADICTS

    @property
    def source_id(self) -> str:
        """The public id of the memory it begins at."""
        return ids.show("memory", self.source)

    @property
    def target_id(self) -> str:
        """The public id of the memory it ends at."""
        return ids.show("memory", self.target)


class MemoryEvent(Struct, frozen=True):
    """Something that happened to a memory. `before` is what an edit replaced, for the person's history and for undo."""

    memory: int
    kind: EventKind
    at: Milliseconds
    context: str = ""
    session_id: str = ""
    before: str = ""
    id: int = 0


def named_namespace(namespace: str) -> str:
    """Return a namespace that memories can have; raises `InvalidNamespace` for any other."""
    if not _NAMESPACE.fullmatch(namespace):
        raise InvalidNamespace(namespace)
    return namespace


def project_namespace(project: str) -> str:
    """Return the plain namespace of a project, given its name or its folder; `global` for none."""
    name = _UNFIT.sub("-", project.rstrip("/\\").replace("\\", "/").rpartition("/")[2])[: _NAME_MAX - 4].strip("-")
    return f"{PROJECT}{name}" if name else "global"
