"""The ledger: no call without money reserved for it, so no cap is ever passed.

A cap is compared with what was spent and what is reserved. Before a call is made the most it can cost is reserved;
afterwards what it did cost is settled. What was reserved and never settled, because the process died, stays counted.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from msgspec import Struct

from ...archiver.store import Planned, Store
from ...core.clock import now
from ...core.config import Config
from ...core.conversation import Milliseconds
from ...core.money import DOLLAR, dollars
from .errors import BudgetExhausted

_HOUR = 3_600_000


class Budget(Struct, frozen=True):
    """The caps in billionths of a dollar, by span: run, hour (60 minutes), day (24 hours), month (calendar, UTC)."""

    caps: Mapping[str, int]

    @classmethod
    def of(cls, config: Config) -> "Budget":
        """The caps that a person set."""
        told = {
            "run": config.budget_run,
            "hour": config.budget_hour,
            "day": config.budget_day,
            "month": config.budget_month,
        }
        return cls({span: round(amount * DOLLAR) for span, amount in told.items() if amount is not None})


class Ledger:
    """The accounts of one run. `run` is a name that no other run has."""

    def __init__(self, store: Store, budget: Budget, run: str, clock: Callable[[], Milliseconds] = now) -> None:
        self._rows, self._budget, self._run, self._clock = store.ledger, budget, run, clock

    def reserve(self, call: Planned) -> int:
        """Reserve the most that a call can cost; its number. Raises `BudgetExhausted`.

        The caller holds the transaction, so that two processes never reserve the same money.
        """
        for span, left in self.left().items():
            if call.cost > left:
                raise BudgetExhausted(
                    span, f"the next call could cost {dollars(call.cost)}, and budget_{span} has {dollars(left)} left"
                )
        return self._rows.reserve(self._run, self._clock(), call)

    def left(self) -> dict[str, int]:
        """What each cap still allows."""
        return {span: max(cap - self._spent(span), 0) for span, cap in self._budget.caps.items()}

    def spent(self) -> int:
        """What this run has cost so far."""
        return self._rows.spent_in(self._run)

    def _spent(self, span: str) -> int:
        if span == "run":
            return self._rows.spent_in(self._run)
        return self._rows.spent_since(_since(span, self._clock()))


def _since(span: str, at: Milliseconds) -> Milliseconds:
    if span == "hour":
        return at - _HOUR
    if span == "day":
        return at - 24 * _HOUR
    first = datetime.fromtimestamp(at / 1000, UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return round(first.timestamp() * 1000)
