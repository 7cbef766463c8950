"""Interface of language model providers, their errors, and conversations in which a model can call tools.

`messages_api`, `openai_api` and `agent_command` implement the interface. Providers do not retry, so that the ledger
contains every attempt.

::

    PalaverError
    ├── BudgetExhausted         the next call could exceed a budget or the limit of calls
    └── ExtractionError         the call returned nothing usable
        ├── ModelRefused        key, rights, quota, model name or program: no call can succeed
        ├── ModelBusy           rate limit, overload or network: the same call may succeed later
        ├── RequestRefused      this request can never succeed
        └── ReplyInvalid        the reply is truncated, malformed, or without a valid quote
"""

from collections.abc import Mapping
from typing import Any, Final, Protocol, TypeAlias, cast

from msgspec import Struct, json

from ...core.errors import PalaverError
from ...core.reports import Usage
from ...core.tokens import count
from .model_request import ModelRequest


class BudgetExhausted(PalaverError):
    """Error: a budget or call limit does not allow the next call. `setting` names the limit, such as `budget_day`."""

    def __init__(self, setting: str, message: str) -> None:
        self.setting = setting
        super().__init__(message, hint=f"Wait, or raise {setting} in config.toml, and run `palaver observe` again.")


class ExtractionError(PalaverError):
    """Error: a call to the language model returned no usable result.

    `maybe_charged` is True if the provider may have processed the call. The reservation of its cost must then remain.
    """

    maybe_charged: bool = False


class ModelRefused(ExtractionError):
    """Error: the provider refuses every call, so the extraction stops. `status` is the HTTP status."""

    def __init__(self, message: str, status: int, *, hint: str) -> None:
        self.status = status
        super().__init__(message, hint=hint)


class ModelBusy(ExtractionError):
    """Error: a call to the language model failed temporarily.

    `after` is the number of seconds to wait, if the provider stated one.
    """

    def __init__(self, message: str, *, after: float | None = None, maybe_charged: bool = False) -> None:
        self.after, self.maybe_charged = after, maybe_charged
        super().__init__(message, hint="Nothing is lost. Run `palaver observe` again later.")


class RequestRefused(ExtractionError):
    """Error: the provider refused one request. `status` is the HTTP status, or 0 for an agent command."""

    def __init__(self, message: str, status: int = 0, *, maybe_charged: bool = False) -> None:
        self.status, self.maybe_charged = status, maybe_charged
        super().__init__(message, hint="The session is sent again by a later `palaver observe`.")


class ReplyInvalid(ExtractionError):
    """Error: the reply has no usable content. `reply` is its raw text."""

    maybe_charged = True

    def __init__(self, message: str, reply: str) -> None:
        self.reply = reply
        super().__init__(message, hint="The session is sent again by a later `palaver observe`.")


class Answer(Struct, frozen=True):
    """Reply that the provider charged for.

    If the reply is incomplete, `truncated` is the stop reason. Otherwise it is empty.
    """

    text: str
    truncated: str
    usage: Usage
    raw: str


class Provider(Protocol):
    """Provider of a language model. All methods raise `ModelBusy`, `ModelRefused` or `RequestRefused`."""

    def ask(self, request: ModelRequest) -> Answer:
        """Return the reply to one request. Raises `ReplyInvalid` if the response of the provider is malformed."""
        ...

    def close(self) -> None:
        """Release all resources."""
        ...


CALLS_MAX: Final = 8
"""Maximum number of calls in one message. Calls above the limit get an error."""
_TOOL_FRAME: Final = 3_000
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
        return len(json.encode(self)) + _TOOL_FRAME + _MESSAGE_FRAME * len(self.messages)

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
