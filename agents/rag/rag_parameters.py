"""Parameters that several rag tools have, and functions that clean the texts and metadata of callers."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import Field

from ..toolset import WHOLE

CategoryName: TypeAlias = Literal["preference", "fact", "event", "workflow", "context"]
ScopeName: TypeAlias = Literal["global", "project"]
LevelName: TypeAlias = Literal["USER_PREFERENCE", "PROJECT_CONTEXT", "SESSION_STATE"]
LanguageName: TypeAlias = Literal["python", "javascript", "typescript", "java", "go", "rust"]

MemoryQuery: TypeAlias = Annotated[str, Field(min_length=1, max_length=1_000, description="Question or keywords")]
MemoryLimit: TypeAlias = Annotated[int, Field(ge=1, le=100, description="Maximum number of results"), WHOLE]
CodeLimit: TypeAlias = Annotated[int, Field(ge=1, le=50, description="Maximum number of results"), WHOLE]

_KEY_MAX, _VALUE_MAX = 100, 1_000
"""Maximum characters of a metadata key, and of a metadata value. Longer texts are truncated."""
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def without_controls(text: str) -> str:
    """Return a text without null bytes and control characters, except newlines and tabs."""
    return _CONTROL.sub("", text)


def lower_tags(tags: list[str] | None) -> tuple[str, ...]:
    """Return distinct tags in lower case, without empty tags."""
    shown = (" ".join(without_controls(tag).lower().split()) for tag in tags or ())
    return tuple(dict.fromkeys(filter(None, shown)))


def flat_metadata(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return metadata without nesting: nested values become texts. Long keys and texts are truncated."""
    return {without_controls(name)[:_KEY_MAX]: _flat(value) for name, value in (metadata or {}).items()}


def _flat(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    return without_controls(str(value))[:_VALUE_MAX]
