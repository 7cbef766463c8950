"""Interface of language model providers, and the values that they return.

`messages_api`, `openai_api` and `agent_command` implement the interface. Providers do not retry, so that the
ledger contains every attempt.
"""

from typing import Protocol

from msgspec import Struct

from ...core.spending import Usage
from .model_request import ModelRequest


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
