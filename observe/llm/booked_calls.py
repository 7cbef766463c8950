"""Calls of a language model. The ledger reserves the maximum cost of each call before the call is made."""

from collections.abc import Callable
from typing import TypeVar
from uuid import uuid4

from msgspec import Struct

from ...archiver.store import PlannedCall, Store
from ...core.clock import now
from ...core.config import Config
from ...core.conversation import Milliseconds
from .ledger import Budget, Ledger
from .model_errors import ExtractionError
from .prices import price_of
from .provider import Answer
from .tool_turn import ToolTurn

Reply = TypeVar("Reply", Answer, ToolTurn)


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
            self._store.ledger.settle(booked, reply.usage, self.price.cost(reply.usage), keep(reply))
        return reply

    def maximum_cost(self, planned: CallSize) -> int:
        """Return the highest possible cost of a call."""
        return self.price.maximum_cost(planned.size, planned.tokens_out)

    def allows(self, cost: int, calls: int) -> bool:
        """Return whether the remaining budgets cover `cost`, and the limit of calls allows `calls` more calls."""
        left, possible = self._ledger.left(), self._ledger.calls_left(self._model)
        return all(cost <= each for each in left.values()) and (possible is None or calls <= possible)

    def spent(self) -> int:
        """Return the cost of this run so far, including the maximum cost of unanswered calls."""
        return self._ledger.spent()
