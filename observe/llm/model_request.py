"""Requests to a language model with a JSON schema for the reply, and parsing of the replies."""

from contextlib import suppress
from functools import cache
from json import JSONDecoder
from typing import Any, Final, TypeVar

import orjson
from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ...core.tokens import count

_FRAME: Final = 400
"""Maximum number of bytes that a provider adds to a request: field names and settings of the call."""
_STARTS_MAX: Final = 500
"""Maximum number of opening braces in a reply that are tried as the start of a JSON object."""


def bounded(**limits: int) -> Any:
    """Return a field with limits, such as `maxLength`, that the schema states and longer replies may exceed.

    A server that writes by the schema then ends in time. A server that only reads the schema may write a little more.
    """
    return Field(json_schema_extra=dict(limits))


class ReplyModel(BaseModel):
    """Base class of reply structures. A reply with unknown fields is invalid."""

    model_config = ConfigDict(extra="forbid", frozen=True)


ReplyT = TypeVar("ReplyT", bound=ReplyModel)


class ModelRequest(Struct, frozen=True):
    """One question to a language model.

    `schema` is the JSON schema of the reply. `tokens_out` is the maximum length of the reply.
    """

    model: str
    tokens_out: int
    system: str
    text: str
    schema: dict[str, Any]

    def size(self) -> int:
        """Return the maximum size of the request in bytes, which is an upper bound for its tokens."""
        return len(orjson.dumps([self.model, self.system, self.text, self.schema])) + _FRAME

    def tokens(self) -> int:
        """Return the estimated number of input tokens, including the schema."""
        return count(self.system) + count(self.text) + count(orjson.dumps(self.schema).decode())


@cache
def schema_of(reply: type[ReplyModel]) -> dict[str, Any]:
    """Return the JSON schema of a reply."""
    return reply.model_json_schema()


def parse_reply(text: str, reply: type[ReplyT]) -> ReplyT:
    """Parse the last valid JSON object in a reply. It can be in Markdown fences or follow other text.

    Raises:
        pydantic.ValidationError: No JSON object in the text has the structure of the reply.
    """
    found, decoder, start = None, JSONDecoder(), text.find("{")
    for _ in range(_STARTS_MAX):
        if start < 0:
            break
        try:
            _, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):  # not JSON, or too many digits or levels
            end = start + 1
        else:
            with suppress(ValidationError):
                found = reply.model_validate_json(text[start:end])
        start = text.find("{", end)
    return found or reply.model_validate_json(text[text.find("{") : text.rfind("}") + 1])
