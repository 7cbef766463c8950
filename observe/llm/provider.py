"""Interface of language model providers: requests with a JSON schema for the reply, conversations with tools, errors.

`model_servers` and `agent_command` implement the interface. Providers do not retry, so that the ledger contains every
attempt.

::

    PalaverError
    ├── BudgetExhausted         the next call could exceed a budget or the limit of calls
    └── ExtractionError         the call returned nothing usable
        ├── ModelRefused        key, rights, quota, model name or program: no call can succeed
        ├── ModelBusy           rate limit, overload or network: the same call may succeed later
        ├── RequestRefused      this request can never succeed
        └── ReplyInvalid        the reply is truncated, malformed, or without a valid quote
"""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from json import JSONDecoder
from typing import Any, Final, Protocol, TypeAlias, TypeVar, cast

import orjson
from msgspec import Struct, json
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ...core.errors import PalaverError
from ...core.reports import Usage
from ...core.tokens import count

CALLS_MAX: Final = 8
"""Maximum number of calls in one message. Calls above the limit get an error."""
TIMEOUT: Final = 180.0
"""Maximum seconds for the answer of a model."""
_BUSY_MAX: Final = 3
"""Number of consecutive temporary failures after which a run ends."""
_WAIT_MAX: Final = 60.0
"""Maximum seconds that a run waits before a retry."""
_FRAME: Final = 400
"""Maximum number of bytes that a provider adds to a request: field names and settings of the call."""
_TOOL_FRAME: Final = 3_000
"""Maximum number of bytes that a provider adds to a request, including the provider's instructions about tools."""
_MESSAGE_FRAME: Final = 200
"""Maximum number of bytes that a provider adds to a message."""
_STARTS_MAX: Final = 500
"""Maximum number of opening braces in a reply that are tried as the start of a JSON object."""
Prompts: TypeAlias = tuple[str, str, Callable[..., str]]
"""Version of the prompts of one kind of request, the system prompt, and the function that fills the user prompt."""


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


class Backoff:
    """Counter of consecutive temporary failures that waits after each of them."""

    def __init__(self, sleep: Callable[[float], None] = time.sleep) -> None:
        self._sleep, self._failures = sleep, 0

    def wait(self, error: ModelBusy, most: float = _WAIT_MAX) -> None:
        """Wait after a failure: as long as the provider requested, or else 2 s, then 4 s.

        Raises:
            ModelBusy: This was the third consecutive failure, or the wait would exceed `most` or 60 seconds.
        """
        self._failures += 1
        seconds = error.after if error.after is not None else 2.0**self._failures
        if self._failures >= _BUSY_MAX or seconds > min(most, _WAIT_MAX):
            raise error
        self._sleep(seconds)

    def reset(self) -> None:
        """Set the number of failures to 0, after a successful call."""
        self._failures = 0


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


def parse_reply(text: str, model: type[ReplyT], raw: str) -> ReplyT:
    """Parse the last valid JSON object in a reply. It can be in Markdown fences or follow other text.

    `raw` is the whole response of the provider.

    Raises:
        ReplyInvalid: No JSON object in the text has the structure of `model`.
    """
    parsed, decoder, start = None, JSONDecoder(), text.find("{")
    for _ in range(_STARTS_MAX):
        if start < 0:
            break
        try:
            _, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):  # not JSON, or too many digits or levels
            end = start + 1
        else:
            with suppress(ValidationError):
                parsed = model.model_validate_json(text[start:end])
        start = text.find("{", end)
    try:
        return parsed or model.model_validate_json(text[text.find("{") : text.rfind("}") + 1])
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"])) or "JSON"
        raise ReplyInvalid(f"the reply does not have the expected structure: {field}: {first['msg']}", raw) from None


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
