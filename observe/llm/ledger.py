"""Ledger, which reserves the maximum cost of a call before the call, so that no budget is exceeded.

After the call, the actual cost replaces the reservation. If a process crashes, its reservations still count.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final, TypeVar
from uuid import uuid4

from msgspec import Struct

from ...archiver.store import PlannedCall, Store
from ...core.config import Config
from ...core.conversation import Milliseconds, now
from ...core.errors import ConfigInvalid
from ...core.prices import Price, PriceList, Rates
from ...core.reports import DOLLAR, Stats, Usage, dollars
from ...core.tokens import TokenCounts
from .provider import Answer, BudgetExhausted, ExtractionError, ToolTurn

_HOUR: Final = 3_600_000
"""One hour in milliseconds."""
_COMPARED: Final = 100
"""Number of most recent exchanges whose tokens are compared with those of their observations. This takes 0.5 s."""

Reply = TypeVar("Reply", Answer, ToolTurn)


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


def price_of(config: Config) -> Price:
    """Return the price of the configured model, from the settings or else from the price list.

    Raises:
        ConfigInvalid: The price is unknown, so no budget can be enforced.
    """
    if config.llm == "command":
        return Price(Rates(0, 0, 0, 0, 0), "calls are counted instead, up to llm_calls_day")
    server = config.llm_url if config.llm == "openai" else None
    price = PriceList(config).price(config.llm_model, server or config.llm)
    if price is None:
        raise ConfigInvalid(
            f"the price of {config.llm_model} is unknown",
            hint="Write llm_price = [IN, OUT] in config.toml: dollars per million tokens, [0, 0] for your own server.",
        )
    return price


def cost_of(usage: Usage, price: Price) -> int:
    """Return the cost of a call in billionths of a dollar."""
    return price.cost(TokenCounts(usage.tokens_in, usage.tokens_out, usage.cache_read, usage.cache_written))


class CallSize(Struct, frozen=True):
    """Maximum size of a call: bytes of the request (`size`) and tokens of the reply.

    `digest` identifies the request. `exchange` is the exchange that it quotes, or the first one of a session.
    """

    size: int
    tokens_out: int
    digest: str = ""
    exchange: int = 0


class BookedCalls:
    """Model calls of one run. `reason` is the purpose that the ledger records for them."""

    def __init__(self, store: Store, config: Config, reason: str, clock: Callable[[], Milliseconds] = now) -> None:
        """Prepare a run. Raises `ConfigInvalid` if the price of the model is unknown."""
        self._store, self._model, self._reason = store, config.llm_name, reason
        self.price = price_of(config)
        self._ledger = Ledger(store, Budget.of(config), uuid4().hex, clock)

    def make(self, planned: CallSize, call: Callable[[], Reply], keep: Callable[[Reply], str] = lambda _: "") -> Reply:
        """Make one call, and book its actual cost, or its maximum cost if it failed but may have been charged.

        `keep` stores the reply in the transaction that books the cost, and returns the outcome for the ledger.

        Raises:
            BudgetExhausted: The call was not made, because it could exceed a budget.
            ExtractionError: The call failed.
        """
        cost = self.maximum_cost(planned)
        with self._store.transaction():
            booked = self._ledger.reserve(
                PlannedCall(self._model, self._reason, planned.exchange, planned.digest, cost)
            )
        try:
            reply = call()
        except ExtractionError as error:
            if not error.maybe_charged:
                with self._store.transaction():
                    self._store.ledger.release(booked)
            raise
        with self._store.transaction():
            self._store.ledger.settle(booked, reply.usage, cost_of(reply.usage, self.price), keep(reply))
        return reply

    def maximum_cost(self, planned: CallSize) -> int:
        """Return the highest possible cost of a call."""
        return self.price.maximum_cost(planned.size, planned.tokens_out)

    def allows(self, cost: int, calls: int) -> bool:
        """Return whether the remaining budgets cover `cost`, and the limit of calls allows `calls` more calls."""
        left, possible = self._ledger.left(), self._ledger.calls_left(self._model)
        return all(cost <= amount for amount in left.values()) and (possible is None or calls <= possible)

    def spent(self) -> int:
        """Return the cost of this run so far, including the maximum cost of unanswered calls."""
        return self._ledger.spent()


def load_stats(store: Store, config: Config) -> Stats:
    """Return costs, budgets, replies and token savings."""
    ledger = Ledger(store, Budget.of(config), run="")
    return Stats(
        spent=store.ledger.by_model(),
        left=ledger.left(),
        calls_left=ledger.calls_left(config.llm_name),
        replies=store.ledger.outcomes(),
        reading=store.ledger.reading_costs(_COMPARED),
        injections=store.injections.totals(),
    )
