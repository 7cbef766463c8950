"""Interface of language model providers, and the values that they return.

`messages_api`, `openai_api` and `agent_command` implement the interface. Providers do not retry. The job queue retries,
so that the ledger contains every attempt.
"""

from collections.abc import Generator, Sequence
from typing import Protocol, runtime_checkable

from msgspec import Struct

from ...core.conversation import Milliseconds
from ...core.spending import Usage
from .model_errors import ExtractionError
from .model_request import ModelRequest


class Answer(Struct, frozen=True):
    """Reply that the provider charged for.

    If the reply is incomplete, `truncated` is the stop reason. Otherwise it is empty.
    """

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
    """Batch as listed by the provider."""

    name: str
    at: Milliseconds
    ended: bool


class Provider(Protocol):
    """Provider of a language model. All methods raise `ModelBusy`, `ModelRefused` or `RequestRefused`."""

    def ask(self, request: ModelRequest) -> Answer:
        """Return the reply to one request. Raises `ReplyInvalid` if the response of the provider is malformed."""
        ...

    def close(self) -> None:
        """Release all resources."""
        ...


@runtime_checkable
class BatchProvider(Provider, Protocol):
    """Provider that also accepts many requests together, answered later at a lower price."""

    def submit(self, requests: Sequence[tuple[str, ModelRequest]]) -> str:
        """Send requests, each with its ID, as a batch, and return the name of the batch."""
        ...

    def ended(self, name: str) -> bool:
        """Return whether all results of a batch are available."""
        ...

    def results(self, name: str) -> Generator[BatchResult]:
        """Yield the results of a completed batch, in any order."""
        ...

    def recent(self) -> list[RemoteBatch]:
        """Return the newest batches of this API key, including batches of other programs."""
        ...
