"""Edits: what is to change about a memory, and everything it said before, so that it can be seen and undone."""

from collections.abc import Mapping
from typing import Any

import orjson
from msgspec import Struct
from msgspec.structs import asdict, replace

from ...core.conversation import Milliseconds
from ...core.memory import Memory, StoredMemory
from ...core.memory_types import GOLDEN_RULE
from ...core.origin import Origin, least

_CONFIDENCE = "confidence"


class Revision(Struct, frozen=True):
    """What to change; None leaves a thing as it is. Tags replace, metadata is merged, and a key with None goes.

    `origin` says whose edit it is: the memory's own never rises by it.
    """

    content: str | None = None
    type: str | None = None
    title: str | None = None
    namespace: str | None = None
    project: str | None = None
    level: str | None = None
    importance: float | None = None
    tags: tuple[str, ...] | None = None
    metadata: Mapping[str, Any] | None = None
    path: str | None = None
    pinned: bool | None = None
    valid_from: Milliseconds | None = None
    valid_until: Milliseconds | None = None
    origin: Origin = Origin.ASSISTANT

    def applied(self, held: StoredMemory) -> Memory:
        """What the memory says afterwards; raises `InvalidInput` where it could not be stored so."""
        names = [name for name in _REPLACED if getattr(self, name) is not None]
        changed = replace(held.memory, **{name: getattr(self, name) for name in names})
        if self.metadata is not None:
            merged = {**held.memory.metadata, **self.metadata}
            changed = replace(changed, metadata={name: value for name, value in merged.items() if value is not None})
        if self.content is not None and self.content != held.memory.content:
            changed = replace(changed, origin=least([held.memory.origin, self.origin]))
        if changed.type != held.memory.type or held.memory.type != GOLDEN_RULE:
            return changed.checked()
        replace(changed, type=held.stats.promoted_from).checked()
        return changed

    def replaces(self, held: StoredMemory) -> bool:
        """Whether the memory would afterwards claim something else, so that what it earned is not its own any more."""
        said, kind = self.content not in {None, held.memory.content}, self.type not in {None, held.memory.type}
        return said or kind or self.valid_until is not None


_REPLACED = (
    "content",
    "type",
    "title",
    "namespace",
    "project",
    "level",
    "importance",
    "tags",
    "path",
    "pinned",
    "valid_from",
    "valid_until",
)


def told(held: StoredMemory) -> str:
    """What a memory says and how sure it is, as JSON: what `MemoryEvent.before` keeps."""
    return written(held.memory, held.stats.confidence)


def written(memory: Memory, confidence: float) -> str:
    """The same, of a memory and its confidence."""
    return orjson.dumps({**asdict(memory), _CONFIDENCE: confidence}).decode()


def retold(before: str) -> Memory:
    """The memory that `told` wrote down."""
    values: dict[str, Any] = orjson.loads(before)
    values |= {"tags": tuple(values["tags"]), "origin": Origin(values["origin"])}
    del values[_CONFIDENCE]
    return Memory(**values)


def confidence_told(before: str) -> float:
    """The confidence that `told` wrote down."""
    return float(orjson.loads(before)[_CONFIDENCE])
