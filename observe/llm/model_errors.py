"""Errors of language model calls.

::

    PalaverError
    ├── BudgetExhausted         the next call could exceed a budget
    └── ExtractionError         the call returned nothing usable
        ├── ModelRefused        key, rights, quota or model name: no call can succeed
        ├── ModelBusy           rate limit, overload or network: the same call may succeed later
        ├── RequestRefused      this request can never succeed
        └── ReplyInvalid        the reply is truncated, malformed, or without a valid quote
"""

from ...core.errors import PalaverError


class BudgetExhausted(PalaverError):
    """Error: a budget does not cover the next call. `span` names the budget: run, hour, day or month."""

    def __init__(self, span: str, message: str) -> None:
        self.span = span
        super().__init__(message, hint=f"Wait, or raise budget_{span} in config.toml, and run `palaver observe` again.")


class ExtractionError(PalaverError):
    """Error: a call to the language model returned no usable result."""


class ModelRefused(ExtractionError):
    """Error: the provider refuses every call, so the extraction stops. `status` is the HTTP status."""

    def __init__(self, message: str, status: int, *, hint: str) -> None:
        self.status = status
        super().__init__(message, hint=hint)


class ModelBusy(ExtractionError):
    """Error: a call to the language model failed temporarily.

    `after` is the number of seconds to wait, if the provider stated one. `maybe_charged` is True if the provider may
    have processed the call without returning a reply.
    """

    def __init__(self, message: str, *, after: float | None = None, maybe_charged: bool = False) -> None:
        self.after, self.maybe_charged = after, maybe_charged
        super().__init__(message, hint="Nothing is lost. Run `palaver observe` again later.")


class RequestRefused(ExtractionError):
    """Error: the provider refused one request. `status` is the HTTP status, 0 inside a batch."""

    def __init__(self, message: str, status: int = 0) -> None:
        self.status = status
        super().__init__(message, hint="Run `palaver observe --dead-letters` to see the request.")


class ReplyInvalid(ExtractionError):
    """Error: the reply has no usable content. `reply` is its raw text."""

    def __init__(self, message: str, reply: str) -> None:
        self.reply = reply
        super().__init__(message, hint="Run `palaver observe --dead-letters` to see the request.")
