"""Request bodies of the Messages API with a JSON schema, and parsing of the replies."""

from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

from .model_errors import ExtractionError, ModelBusy, ReplyInvalid


class Closed(BaseModel):
    """Reply model that accepts no additional fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


Shape = TypeVar("Shape", bound=Closed)


def build_body(model: str, tokens_out: int, system: str, text: str, shape: type[Closed]) -> dict[str, Any]:
    """Return the body of a call. The system prompt is marked as cacheable."""
    return {
        "model": model,
        "max_tokens": tokens_out,
        "system": [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}],
        "messages": [{"role": "user", "content": text}],
        "output_config": {"format": {"type": "json_schema", "schema": _schema(shape)}},
    }


@cache
def _schema(shape: type[Closed]) -> dict[str, Any]:
    return shape.model_json_schema()


def parse_reply(text: str, shape: type[Shape]) -> Shape:
    """Parse the JSON object in a reply; some servers put fences around it. Raises `pydantic.ValidationError`."""
    start, end = text.find("{"), text.rfind("}")
    return shape.model_validate_json(text[start : end + 1])


def may_be_charged(error: ExtractionError) -> bool:
    """Return whether a failed call may still be charged, so that its reservation must remain."""
    return isinstance(error, ReplyInvalid) or (isinstance(error, ModelBusy) and error.maybe_charged)
