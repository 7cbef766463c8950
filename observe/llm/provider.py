"""Language model provider: the only module that imports the SDK and translates its errors.

This module does not retry. The job queue retries, so that the ledger contains every attempt.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

import orjson
from msgspec import Struct
from pydantic import BaseModel, ValidationError

from ...core.closing import Closing
from ...core.conversation import Milliseconds
from ...core.spending import Usage
from .model_errors import ExtractionError, ModelBusy, ModelRefused, ReplyInvalid, RequestRefused

if TYPE_CHECKING:
    import anthropic

ANTHROPIC = "https://api.anthropic.com"
_TIMEOUT = 180.0
"""Timeout in seconds, well within a job's lease."""
_RECENT = 100
"""Maximum number of batches that `recent` returns."""
_PERMANENT = {401, 402, 403, 404}
_TEMPORARY = {408, 409, 425, 429}
_NOT_IMPLEMENTED = 501


class Answer(Struct, frozen=True):
    """Charged reply. `truncated` is the stop reason if the reply is incomplete, else empty."""

    text: str
    truncated: str
    usage: Usage
    raw: str


class BatchResult(Struct, frozen=True):
    """Result of one request of a batch: an answer, or an error that was not charged."""

    custom_id: str
    answer: Answer | None
    error: ExtractionError | None = None


class RemoteBatch(Struct, frozen=True):
    """Batch in the provider's list."""

    name: str
    at: Milliseconds
    ended: bool


class Provider(Closing):
    """Client of a server with the Messages API. Creating it imports the SDK (about 1 s) but does not connect.

    All methods raise `ModelBusy`, `ModelRefused` or `RequestRefused`.
    """

    def __init__(self, key: str, url: str | None = None, seconds: float = _TIMEOUT) -> None:
        import anthropic

        self._client = anthropic.Anthropic(api_key=key, base_url=url or ANTHROPIC, max_retries=0, timeout=seconds)

    def ask(self, params: Mapping[str, Any]) -> Answer:
        """Return the reply to one request; raises `ReplyInvalid` if it is not a message."""
        with _translate_errors():
            send: Callable[..., anthropic.APIResponse[Any]] = self._client.messages.with_raw_response.create
            raw = send(**params).http_response.text
        return _parse_answer(raw)

    def submit(self, requests: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
        """Send requests, each with its ID, as a batch, and return the name of the batch."""
        entries: list[Any] = [{"custom_id": name, "params": dict(params)} for name, params in requests]
        with _translate_errors():
            return self._client.messages.batches.create(requests=entries).id

    def ended(self, name: str) -> bool:
        """Return whether all results of a batch are available."""
        with _translate_errors():
            return self._client.messages.batches.retrieve(name).processing_status == "ended"

    def results(self, name: str) -> Generator[BatchResult]:
        """Yield the results of a completed batch, in any order."""
        with _translate_errors():
            lines = self._client.messages.batches.results(name)
            try:
                for line in lines:
                    result = _parse_result(line.to_dict())
                    if result is not None:
                        yield result
            finally:
                lines.close()

    def recent(self) -> list[RemoteBatch]:
        """Return the newest batches of this API key, including batches of other programs."""
        with _translate_errors():
            page = self._client.messages.batches.list(limit=_RECENT)
            return [
                RemoteBatch(each.id, _milliseconds(each.created_at), each.processing_status == "ended")
                for each in page.data
            ]

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


class _Block(BaseModel):
    type: str
    text: str = ""


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
    try:
        message = _Message.model_validate_json(raw)
    except ValidationError:
        raise ReplyInvalid("the reply is not a message of the Messages API", raw) from None
    counts = message.usage
    usage = Usage(
        counts.input_tokens,
        counts.cache_creation_input_tokens or 0,
        counts.cache_read_input_tokens or 0,
        counts.output_tokens,
    )
    text = "".join(block.text for block in message.content if block.type == "text")
    reason = message.stop_reason or ""
    truncated = "" if reason in {"", "end_turn", "stop_sequence"} else reason
    return Answer(text, truncated, usage, raw)


class _ErrorDetail(BaseModel):
    type: str = "error"
    message: str = ""


class _Error(BaseModel):
    error: _ErrorDetail = _ErrorDetail()


class _Result(BaseModel):
    type: Literal["succeeded", "errored", "canceled", "expired"]
    message: dict[str, Any] | None = None
    error: _Error = _Error()


class _Line(BaseModel):
    custom_id: str
    result: _Result


def _parse_result(record: object) -> BatchResult | None:
    """Parse a line of the results; return None for an invalid line, whose request then counts as unanswered."""
    try:
        line = _Line.model_validate(record)
    except ValidationError:
        return None
    try:
        return BatchResult(line.custom_id, _answer_of(line.result))
    except ExtractionError as error:
        return BatchResult(line.custom_id, None, error)


def _answer_of(result: _Result) -> Answer:
    if result.type == "succeeded":
        return _parse_answer(orjson.dumps(result.message).decode())
    if result.type != "errored":
        raise ModelBusy(f"this request was not processed (batch result: {result.type})")
    inner = result.error.error
    message = f"{inner.type}: {inner.message}"
    raise (RequestRefused if inner.type in {"invalid_request_error", "not_found_error"} else ModelBusy)(message)


def _milliseconds(at: datetime) -> Milliseconds:
    return round(at.timestamp() * 1000)


@contextmanager
def _translate_errors() -> Generator[None]:
    import anthropic
    import httpx2

    try:
        yield
    except anthropic.APIStatusError as error:
        raise _by_status(error) from error
    except anthropic.APITimeoutError as error:
        unsent = isinstance(error.__cause__, httpx2.ConnectTimeout)
        raise ModelBusy("the model did not answer in time", maybe_charged=not unsent) from error
    except anthropic.APIConnectionError as error:
        unsent = isinstance(error.__cause__, httpx2.ConnectError)
        raise ModelBusy(f"the model cannot be reached: {error.__cause__ or error}", maybe_charged=not unsent) from error
    except (httpx2.HTTPError, ValueError) as error:
        # The body is incomplete or not JSON.
        raise ModelBusy(f"the answer could not be read: {error}", maybe_charged=True) from error
    except anthropic.AnthropicError as error:
        raise ModelBusy(str(error), maybe_charged=True) from error


def _by_status(error: "anthropic.APIStatusError") -> ExtractionError:
    status, message = error.status_code, error.api_message or error.message
    if status in _PERMANENT or error.type == "billing_error":
        hint = _HINTS.get(status, "Check the account that your API key belongs to, then run `palaver observe` again.")
        return ModelRefused(f"the provider refused the call with status {status}: {message}", status, hint=hint)
    if status in _TEMPORARY or (status >= 500 and status != _NOT_IMPLEMENTED):
        return ModelBusy(f"the provider is busy ({status}): {message}", after=_retry_after(error.response.headers))
    return RequestRefused(f"the provider rejected this request ({status}): {message}", status)


_HINTS = {
    401: "Check ANTHROPIC_API_KEY, then run `palaver observe` again.",
    404: "Check llm_model and llm_url in config.toml, then run `palaver observe` again.",
}


def _retry_after(headers: Mapping[str, str]) -> float | None:
    try:
        return max(float(headers["retry-after"]), 0.0)
    except (KeyError, ValueError):
        return None
