"""Provider that uses the Messages API of Anthropic or of another server.

Only this module imports the SDK and translates its errors.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, assert_never

import orjson
from pydantic import BaseModel, ValidationError

from ...core.reports import Usage
from ...core.runtime import Closing
from .http_replies import TIMEOUT, error_of, is_loopback
from .model_request import ModelRequest
from .provider import (
    Answer,
    ExtractionError,
    Message,
    ModelBusy,
    ModelMessage,
    ReplyInvalid,
    ToolCall,
    ToolOutputs,
    ToolRequest,
    ToolTurn,
    UserMessage,
)

if TYPE_CHECKING:
    import anthropic

ANTHROPIC = "https://api.anthropic.com"
_CACHEABLE: Final = {"cache_control": {"type": "ephemeral"}}
_PROXIED = ("http://", "https://", "all://")
"""Prefixes of the URLs for which the SDK uses the proxies that environment variables define."""


class MessagesApi(Closing):
    """Client of a server with the Messages API. Creating it imports the SDK (about 1 s) but does not connect."""

    def __init__(
        self, key: str = "", url: str | None = None, seconds: float = TIMEOUT, variable: str = "ANTHROPIC_API_KEY"
    ) -> None:
        """Prepare a client. `variable` is the environment variable with the key, for error messages.

        An empty key is not sent, because a server of the user may need no key.
        """
        import anthropic

        from .limited_stream import limiting

        url = url or ANTHROPIC
        headers: Any = {} if key else {"Authorization": anthropic.Omit()}
        # By default, the SDK would use a proxy for this machine, and would send the key to the target of a redirect.
        no_proxies: Any = dict.fromkeys(_PROXIED) if is_loopback(url) else {}
        hooks: Any = {"response": [limiting(seconds)]}
        client = anthropic.DefaultHttpxClient(mounts=no_proxies, follow_redirects=False, event_hooks=hooks)
        self._variable = variable
        self._client = anthropic.Anthropic(
            api_key=key, base_url=url, max_retries=0, timeout=seconds, default_headers=headers, http_client=client
        )

    def ask(self, request: ModelRequest) -> Answer:
        """Return the reply to one request. Raises `ReplyInvalid` if it is not a message."""
        return _parse_answer(self._send(_body(request)))

    def converse(self, request: ToolRequest) -> ToolTurn:
        """Return the model's next message in a conversation with tools. Raises `ReplyInvalid` if it is malformed."""
        return _parse_turn(self._send(_tool_body(request)))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _send(self, body: dict[str, Any]) -> str:
        with _translate_errors(self._variable):
            send: Callable[..., anthropic.APIResponse[Any]] = self._client.messages.with_raw_response.create
            return send(**body).http_response.text


def _body(request: ModelRequest) -> dict[str, Any]:
    """Return the body of a call. The system prompt is marked as cacheable.

    The API rejects limits of lengths in a schema, so they become descriptions.
    """
    import anthropic

    return {
        "model": request.model,
        "max_tokens": request.tokens_out,
        "system": [{"type": "text", "text": request.system, **_CACHEABLE}],
        "messages": [{"role": "user", "content": request.text}],
        "output_config": {"format": {"type": "json_schema", "schema": anthropic.transform_schema(request.schema)}},
    }


def _tool_body(request: ToolRequest) -> dict[str, Any]:
    """Return the body of a call with tools. The conversation so far is marked as cacheable for the next call."""
    messages = [_message(each) for each in request.messages]
    messages[-1]["content"][-1] |= _CACHEABLE
    return {
        "model": request.model,
        "max_tokens": request.tokens_out,
        "system": [{"type": "text", "text": request.system, **_CACHEABLE}],
        "tools": [
            {"name": tool.name, "description": tool.description, "input_schema": tool.schema} for tool in request.tools
        ],
        "tool_choice": {"type": "none" if request.last else "auto"},
        "messages": messages,
    }


def _message(message: Message) -> dict[str, Any]:
    match message:
        case UserMessage(text):
            return {"role": "user", "content": [{"type": "text", "text": text}]}
        case ModelMessage(content):
            return {"role": "assistant", "content": content}
        case ToolOutputs(outputs, note):
            results = [
                {"type": "tool_result", "tool_use_id": each.id, "content": each.text, "is_error": each.failed}
                for each in outputs
            ]
            notes = [{"type": "text", "text": note}] if note else []
            return {"role": "user", "content": [*results, *notes]}
        case _:
            assert_never(message)


class _Block(BaseModel):
    type: str
    text: str = ""
    id: str = ""
    name: str = ""
    input: Any = None


class _Counts(BaseModel):
    input_tokens: int
    output_tokens: int
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None


class _Message(BaseModel):
    """Fields of a message that this module uses. The SDK does not validate replies."""

    content: list[_Block]
    stop_reason: str | None
    usage: _Counts


def _parse_answer(raw: str) -> Answer:
    message = _parse_message(raw)
    return Answer(_text(message), _truncated(message), _usage(message.usage), raw)


def _parse_turn(raw: str) -> ToolTurn:
    message = _parse_message(raw)
    blocks = (block for block in message.content if block.type == "tool_use")
    calls = tuple(ToolCall.of(block.id, block.name, block.input) for block in blocks)
    content = orjson.loads(raw)["content"]
    return ToolTurn(_text(message), calls, _truncated(message), _usage(message.usage), content)


def _parse_message(raw: str) -> _Message:
    try:
        return _Message.model_validate_json(raw)
    except ValidationError:
        raise ReplyInvalid("the reply is not a message of the Messages API", raw) from None


def _text(message: _Message) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def _truncated(message: _Message) -> str:
    """Return the stop reason of an incomplete message, or an empty text."""
    reason = message.stop_reason or ""
    return "" if reason in {"", "end_turn", "stop_sequence", "tool_use"} else reason


def _usage(counts: _Counts) -> Usage:
    return Usage(
        counts.input_tokens,
        counts.cache_creation_input_tokens or 0,
        counts.cache_read_input_tokens or 0,
        counts.output_tokens,
    )


@contextmanager
def _translate_errors(variable: str) -> Generator[None]:
    import anthropic
    import httpx2

    try:
        yield
    except anthropic.APIStatusError as error:
        raise _by_status(error, variable) from error
    except anthropic.APITimeoutError as error:
        unsent = isinstance(error.__cause__, httpx2.ConnectTimeout)
        raise ModelBusy("the model did not answer in time", maybe_charged=not unsent) from error
    except anthropic.APIConnectionError as error:
        if isinstance(error.__cause__, ExtractionError):
            raise error.__cause__ from None
        unsent = isinstance(error.__cause__, httpx2.ConnectError)
        raise ModelBusy(f"the model cannot be reached: {error.__cause__ or error}", maybe_charged=not unsent) from error
    except (httpx2.HTTPError, ValueError) as error:
        # The body is incomplete or not JSON.
        raise ModelBusy(f"the answer could not be read: {error}", maybe_charged=True) from error
    except anthropic.AnthropicError as error:
        raise ModelBusy(str(error), maybe_charged=True) from error


def _by_status(error: "anthropic.APIStatusError", variable: str) -> ExtractionError:
    message, unpaid = error.api_message or error.message, error.type == "billing_error"
    return error_of(error.status_code, message, error.response.headers, unpaid=unpaid, key=variable)
