"""Ledger, which reserves the maximum cost of a call before the call, so that no budget is exceeded.

After the call, the actual cost replaces the reservation. If a process crashes, its reservations still count.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from ...archiver.store import PlannedCall, Store
from ...core.amount import DOLLAR, dollars
from ...core.clock import now
from ...core.config import Config
from ...core.conversation import Milliseconds
from .model_errors import BudgetExhausted

_HOUR: Final = 3_600_000
"""One hour in milliseconds."""


class Budget(Struct, frozen=True):
    """Limits in billionths of a dollar, by period: run, hour (60 minutes), day (24 hours), month (calendar, UTC).

    `calls_day` is the maximum number of calls in 24 hours, or None without a limit.
    """

    limits: Mapping[str, int]
    calls_day: int | None = None

    @classmethod
    def of(cls, config: Config) -> "Budget":
        """Return the limits in a configuration."""
        amounts = {
            "run": config.budget_run,
            "hour": config.budget_hour,
            "day": config.budget_day,
            "month": config.budget_month,
        }
        limits = {span: round(amount * DOLLAR) for span, amount in amounts.items() if amount is not None}
        return cls(limits, config.llm_calls_day if config.llm == "command" else None)


class Ledger:
    """Ledger of one run. `run` is its unique name."""

    def __init__(self, store: Store, budget: Budget, run: str, clock: Callable[[], Milliseconds] = now) -> None:
        self._rows, self._budget, self._run, self._clock = store.ledger, budget, run, clock

    def reserve(self, call: PlannedCall) -> int:
        """Reserve the maximum cost of a call and return the ID of the call.

        The caller holds the transaction, so that two processes never reserve the same money.

        Raises:
            BudgetExhausted: The call could exceed a budget.
        """
        for span, left in self.left().items():
            if call.cost > left:
                message = f"the next call could cost {dollars(call.cost)}, and budget_{span} has {dollars(left)} left"
                raise BudgetExhausted(f"budget_{span}", message)
        if self.calls_left(call.model) == 0:
            message = f"{call.model} was called {self._budget.calls_day} times in 24 hours, the limit of llm_calls_day"
            raise BudgetExhausted("llm_calls_day", message)
        return self._rows.reserve(self._run, self._clock(), call)

    def left(self) -> dict[str, int]:
        """Return the remaining amount of each budget, by name."""
        return {span: max(limit - self._spent(span), 0) for span, limit in self._budget.limits.items()}

    def calls_left(self, model: str) -> int | None:
        """Return the remaining number of calls of a model, or None if there is no limit."""
        if self._budget.calls_day is None:
            return None
        return max(self._budget.calls_day - self._rows.calls_since(_start_of("day", self._clock()), model), 0)

    def spent(self) -> int:
        """Return the cost of this run so far."""
        return self._rows.spent_in(self._run)

    def _spent(self, span: str) -> int:
        return self.spent() if span == "run" else self._rows.spent_since(_start_of(span, self._clock()))


def _start_of(span: str, at: Milliseconds) -> Milliseconds:
    if span == "hour":
        return at - _HOUR
    if span == "day":
        return at - 24 * _HOUR
    first = datetime.fromtimestamp(at / 1000, UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return round(first.timestamp() * 1000)
