"""Provider for the chat completions API of OpenAI, Ollama, LM Studio, llama.cpp, vLLM, OpenRouter and others.

A server can send a reply in pieces. Reading ends early if the text repeats itself, as small models' texts do.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from http.client import HTTPException, HTTPResponse, IncompleteRead
from typing import Any, Final, assert_never, cast
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

import orjson
from pydantic import BaseModel, ValidationError

from ...core.reports import Usage
from ...core.tokens import count
from .http_replies import TIMEOUT, error_of, is_loopback, limited
from .model_request import ModelRequest
from .provider import (
    Answer,
    ExtractionError,
    Message,
    ModelBusy,
    ModelMessage,
    ReplyInvalid,
    RequestRefused,
    ToolCall,
    ToolOutputs,
    ToolRequest,
    ToolTurn,
    UserMessage,
)

_UNIT_MAX: Final = 160
"""Maximum characters of a piece of text that counts as repeated."""
_REPEATED: Final = 640
"""Minimum characters that consist of repetitions of one piece only."""
_STEP: Final = 64
"""Number of new characters after which the text is checked again."""


def assembled(chunks: Iterable[bytes]) -> str:
    """Return the events of a chat completion as one completion, in JSON.

    Raises:
        ModelBusy: The stream ended before the reply.
        ReplyInvalid: The text repeats itself. The rest was not read, so the server stops writing it.
    """
    text, checked = "", 0
    reason: str | None = None
    usage: dict[str, Any] | None = None
    for event in _events(chunks):
        if event.get("error"):
            raise ModelBusy(f"the model failed: {str(event['error'])[:300]}", maybe_charged=True)
        usage = event.get("usage") or usage
        choices: list[dict[str, Any]] = event.get("choices") or []
        for choice in choices:
            delta: dict[str, Any] = choice.get("delta") or {}
            text += str(delta.get("content") or "")
            reason = choice.get("finish_reason") or reason
        if len(text) - checked >= _STEP:
            checked = len(text)
            if repeats_itself(text):
                raise ReplyInvalid("the reply repeats itself", text)
    if reason is None:
        raise ModelBusy("the answer could not be read: it ended early", maybe_charged=True)
    completion: dict[str, Any] = {"choices": [{"message": {"content": text}, "finish_reason": reason}], "usage": usage}
    return orjson.dumps(completion).decode()


def repeats_itself(text: str) -> bool:
    """Return whether a text ends with one short piece again and again, such as white space or one sentence."""
    end = text[-_REPEATED:]
    return len(end) == _REPEATED and any(end[unit:] == end[:-unit] for unit in range(1, _UNIT_MAX + 1))


def _events(chunks: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the JSON object of each event."""
    left = b""
    for chunk in chunks:
        *lines, left = (left + chunk).split(b"\n")
        for line in lines:
            data = line.removeprefix(b"data:").strip()
            if line.startswith(b"data:") and data.startswith(b"{"):
                yield orjson.loads(data)


OPENAI: Final = "https://api.openai.com/v1"
_OPENAI_HOST: Final = "api.openai.com"
_MESSAGE_MAX: Final = 500
_CHUNK: Final = 65_536
"""Maximum bytes of one read."""


class OpenAIApi:
    """Client of a server with chat completions below `url`. An empty key is not sent."""

    def __init__(self, key: str = "", url: str | None = None, seconds: float = TIMEOUT, variable: str = "") -> None:
        """Prepare a client. `variable` is the environment variable with the key, for error messages."""
        self._key, self._url, self._seconds, self._variable = key, (url or OPENAI).rstrip("/"), seconds, variable
        self._takes_schema = True

    def ask(self, request: ModelRequest) -> Answer:
        """Return the reply to one request. Raises `ReplyInvalid` if it is not a chat completion, or repeats itself."""
        try:
            raw = self._send(_body(request, self._url, schema=self._takes_schema))
        except RequestRefused as error:
            # Some servers know no JSON schema. The prompt describes the reply as well.
            if not self._takes_schema or "response_format" not in str(error):
                raise
            self._takes_schema = False
            raw = self._send(_body(request, self._url, schema=False))
        choice, usage = _parse_choice(raw, request.tokens)
        return Answer(choice.message.content or "", _truncated(choice), usage, raw)

    def converse(self, request: ToolRequest) -> ToolTurn:
        """Return the model's next message in a conversation with tools. Raises `ReplyInvalid` if it is malformed."""
        raw = self._send(_tool_body(request, self._url))
        choice, usage = _parse_choice(raw, request.tokens)
        calls = tuple(_call(each, index) for index, each in enumerate(choice.message.tool_calls or ()))
        content: dict[str, Any] = {"role": "assistant", **orjson.loads(raw)["choices"][0]["message"]}
        for call, sent in zip(calls, content.get("tool_calls") or (), strict=True):
            sent["id"] = call.id
        refused = "refusal" if choice.message.refusal else ""
        return ToolTurn(choice.message.content or "", calls, refused or _truncated(choice), usage, content)

    def close(self) -> None:
        """Do nothing: each request has its own connection."""

    def _send(self, body: dict[str, Any]) -> str:
        headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {self._key}"} if self._key else {})
        address = f"{self._url}/chat/completions"
        request = Request(address, orjson.dumps(body), headers)  # noqa: S310 - the settings accept HTTP addresses only
        proxies = ProxyHandler({}) if is_loopback(self._url) else ProxyHandler()
        try:
            with build_opener(proxies, _NoRedirects).open(request, timeout=self._seconds) as response:
                return self._read(response)
        except HTTPError as error:
            raise self._error(error) from error
        except TimeoutError as error:
            raise ModelBusy("the model did not answer in time", maybe_charged=True) from error
        except URLError as error:
            timed_out = isinstance(error.reason, TimeoutError)
            raise ModelBusy(f"the model cannot be reached: {error.reason}", maybe_charged=timed_out) from error
        except (HTTPException, OSError, ValueError) as error:
            raise ModelBusy(f"the answer could not be read: {error}", maybe_charged=True) from error

    def _read(self, response: HTTPResponse) -> str:
        chunks = limited(iter(partial(response.read1, _CHUNK), b""), self._seconds)
        if response.getheader("content-type", "").startswith("text/event-stream"):
            return assembled(chunks)
        content = b"".join(chunks)
        if response.length:  # `read1` does not report a connection that was interrupted.
            raise IncompleteRead(content, response.length)
        return content.decode("utf-8", "replace")

    def _error(self, error: HTTPError) -> ExtractionError:
        try:
            with error:
                text = self._read(cast("HTTPResponse", error.fp))
        except (HTTPException, OSError, ModelBusy):
            text = ""
        headers = {name.lower(): value for name, value in error.headers.items()}
        return error_of(error.code, _message(text) or error.reason, headers, key=self._variable)


class _NoRedirects(HTTPRedirectHandler):
    """Handler that refuses redirects, because the key would be sent to their target."""

    def redirect_request(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: Any) -> None:
        """Return no request, so that the redirect becomes an error."""


def _body(request: ModelRequest, url: str, *, schema: bool) -> dict[str, Any]:
    wanted = {"type": "json_schema", "json_schema": {"name": "reply", "schema": request.schema}}
    return {
        "model": request.model,
        **_limit(request.tokens_out, url),
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [
            {"role": "system", "content": request.system},
            {"role": "user", "content": request.text},
        ],
        **({"response_format": wanted} if schema else {}),
    }


def _tool_body(request: ToolRequest, url: str) -> dict[str, Any]:
    tools = [{"name": tool.name, "description": tool.description, "parameters": tool.schema} for tool in request.tools]
    return {
        "model": request.model,
        **_limit(request.tokens_out, url),
        "messages": [
            {"role": "system", "content": request.system},
            *(sent for message in request.messages for sent in _messages(message)),
        ],
        "tools": [{"type": "function", "function": tool} for tool in tools],
        "tool_choice": "none" if request.last else "auto",
    }


def _limit(tokens_out: int, url: str) -> dict[str, int]:
    # OpenAI's newer models reject `max_tokens`. Other servers do not support the parameter that replaced it.
    return {"max_completion_tokens" if urlsplit(url).hostname == _OPENAI_HOST else "max_tokens": tokens_out}


def _messages(message: Message) -> list[dict[str, Any]]:
    match message:
        case UserMessage(text):
            return [{"role": "user", "content": text}]
        case ModelMessage(content):
            return [content]
        case ToolOutputs(outputs, note):
            results = [{"role": "tool", "tool_call_id": each.id, "content": each.text} for each in outputs]
            return [*results, {"role": "user", "content": note}] if note else results
        case _:
            assert_never(message)


class _Function(BaseModel):
    name: str
    arguments: Any = None


class _ToolCall(BaseModel):
    id: str | None = None
    function: _Function


class _Message(BaseModel):
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Cached(BaseModel):
    cached_tokens: int | None = None


class _Counts(BaseModel):
    prompt_tokens: int
    completion_tokens: int = 0
    prompt_tokens_details: _Cached | None = None


class _Completion(BaseModel):
    """Fields of a chat completion that this module uses."""

    choices: list[_Choice]
    usage: _Counts | None = None


def _parse_choice(raw: str, tokens_in: Callable[[], int]) -> tuple[_Choice, Usage]:
    """Return the reply and its tokens. `tokens_in` estimates the tokens of the request if the server states none."""
    try:
        completion = _Completion.model_validate_json(raw)
        choice = completion.choices[0]
    except (ValidationError, IndexError):
        raise ReplyInvalid(f"the reply is not a chat completion. {_message(raw)}".rstrip(), raw) from None
    counts = completion.usage
    if counts is None:
        arguments = [str(call.function.arguments) for call in choice.message.tool_calls or ()]
        return choice, Usage(tokens_in(), 0, 0, count("\n".join([choice.message.content or "", *arguments])))
    details = counts.prompt_tokens_details
    cached = min(details.cached_tokens or 0, counts.prompt_tokens) if details else 0
    return choice, Usage(counts.prompt_tokens - cached, 0, cached, counts.completion_tokens)


def _truncated(choice: _Choice) -> str:
    """Return the reason why a reply is incomplete, or an empty text."""
    reason = choice.finish_reason or ""
    return "" if reason in {"", "stop", "tool_calls"} else reason


def _call(call: _ToolCall, index: int) -> ToolCall:
    """Return a call with its arguments, which are JSON in a string. Some servers give calls no ID."""
    given: Any = call.function.arguments
    if isinstance(given, str):
        try:
            given = orjson.loads(given or "{}")
        except orjson.JSONDecodeError:
            given = None
    return ToolCall.of(call.id or f"call_{index}", call.function.name, given)


def _message(body: str) -> str:
    """Return the message in an error, which servers write as an object or as a string."""
    try:
        error: Any = orjson.loads(body)["error"]
        message: object = error if isinstance(error, str) else error["message"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        message = body
    return str(message)[:_MESSAGE_MAX].strip()
