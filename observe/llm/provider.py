"""The provider: the one module that imports its SDK, and the one boundary where its errors become ours.

Nothing is retried here: the queue does that, so that every attempt is in the ledger.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol

import orjson
from msgspec import Struct
from pydantic import BaseModel, ValidationError

from ...core.closing import Closing
from ...core.conversation import Milliseconds
from ...core.spending import Usage
from .errors import ExtractionError, ModelBusy, ModelRefused, ReplyInvalid, RequestRefused

if TYPE_CHECKING:
    import anthropic

ANTHROPIC = "https://api.anthropic.com"
_SECONDS = 180.0
"""Longest wait for an answer; well within a job's lease."""
_RECENT = 100
_STOPS_ALL = {401, 402, 403, 404}
_NOT_A_REQUEST = {408, 409, 425, 429}
_NOT_IMPLEMENTED = 501


class Answer(Struct, frozen=True):
    """What came back and was charged. `cut` when the answer was longer than allowed or refused half-way."""

    text: str
    cut: str
    usage: Usage
    raw: str


class Outcome(Struct, frozen=True):
    """The result of one request of a batch: an answer, or why there is none (which is not charged)."""

    custom_id: str
    answer: Answer | None
    error: ExtractionError | None = None


class RemoteBatch(Struct, frozen=True):
    """A batch as the provider tells of it."""

    name: str
    at: Milliseconds
    ended: bool


class Provider(Protocol):
    """Whoever answers requests. All methods raise `ModelBusy`, `ModelRefused` or `RequestRefused`."""

    def ask(self, params: Mapping[str, Any]) -> Answer:
        """One answer now; raises `ReplyInvalid` when it is no message at all."""
        ...

    def submit(self, requests: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
        """Hand in requests under their own ids; the provider's name for the batch."""
        ...

    def ended(self, name: str) -> bool:
        """Whether all of a batch has its result."""
        ...

    def results(self, name: str) -> Generator[Outcome]:
        """The results of a batch that ended, in any order."""
        ...

    def recent(self) -> list[RemoteBatch]:
        """The batches made last, by anybody with this key."""
        ...

    def close(self) -> None:
        """Let go of its connections."""
        ...


class Anthropic(Closing):
    """Any server that speaks the Messages API. Making one imports the SDK (about a second) and opens no socket."""

    def __init__(self, key: str, url: str | None = None, seconds: float = _SECONDS) -> None:
        import anthropic

        self._client = anthropic.Anthropic(api_key=key, base_url=url or ANTHROPIC, max_retries=0, timeout=seconds)

    def ask(self, params: Mapping[str, Any]) -> Answer:
        with _translated():
            send: Callable[..., anthropic.APIResponse[Any]] = self._client.messages.with_raw_response.create
            raw = send(**params).http_response.text
        return _answer(raw)

    def submit(self, requests: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
        entries: list[Any] = [{"custom_id": name, "params": dict(params)} for name, params in requests]
        with _translated():
            return self._client.messages.batches.create(requests=entries).id

    def ended(self, name: str) -> bool:
        with _translated():
            return self._client.messages.batches.retrieve(name).processing_status == "ended"

    def results(self, name: str) -> Generator[Outcome]:
        with _translated():
            lines = self._client.messages.batches.results(name)
            try:
                for line in lines:
                    outcome = _outcome(line.to_dict())
                    if outcome is not None:
                        yield outcome
            finally:
                lines.close()

    def recent(self) -> list[RemoteBatch]:
        with _translated():
            page = self._client.messages.batches.list(limit=_RECENT)
            return [
                RemoteBatch(each.id, _instant(each.created_at), each.processing_status == "ended") for each in page.data
            ]

    def close(self) -> None:
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
    """As much of a message as we use. Read by ourselves, since the SDK checks nothing that a server sends."""

    content: list[_Block]
    stop_reason: str | None
    usage: _Counts


def _answer(raw: str) -> Answer:
    try:
        message = _Message.model_validate_json(raw)
    except ValidationError:
        raise ReplyInvalid("the answer is no message of the Messages API", raw) from None
    counts = message.usage
    usage = Usage(
        counts.input_tokens,
        counts.cache_creation_input_tokens or 0,
        counts.cache_read_input_tokens or 0,
        counts.output_tokens,
    )
    text = "".join(block.text for block in message.content if block.type == "text")
    reason = message.stop_reason or ""
    cut = "" if reason in {"", "end_turn", "stop_sequence"} else reason
    return Answer(text, cut, usage, raw)


class _Said(BaseModel):
    type: str = "error"
    message: str = ""


class _Error(BaseModel):
    error: _Said = _Said()


class _Result(BaseModel):
    type: Literal["succeeded", "errored", "canceled", "expired"]
    message: dict[str, Any] | None = None
    error: _Error = _Error()


class _Line(BaseModel):
    custom_id: str
    result: _Result


def _outcome(told: object) -> Outcome | None:
    """A line of the results; None for what is none: its request counts as one without a result."""
    try:
        line = _Line.model_validate(told)
    except ValidationError:
        return None
    result = line.result
    if result.type == "succeeded":
        try:
            return Outcome(line.custom_id, _answer(orjson.dumps(result.message).decode()))
        except ReplyInvalid as error:
            return Outcome(line.custom_id, None, error)
    if result.type != "errored":
        return Outcome(line.custom_id, None, ModelBusy(f"the batch {result.type} before this request was worked on"))
    inner = result.error.error
    said = f"{inner.type}: {inner.message}"
    if inner.type in {"invalid_request_error", "not_found_error"}:
        return Outcome(line.custom_id, None, RequestRefused(said))
    return Outcome(line.custom_id, None, ModelBusy(said))


def _instant(at: datetime) -> Milliseconds:
    return round(at.timestamp() * 1000)


@contextmanager
def _translated() -> Generator[None]:
    import anthropic
    import httpx2

    try:
        yield
    except anthropic.APIStatusError as error:
        raise _by_status(error) from error
    except anthropic.APITimeoutError as error:
        unsent = isinstance(error.__cause__, httpx2.ConnectTimeout)
        raise ModelBusy("the model did not answer in time", unsure=not unsent) from error
    except anthropic.APIConnectionError as error:
        unsent = isinstance(error.__cause__, httpx2.ConnectError)
        raise ModelBusy(f"the model cannot be reached: {error.__cause__ or error}", unsure=not unsent) from error
    except (httpx2.HTTPError, ValueError) as error:
        # A body that breaks off or is no JSON, found while it was read.
        raise ModelBusy(f"the answer could not be read: {error}", unsure=True) from error
    except anthropic.AnthropicError as error:
        raise ModelBusy(str(error), unsure=True) from error


def _by_status(error: "anthropic.APIStatusError") -> ExtractionError:
    status, said = error.status_code, error.api_message or error.message
    if status in _STOPS_ALL or error.type == "billing_error":
        hint = _HINTS.get(status, "Check the account of your key, then run `palaver observe` again.")
        return ModelRefused(f"the provider refused with {status}: {said}", status, hint=hint)
    if status in _NOT_A_REQUEST or (status >= 500 and status != _NOT_IMPLEMENTED):
        return ModelBusy(f"the provider is busy ({status}): {said}", after=_seconds(error.response.headers))
    return RequestRefused(f"the provider does not take this request ({status}): {said}", status)


_HINTS = {
    401: "Check ANTHROPIC_API_KEY, then run `palaver observe` again.",
    404: "Check llm_model and llm_url in config.toml, then run `palaver observe` again.",
}


def _seconds(headers: Mapping[str, str]) -> float | None:
    try:
        return max(float(headers["retry-after"]), 0.0)
    except (KeyError, ValueError):
        return None
