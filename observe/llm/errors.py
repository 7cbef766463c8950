"""What can go wrong with a language model, which nobody else raises.

::

    PalaverError
    ├── BudgetExhausted         the next call could cost more than is left of a budget
    └── ExtractionError         the language model gave nothing that can be used
        ├── ModelRefused        key, rights, quota or name of the model: no call will work
        ├── ModelBusy           limited, overloaded or unreachable: the same call may work later
        ├── RequestRefused      this one request will never work
        └── ReplyInvalid        a reply that is cut, no JSON, of another shape, or proves nothing
"""

from ...core.errors import PalaverError


class BudgetExhausted(PalaverError):
    """A cap leaves too little for the next call. `span` names the cap: run, hour, day or month."""

    def __init__(self, span: str, message: str) -> None:
        self.span = span
        super().__init__(message, hint=f"Wait, or raise budget_{span} in config.toml, and run `palaver observe` again.")


class ExtractionError(PalaverError):
    """A call to the language model that brought no result."""


class ModelRefused(ExtractionError):
    """Every call would fail in the same way, so the stage stops. `status` is the provider's HTTP status."""

    def __init__(self, message: str, status: int, *, hint: str) -> None:
        self.status = status
        super().__init__(message, hint=hint)


class ModelBusy(ExtractionError):
    """The provider did not answer this time. `after` is in how many seconds it asks to be called again, if it said so.

    `unsure` is True when the call may have been worked on, and so charged, although no answer came.
    """

    def __init__(self, message: str, *, after: float | None = None, unsure: bool = False) -> None:
        self.after, self.unsure = after, unsure
        super().__init__(message, hint="Nothing is lost; run `palaver observe` again later.")


class RequestRefused(ExtractionError):
    """The provider does not take this request; `status` is its HTTP status, 0 inside a batch."""

    def __init__(self, message: str, status: int = 0) -> None:
        self.status = status
        super().__init__(message, hint="See it with `palaver observe --dead-letters`.")


class ReplyInvalid(ExtractionError):
    """A reply that cannot be used. `reply` is what came, as it came."""

    def __init__(self, message: str, reply: str) -> None:
        self.reply = reply
        super().__init__(message, hint="See it with `palaver observe --dead-letters`.")
