"""Providers that are HTTP servers: the Messages API of Anthropic, and chat completions of OpenAI, Ollama and others.

Chat completions are also the API of LM Studio, llama.cpp, vLLM and OpenRouter. Such a server can send a reply in
pieces. Reading ends early if the text repeats itself, as small models' texts do.

HTTP clients limit the time of a single read. A server that sends one byte at a time could keep a call open for hours.
Therefore, the size and the time of the whole reply are limited. Requests to this machine do not go through a proxy, and
no redirect is followed, because the key would be sent to its target.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, assert_never
from urllib.parse import urlsplit

import orjson
from msgspec import Struct, json
from pydantic import BaseModel, ValidationError

from ...core.reports import Usage
from ...core.runtime import Closing
from ...core.tokens import count
from .provider import (
    TIMEOUT,
    Answer,
    ExtractionError,
    Message,
    ModelBusy,
    ModelMessage,
    ModelRefused,
    ModelRequest,
    ReplyInvalid,
    RequestRefused,
    ToolCall,
    ToolOutputs,
    ToolRequest,
    ToolTurn,
    UserMessage,
)

if TYPE_CHECKING:
    import httpx2

ANTHROPIC: Final = "https://api.anthropic.com"
OPENAI: Final = "https://api.openai.com/v1"
OPENROUTER: Final = "https://openrouter.ai/api/v1"
LOOPBACK: Final = "127.0.0.1"
KEYS: Final = {
    "api.anthropic.com": "ANTHROPIC_API_KEY",
    "api.openai.com": "OPENAI_API_KEY",
    "openrouter.ai": "OPENROUTER_API_KEY",
}
"""Key variables of known servers. Each key is sent only to its own server."""
OWN_KEY: Final = "PALAVER_LLM_KEY"
"""Environment variable with the key for a server that has no variable of its own."""
PORTS: Final = {"Ollama": 11434, "LM Studio": 1234, "llama.cpp": 8080, "vLLM": 8000}
"""Default port of each program."""
BYTES_MAX: Final = 32_000_000
"""Maximum size of a reply, far above that of any valid one."""
_LOCAL_TIMEOUT, _REMOTE_TIMEOUT = 0.5, 10.0
"""Maximum seconds for the list of models of a server on this machine, and of another server."""
_REDIRECTS: Final = {301, 302, 303, 307, 308}
_PERMANENT: Final = {401, 402, 403, 404}
_TEMPORARY: Final = {408, 409, 425, 429}
_NOT_IMPLEMENTED: Final = 501
_HINTS: Final = {
    401: "Check {key}, then run the command again.",
    404: "Check llm_model and llm_url in config.toml, then run the command again.",
}
_ADDRESS_MAX, _MESSAGE_MAX = 200, 500
"""Maximum characters of an address, and of a server's message, in an error."""
_CACHEABLE: Final = {"cache_control": {"type": "ephemeral"}}
_UNIT_MAX: Final = 160
"""Maximum characters of a piece of text that counts as repeated."""
_REPEATED: Final = 640
"""Minimum characters that consist of repetitions of one piece only."""
_STEP: Final = 64
"""Number of new characters after which the text is checked again."""


def is_loopback(url: str) -> bool:
    """Return whether an address refers to this machine."""
    return urlsplit(url).hostname in {LOOPBACK, "::1", "localhost"}


class LocalServer(Struct, frozen=True):
    """Server on this machine, and the names of its models."""

    name: str
    url: str
    models: tuple[str, ...]


class _ListedModel(Struct):
    id: str


class _ModelList(Struct):
    data: list[_ListedModel]


def local_servers() -> list[LocalServer]:
    """Return the servers that list at least one model."""
    addresses = {name: f"http://{LOOPBACK}:{port}/v1" for name, port in PORTS.items()}
    servers = (LocalServer(name, url, models_at(url, timeout=_LOCAL_TIMEOUT)) for name, url in addresses.items())
    return [server for server in servers if server.models]


def models_at(url: str, headers: Mapping[str, str] | None = None, timeout: float = _REMOTE_TIMEOUT) -> tuple[str, ...]:
    """Return the names of the models of a server. Return an empty tuple if no such server answers, or lists none."""
    import httpx2

    try:
        with _open_client(url, timeout, proxies=False) as client:
            content = client.get(f"{url.rstrip('/')}/models", headers=headers).content
        return tuple(model.id for model in json.decode(content, type=_ModelList).data)
    except (httpx2.HTTPError, httpx2.InvalidURL, ModelBusy, ValueError):  # Another program uses the port, or none.
        return ()


def _open_client(url: str, seconds: float, *, proxies: bool = True) -> "httpx2.Client":
    """Return a client for a server. `proxies` allows the proxies in the environment, except for this machine."""
    import httpx2

    class LimitedStream(httpx2.SyncByteStream):
        """Body of a reply that is read within limits."""

        def __init__(self, stream: httpx2.SyncByteStream) -> None:
            self._stream = stream

        def __iter__(self) -> Iterator[bytes]:
            return _limited(self._stream, seconds)

        def close(self) -> None:
            self._stream.close()

    def limit(response: httpx2.Response) -> None:
        if isinstance(response.stream, httpx2.SyncByteStream):
            response.stream = LimitedStream(response.stream)

    from_environment = proxies and not is_loopback(url)
    return httpx2.Client(trust_env=from_environment, timeout=seconds, event_hooks={"response": [limit]})


def _limited(chunks: Iterable[bytes], seconds: float) -> Iterator[bytes]:
    """Yield the chunks of a reply. The time limit covers only waiting for chunks, not processing them.

    Raises:
        ModelBusy: The reply is too large, or does not arrive within `seconds`.
    """
    size, waited, arriving = 0, 0.0, iter(chunks)
    while True:
        start = time.monotonic()
        chunk = next(arriving, None)
        waited += time.monotonic() - start
        if chunk is None:
            return
        if waited > seconds:
            raise ModelBusy("the model did not answer in time", maybe_charged=True)
        size += len(chunk)
        if size > BYTES_MAX:
            raise too_large("the reply")
        yield chunk


def too_large(what: str) -> ModelBusy:
    """Return the error for a reply above the maximum size. `what` names the reply."""
    return ModelBusy(f"{what} is larger than {BYTES_MAX // 1_000_000} MB", maybe_charged=True)


def _by_connection(error: BaseException) -> ExtractionError:
    """Return the error for a call without a complete reply."""
    import httpx2

    if isinstance(error, ExtractionError):
        return error
    if isinstance(error, httpx2.TimeoutException):
        unsent = isinstance(error, httpx2.ConnectTimeout)
        return ModelBusy("the model did not answer in time", maybe_charged=not unsent)
    if isinstance(error, httpx2.ConnectError):
        return ModelBusy(f"the model cannot be reached: {error}")
    return ModelBusy(f"the answer could not be read: {error}", maybe_charged=True)


def _by_status(response: "httpx2.Response", message: str, key: str, *, unpaid: bool = False) -> ExtractionError:
    """Return the error for the status of a response.

    `key` is the environment variable with the API key. `unpaid` is True if the provider reported missing credit.
    """
    status = response.status_code
    if status in _REDIRECTS:
        target = response.headers.get("location", "").partition("?")[0][:_ADDRESS_MAX]
        hint = "If you trust this address, set llm_url to it in config.toml."
        return ModelRefused(f"llm_url redirects to {target or 'no address'}", status, hint=hint)
    if status in _PERMANENT or unpaid:
        hint = _HINTS.get(status, "Check the account that your API key belongs to, then run the command again.")
        message = f"the provider refused the call with status {status}: {message}"
        return ModelRefused(message, status, hint=hint.format(key=key))
    if status in _TEMPORARY or (status >= 500 and status != _NOT_IMPLEMENTED):
        return ModelBusy(f"the provider is busy ({status}): {message}", after=_retry_after(response))
    return RequestRefused(f"the provider rejected this request ({status}): {message}", status)


def _retry_after(response: "httpx2.Response") -> float | None:
    """Return the seconds to wait before the next request, if the server stated them."""
    try:
        return max(float(response.headers["retry-after"]), 0.0)
    except (KeyError, ValueError):
        return None


class MessagesApi(Closing):
    """Client of a server with the Messages API. Creating it imports the SDK (about 1 s) but does not connect."""

    def __init__(
        self, key: str = "", url: str | None = None, seconds: float = TIMEOUT, variable: str = "ANTHROPIC_API_KEY"
    ) -> None:
        """Prepare a client. `variable` is the environment variable with the key, for error messages.

        An empty key is not sent, because a server of the user may need no key.
        """
        import anthropic

        url = url or ANTHROPIC
        self._variable = variable
        headers: Any = {} if key else {"Authorization": anthropic.Omit()}
        client = _open_client(url, seconds)
        self._client = anthropic.Anthropic(
            api_key=key, base_url=url, max_retries=0, timeout=seconds, default_headers=headers, http_client=client
        )

    def ask(self, request: ModelRequest) -> Answer:
        """Return the reply to one request. Raises `ReplyInvalid` if it is not a message.

        The system prompt is marked as cacheable. The API rejects limits of lengths in a schema, so they become
        descriptions.
        """
        import anthropic

        schema = anthropic.transform_schema(request.schema)
        raw = self._send(
            model=request.model,
            max_tokens=request.tokens_out,
            system=[{"type": "text", "text": request.system, **_CACHEABLE}],
            messages=[{"role": "user", "content": request.text}],
            output_config={"format": {"type": "json_schema", "schema": schema}},
        )
        message = _parse_message(raw)
        return Answer(message.text, message.truncated, message.usage.total, raw)

    def converse(self, request: ToolRequest) -> ToolTurn:
        """Return the model's next message in a conversation with tools. Raises `ReplyInvalid` if it is malformed.

        The conversation so far is marked as cacheable for the next call.
        """
        messages = [_block_message(message) for message in request.messages]
        messages[-1]["content"][-1] |= _CACHEABLE
        raw = self._send(
            model=request.model,
            max_tokens=request.tokens_out,
            system=[{"type": "text", "text": request.system, **_CACHEABLE}],
            tools=[
                {"name": tool.name, "description": tool.description, "input_schema": tool.schema}
                for tool in request.tools
            ],
            tool_choice={"type": "none" if request.last else "auto"},
            messages=messages,
        )
        message = _parse_message(raw)
        blocks = (block for block in message.content if block.type == "tool_use")
        calls = tuple(ToolCall.of(block.id, block.name, block.input) for block in blocks)
        content = orjson.loads(raw)["content"]
        return ToolTurn(message.text, calls, message.truncated, message.usage.total, content)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _send(self, **body: Any) -> str:
        import anthropic
        import httpx2

        send: Callable[..., anthropic.APIResponse[Any]] = self._client.messages.with_raw_response.create
        try:
            return send(**body).http_response.text
        except anthropic.APIStatusError as error:
            unpaid = error.type == "billing_error"
            message = error.api_message or error.message
            raise _by_status(error.response, message, self._variable, unpaid=unpaid) from error
        except (anthropic.AnthropicError, httpx2.HTTPError, ValueError) as error:
            raise _by_connection(error.__cause__ or error) from error


def _block_message(message: Message) -> dict[str, Any]:
    """Return a message of a conversation for the Messages API."""
    match message:
        case UserMessage(text):
            return {"role": "user", "content": [{"type": "text", "text": text}]}
        case ModelMessage(content):
            return {"role": "assistant", "content": content}
        case ToolOutputs(outputs, note):
            results = [
                {"type": "tool_result", "tool_use_id": output.id, "content": output.text, "is_error": output.failed}
                for output in outputs
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


class _MessageUsage(BaseModel):
    input_tokens: int
    output_tokens: int
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None

    @property
    def total(self) -> Usage:
        written, read = self.cache_creation_input_tokens or 0, self.cache_read_input_tokens or 0
        return Usage(self.input_tokens, written, read, self.output_tokens)


class _Message(BaseModel):
    """Fields of a message that this module uses. The SDK does not validate replies."""

    content: list[_Block]
    stop_reason: str | None
    usage: _MessageUsage

    @property
    def text(self) -> str:
        return "".join(block.text for block in self.content if block.type == "text")

    @property
    def truncated(self) -> str:
        """Stop reason of an incomplete message, or an empty text."""
        return "" if self.stop_reason in {None, "end_turn", "stop_sequence", "tool_use"} else self.stop_reason or ""


def _parse_message(raw: str) -> _Message:
    try:
        return _Message.model_validate_json(raw)
    except ValidationError:
        raise ReplyInvalid("the reply is not a message of the Messages API", raw) from None


class OpenAIApi(Closing):
    """Client of a server with chat completions below `url`. An empty key is not sent."""

    def __init__(self, key: str = "", url: str | None = None, seconds: float = TIMEOUT, variable: str = "") -> None:
        """Prepare a client. `variable` is the environment variable with the key, for error messages."""
        self._url, self._variable = (url or OPENAI).rstrip("/"), variable
        self._headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
        self._client = _open_client(self._url, seconds)
        self._takes_schema = True

    def ask(self, request: ModelRequest) -> Answer:
        """Return the reply to one request. Raises `ReplyInvalid` if it is not a chat completion, or repeats itself."""
        try:
            raw = self._send(self._body(request))
        except RequestRefused as error:
            # Some servers know no JSON schema. The prompt describes the reply as well.
            if not self._takes_schema or "response_format" not in str(error):
                raise
            self._takes_schema = False
            raw = self._send(self._body(request))
        choice, usage = _parse_choice(raw, request.tokens)
        return Answer(choice.message.content or "", choice.truncated, usage, raw)

    def converse(self, request: ToolRequest) -> ToolTurn:
        """Return the model's next message in a conversation with tools. Raises `ReplyInvalid` if it is malformed."""
        raw = self._send(self._tool_body(request))
        choice, usage = _parse_choice(raw, request.tokens)
        calls = tuple(_call(call, index) for index, call in enumerate(choice.message.tool_calls or ()))
        content: dict[str, Any] = {"role": "assistant", **orjson.loads(raw)["choices"][0]["message"]}
        for call, sent in zip(calls, content.get("tool_calls") or (), strict=True):
            sent["id"] = call.id
        refused = "refusal" if choice.message.refusal else ""
        return ToolTurn(choice.message.content or "", calls, refused or choice.truncated, usage, content)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _send(self, body: dict[str, Any]) -> str:
        import httpx2

        address = f"{self._url}/chat/completions"
        try:
            with self._client.stream("POST", address, content=orjson.dumps(body), headers=self._headers) as response:
                in_pieces = response.headers.get("content-type", "").startswith("text/event-stream")
                if response.is_success and in_pieces:
                    return _assembled(event.data for event in httpx2.EventSource(response))
                content = response.read().decode("utf-8", "replace")
        except (httpx2.HTTPError, ValueError) as error:
            raise _by_connection(error) from error
        if not response.is_success:
            raise _by_status(response, _error_message(content) or response.reason_phrase, self._variable)
        return content

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        reply = {"type": "json_schema", "json_schema": {"name": "reply", "schema": request.schema}}
        return {
            "model": request.model,
            **self._limit(request.tokens_out),
            "stream": True,
            "stream_options": {"include_usage": True},
            "messages": [
                {"role": "system", "content": request.system},
                {"role": "user", "content": request.text},
            ],
            **({"response_format": reply} if self._takes_schema else {}),
        }

    def _tool_body(self, request: ToolRequest) -> dict[str, Any]:
        tools = [
            {"name": tool.name, "description": tool.description, "parameters": tool.schema} for tool in request.tools
        ]
        return {
            "model": request.model,
            **self._limit(request.tokens_out),
            "messages": [
                {"role": "system", "content": request.system},
                *(sent for message in request.messages for sent in _chat_messages(message)),
            ],
            "tools": [{"type": "function", "function": tool} for tool in tools],
            "tool_choice": "none" if request.last else "auto",
        }

    def _limit(self, tokens_out: int) -> dict[str, int]:
        # OpenAI's newer models reject `max_tokens`. Other servers do not support the parameter that replaced it.
        newer = urlsplit(self._url).hostname == urlsplit(OPENAI).hostname
        return {"max_completion_tokens" if newer else "max_tokens": tokens_out}


def _assembled(events: Iterable[str]) -> str:
    """Return the events of a chat completion as one completion, in JSON.

    Raises:
        ModelBusy: The stream ended before the reply.
        ReplyInvalid: The text repeats itself. The rest was not read, so the server stops writing it.
    """
    text, checked = "", 0
    reason: str | None = None
    usage: dict[str, Any] | None = None
    for event in (orjson.loads(data) for data in events if data.startswith("{")):
        if event.get("error"):
            raise ModelBusy(f"the model failed: {str(event['error'])[:_MESSAGE_MAX]}", maybe_charged=True)
        usage = event.get("usage") or usage
        choices: list[dict[str, Any]] = event.get("choices") or []
        for choice in choices:
            delta: dict[str, Any] = choice.get("delta") or {}
            text += str(delta.get("content") or "")
            reason = choice.get("finish_reason") or reason
        if len(text) - checked >= _STEP:
            checked = len(text)
            if _repeats_itself(text):
                raise ReplyInvalid("the reply repeats itself", text)
    if reason is None:
        raise ModelBusy("the answer could not be read: it ended early", maybe_charged=True)
    completion: dict[str, Any] = {"choices": [{"message": {"content": text}, "finish_reason": reason}], "usage": usage}
    return orjson.dumps(completion).decode()


def _repeats_itself(text: str) -> bool:
    """Return whether a text ends with one short piece again and again, such as white space or one sentence."""
    end = text[-_REPEATED:]
    return len(end) == _REPEATED and any(end[unit:] == end[:-unit] for unit in range(1, _UNIT_MAX + 1))


def _chat_messages(message: Message) -> list[dict[str, Any]]:
    """Return a message of a conversation for a chat completion, where each tool output is a message."""
    match message:
        case UserMessage(text):
            return [{"role": "user", "content": text}]
        case ModelMessage(content):
            return [content]
        case ToolOutputs(outputs, note):
            results = [{"role": "tool", "tool_call_id": output.id, "content": output.text} for output in outputs]
            return [*results, {"role": "user", "content": note}] if note else results
        case _:
            assert_never(message)


class _Function(BaseModel):
    name: str
    arguments: Any = None


class _ToolCall(BaseModel):
    id: str | None = None
    function: _Function


class _ChatMessage(BaseModel):
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(BaseModel):
    message: _ChatMessage
    finish_reason: str | None = None

    @property
    def truncated(self) -> str:
        """Reason why a reply is incomplete, or an empty text."""
        return "" if self.finish_reason in {None, "stop", "tool_calls"} else self.finish_reason or ""


class _Cached(BaseModel):
    cached_tokens: int | None = None


class _CompletionUsage(BaseModel):
    prompt_tokens: int
    completion_tokens: int = 0
    prompt_tokens_details: _Cached | None = None


class _Completion(BaseModel):
    """Fields of a chat completion that this module uses."""

    choices: list[_Choice]
    usage: _CompletionUsage | None = None


def _parse_choice(raw: str, tokens_in: Callable[[], int]) -> tuple[_Choice, Usage]:
    """Return the reply and its tokens. `tokens_in` estimates the tokens of the request if the server states none."""
    try:
        completion = _Completion.model_validate_json(raw)
        choice = completion.choices[0]
    except (ValidationError, IndexError):
        raise ReplyInvalid(f"the reply is not a chat completion. {_error_message(raw)}".rstrip(), raw) from None
    counts = completion.usage
    if counts is None:
        arguments = [str(call.function.arguments) for call in choice.message.tool_calls or ()]
        return choice, Usage(tokens_in(), 0, 0, count("\n".join([choice.message.content or "", *arguments])))
    details = counts.prompt_tokens_details
    cached = min(details.cached_tokens or 0, counts.prompt_tokens) if details else 0
    return choice, Usage(counts.prompt_tokens - cached, 0, cached, counts.completion_tokens)


def _call(call: _ToolCall, index: int) -> ToolCall:
    """Return a call with its arguments, which are JSON in a string. Some servers give calls no ID."""
    arguments: Any = call.function.arguments
    if isinstance(arguments, str):
        try:
            arguments = orjson.loads(arguments or "{}")
        except orjson.JSONDecodeError:
            arguments = None
    return ToolCall.of(call.id or f"call_{index}", call.function.name, arguments)


def _error_message(body: str) -> str:
    """Return the message in an error, which servers write as an object or as a string."""
    try:
        error: Any = orjson.loads(body)["error"]
        message: object = error if isinstance(error, str) else error["message"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        message = body
    return str(message)[:_MESSAGE_MAX].strip()
