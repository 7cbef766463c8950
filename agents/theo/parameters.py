"""Parameters that several Theo tools have, and their checks."""

from typing import Annotated, Any, TypeAlias

from pydantic import Field

from ...core.errors import InvalidInput, InvalidMemoryType
from ...core.memory import Relation
from ...core.memory_filter import MemoryFilter
from ...core.memory_types import FAMILIES, GOLDEN_RULE
from ...observe.memory import MemoryCore
from ..toolset import WholeNumber

RESULTS_MAX = 50
TYPES = ("preference", "decision", "pattern", "session", "fact")
RELATIONS = tuple(Relation)

MemoryId: TypeAlias = Annotated[str, Field(description="Memory ID, such as mem_7")]
SessionId: TypeAlias = Annotated[str | None, Field(description="Session in which it was applied")]
MinImportance: TypeAlias = Annotated[float | None, Field(description="Minimum importance, 0.0-1.0")]
MinConfidence: TypeAlias = Annotated[float | None, Field(description="Minimum confidence, 0.0-1.0")]
SearchQuery: TypeAlias = Annotated[str, Field(description="Question or keywords")]
Namespace: TypeAlias = Annotated[str | None, Field(description="Only this namespace")]
MemoryType: TypeAlias = Annotated[str | None, Field(description="Only this type")]
Limit: TypeAlias = Annotated[WholeNumber, Field(description="Maximum number of results")]
Offset: TypeAlias = Annotated[WholeNumber, Field(description="Results to skip")]
Count: TypeAlias = Annotated[
    WholeNumber,
    Field(json_schema_extra={"minimum": 1, "maximum": RESULTS_MAX}, description="Maximum number of results"),
]
Direction: TypeAlias = Annotated[
    str, Field(json_schema_extra={"enum": ["outgoing", "incoming", "both"]}, description="Which edges to follow")
]
MemoryKind: TypeAlias = Annotated[str, Field(json_schema_extra={"enum": [*TYPES]}, description="Type of the memory")]
Object: TypeAlias = dict[str, Any]


def checked_count(value: int, maximum: int = RESULTS_MAX) -> int:
    """Return `value`, a maximum number of results. Raises `InvalidInput` unless it is from 1 to `maximum`."""
    if not 1 <= value <= maximum:
        raise InvalidInput(f"Invalid number of results: {value}", hint=f"Ask for 1 to {maximum}.")
    return value


def checked_fraction(name: str, value: float) -> float:
    """Return `value`. Raises `InvalidInput`, with `name` in the message, unless `value` is from 0 to 1."""
    if not 0 <= value <= 1:
        raise InvalidInput(f"Invalid {name}: {value}", hint="Give a number from 0.0 to 1.0.")
    return value


def memory_filter(
    core: MemoryCore,
    namespace: str | None,
    memory_type: str | None,
    min_importance: float | None = None,
    min_confidence: float | None = None,
) -> MemoryFilter:
    """Return the memory filter of a call. Raises `InvalidMemoryType` for an unknown type."""
    known = {*FAMILIES, GOLDEN_RULE}
    if memory_type is not None and memory_type not in known and memory_type not in core.count_by("type"):
        raise InvalidMemoryType(memory_type, hint=f"Use one of: {', '.join((*TYPES, GOLDEN_RULE))}.")
    return MemoryFilter(
        namespaces=(namespace,) if namespace else (),
        types=(memory_type,) if memory_type else (),
        min_importance=checked_fraction("min_importance", min_importance or 0.0),
        min_confidence=checked_fraction("min_confidence", min_confidence or 0.0),
    )
