"""Request bodies of the Messages API with a JSON schema, and parsing of the replies."""

from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

from .model_errors import ExtractionError, ModelBusy, ReplyInvalid


class ReplyModel(BaseModel):
    """Structure of a reply, without additional fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


ReplyT = TypeVar("ReplyT", bound=ReplyModel)


def build_body(model: str, tokens_out: int, system: str, text: str, reply: type[ReplyModel]) -> dict[str, Any]:
    """Return the body of a call. The system prompt is marked as cacheable."""
    return {
        "model": model,
        "max_tokens": tokens_out,
        "system": [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}],
        "messages": [{"role": "user", "content": text}],
        "output_config": {"format": {"type": "json_schema", "schema": _schema(reply)}},
    }


@cache
def _schema(reply: type[ReplyModel]) -> dict[str, Any]:
    return reply.model_json_schema()


def parse_reply(text: str, reply: type[ReplyT]) -> ReplyT:
    """Parse the JSON object in a reply, which can be in Markdown fences; raises `pydantic.ValidationError`."""
    start, end = text.find("{"), text.rfind("}")
    return reply.model_validate_json(text[start : end + 1])


def may_be_charged(error: ExtractionError) -> bool:
    """Return whether a failed call may still be charged, so that its reservation must remain."""
    return isinstance(error, ReplyInvalid) or (isinstance(error, ModelBusy) and error.maybe_charged)
