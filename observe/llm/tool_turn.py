"""Conversations with a language model that can call tools: their messages, requests and replies."""

from collections.abc import Mapping
from typing import Any, Final, Protocol, TypeAlias, cast

from msgspec import Struct, json

from ...core.spending import Usage
from ...core.tokens import count
from .provider import Provider

CALLS_MAX: Final = 8
"""Maximum number of calls in one message. Calls above the limit get an error."""
_FRAME: Final = 3_000
"""Maximum number of bytes that a provider adds to a request, including the provider's instructions about tools."""
_MESSAGE_FRAME: Final = 200
"""Maximum number of bytes that a provider adds to a message."""


class OfferedTool(Struct, frozen=True):
    """Tool that the model may call. `schema` is the JSON schema of its arguments."""

    name: str
    description: str
    schema: Mapping[str, Any]


class ToolCall(Struct, frozen=True):
    """Call of a tool by the model. `arguments` is None if the model did not write a JSON object."""

    id: str
    name: str
    arguments: Mapping[str, Any] | None

    @classmethod
    def of(cls, call_id: str, name: str, arguments: object) -> "ToolCall":
        """Return a call. If `arguments` is not a JSON object, the arguments of the call are None."""
        return cls(call_id, name, cast("Mapping[str, Any]", arguments) if isinstance(arguments, dict) else None)


class ToolOutput(Struct, frozen=True):
    """Result of a call. `id` is the ID of the call, and `failed` is true if `text` is an error message."""

    id: str
    text: str
    failed: bool = False


class UserMessage(Struct, frozen=True, tag=True):
    """Text of the user."""

    text: str


class ModelMessage(Struct, frozen=True, tag=True):
    """Message of the model as the provider returned it. It is sent back unchanged."""

    content: Any


class ToolOutputs(Struct, frozen=True, tag=True):
    """Results of all calls in the previous message, and an optional note to the model."""

    outputs: tuple[ToolOutput, ...]
    note: str = ""


Message: TypeAlias = UserMessage | ModelMessage | ToolOutputs


class ToolRequest(Struct, frozen=True):
    """Request to continue a conversation: all messages so far, and the tools that the model may call.

    With `last`, the model must answer without calling a tool. `tokens_out` is the maximum length of its message.
    """

    model: str
    tokens_out: int
    system: str
    tools: tuple[OfferedTool, ...]
    messages: tuple[Message, ...]
    last: bool = False

    def size(self) -> int:
        """Return the maximum size of the request in bytes, which is an upper bound for its tokens."""
        return len(json.encode(self)) + _FRAME + _MESSAGE_FRAME * len(self.messages)

    def tokens(self) -> int:
        """Return the estimated number of input tokens, including the tools."""
        return count(self.system) + count(json.encode([self.tools, self.messages]).decode())


class ToolTurn(Struct, frozen=True):
    """Reply of the model: a text, or tool calls with an optional text.

    If the reply is incomplete, `truncated` is the stop reason. Otherwise it is empty. `content` is the whole message
    for the next request.
    """

    text: str
    calls: tuple[ToolCall, ...]
    truncated: str
    usage: Usage
    content: Any


class ToolProvider(Provider, Protocol):
    """Provider that can hold a conversation with tools."""

    def converse(self, request: ToolRequest) -> ToolTurn:
        """Return the model's next message. Raises `ReplyInvalid` if the response of the provider is malformed."""
        ...
