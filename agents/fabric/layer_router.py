"""Choice of a layer (session, project or all projects) for a new memory, by the first rule that matches."""

from collections.abc import Iterable
from typing import Final, Literal, TypeAlias

from msgspec import Struct

Layer: TypeAlias = Literal[1, 2, 3]

_TAGS: Final[tuple[tuple[Layer, frozenset[str]], ...]] = (
    (1, frozenset({"temp", "temporary"})),
    (3, frozenset({"global", "universal"})),
    (2, frozenset({"project", "local"})),
)
_TYPES: Final[dict[str, tuple[Layer, float]]] = {
    "scratchpad": (1, 0.95),
    "code_pattern": (3, 0.9),
    "convention": (3, 0.9),
    "decision": (2, 0.85),
    "bug_fix": (2, 0.85),
    "relationship": (3, 0.85),
}


class Route(Struct, frozen=True):
    """Layer of a new memory, with the reason and the confidence of the choice, 0 to 1."""

    layer: Layer
    reason: str
    confidence: float


def route(memory_type: str, tags: Iterable[str], layer: Layer | None, ttl: float | None) -> Route:
    """Return the requested layer, or else the layer that follows from the tags, the time-to-live or the type.

    The case of tags is ignored.
    """
    if layer is not None:
        return Route(layer, "requested layer", 1.0)
    lowered = {tag.strip().lower() for tag in tags}
    for each, names in _TAGS:
        if found := sorted(lowered & names):
            return Route(each, f"tag {found[0]}", 0.95)
    if ttl is not None:
        return Route(1, "time-to-live", 0.9)
    if memory_type in _TYPES:
        each, confidence = _TYPES[memory_type]
        return Route(each, f"type {memory_type}", confidence)
    return Route(2, "default", 0.6)
