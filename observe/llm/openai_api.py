"""Provider for the chat completions API.

Ollama, LM Studio, llama.cpp, vLLM, OpenRouter, OpenAI and other servers implement this API.
"""

from functools import partial
from http.client import HTTPException, HTTPResponse, IncompleteRead
from typing import Any, Final, cast
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

import orjson
from pydantic import BaseModel, ValidationError

from ...core.spending import Usage
from ...core.tokens import count
from .http_status import TIMEOUT, error_of
from .loopback import is_loopback
from .model_errors import ExtractionError, ModelBusy, ReplyInvalid
from .model_request import ModelRequest
from .provider import Answer
from .reply_limits import limited

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

    def ask(self, request: ModelRequest) -> Answer:
        """Return the reply to one request. Raises `ReplyInvalid` if it is not a chat completion."""
        return _parse_answer(self._send(_body(request, self._url)), request)

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
        chunks = iter(partial(response.read1, _CHUNK), b"")
        content = b"".join(limited(chunks, self._seconds))
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


def _body(request: ModelRequest, url: str) -> dict[str, Any]:
    # OpenAI's newer models reject `max_tokens`. Other servers do not support the parameter that replaced it.
    limit = "max_completion_tokens" if urlsplit(url).hostname == _OPENAI_HOST else "max_tokens"
    return {
        "model": request.model,
        limit: request.tokens_out,
        "messages": [
            {"role": "system", "content": request.system},
            {"role": "user", "content": request.text},
        ],
        "response_format": {"type": "json_schema", "json_schema": {"name": "reply", "schema": request.schema}},
    }


class _Message(BaseModel):
    content: str | None = None


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


def _parse_answer(raw: str, request: ModelRequest) -> Answer:
    try:
        completion = _Completion.model_validate_json(raw)
        choice = completion.choices[0]
    except (ValidationError, IndexError):
        raise ReplyInvalid(f"the reply is not a chat completion. {_message(raw)}".rstrip(), raw) from None
    text, counts = choice.message.content or "", completion.usage
    if counts is None:
        usage = Usage(request.tokens(), 0, 0, count(text))
    else:
        details = counts.prompt_tokens_details
        cached = min(details.cached_tokens or 0, counts.prompt_tokens) if details else 0
        usage = Usage(counts.prompt_tokens - cached, 0, cached, counts.completion_tokens)
    truncated = "" if choice.finish_reason in {None, "", "stop"} else choice.finish_reason
    return Answer(text, truncated or "", usage, raw)


def _message(body: str) -> str:
    """Return the message in an error, which servers write as an object or as a string."""
    try:
        error: Any = orjson.loads(body)["error"]
        message: object = error if isinstance(error, str) else error["message"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        message = body
    return str(message)[:_MESSAGE_MAX].strip()
