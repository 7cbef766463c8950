"""Messages: the body of a call that wants an answer of one shape, and how that shape is read."""

from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

from .errors import ExtractionError, ModelBusy, ReplyInvalid


class Closed(BaseModel):
    """What a model answers: nothing may stand in it that was not asked for."""

    model_config = ConfigDict(extra="forbid", frozen=True)


Shape = TypeVar("Shape", bound=Closed)


def body(model: str, tokens_out: int, system: str, text: str, shape: type[Closed]) -> dict[str, Any]:
    """The body of a call of the Messages API. What is told each time, `system`, can be cached."""
    return {
        "model": model,
        "max_tokens": tokens_out,
        "system": [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}],
        "messages": [{"role": "user", "content": text}],
        "output_config": {"format": {"type": "json_schema", "schema": _schema(shape)}},
    }


@cache
def _schema(shape: type[Closed]) -> dict[str, Any]:
    """Derived from the types; they use only what constrained decoding supports."""
    return shape.model_json_schema()


def parsed(text: str, shape: type[Shape]) -> Shape:
    """The shape in a model's text, around which some servers put fences; raises pydantic's `ValidationError`."""
    start, end = text.find("{"), text.rfind("}")
    return shape.model_validate_json(text[start : end + 1])


def may_be_charged(error: ExtractionError) -> bool:
    """Whether a call that brought nothing may have been worked on all the same, so that its money stays reserved."""
    return isinstance(error, ReplyInvalid) or (isinstance(error, ModelBusy) and error.unsure)
