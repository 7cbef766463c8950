"""Errors of language model calls.

::

    PalaverError
    ├── BudgetExhausted         the next call could exceed a budget or the limit of calls
    └── ExtractionError         the call returned nothing usable
        ├── ModelRefused        key, rights, quota, model name or program: no call can succeed
        ├── ModelBusy           rate limit, overload or network: the same call may succeed later
        ├── RequestRefused      this request can never succeed
        └── ReplyInvalid        the reply is truncated, malformed, or without a valid quote
"""

from ...core.errors import PalaverError


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
