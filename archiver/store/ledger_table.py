"""The ledger: every call to a language model, what it was for and what it cost.

Money is counted in whole billionths of a dollar, so that sums are exact: a price of 1 dollar per million tokens is
1,000 of them per token.
"""

from collections.abc import Sequence
from typing import Final, cast

import orjson
from msgspec import Struct

from ...core.conversation import Kind, Milliseconds
from ...core.spending import Disclosure, Spent, Usage
from ...core.tokens import count
from .database import Database, Row


class Planned(Struct, frozen=True):
    """A call that is about to be made. `cost` is the most that it can cost."""

    model: str
    reason: str
    exchange: int
    digest: str
    cost: int


_SAID: Final = frozenset({Kind.PROMPT, Kind.PROSE})
_TOTALS = "sum(tokens_in), sum(cache_written), sum(cache_read), sum(tokens_out)"


class LedgerTable:
    """Reads and writes calls. A call that was reserved and never settled counts with the most it can have cost."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def reserve(self, run: str, at: Milliseconds, call: Planned, batch: int | None = None) -> int:
        """Note a call before it is made; its number."""
        return self._db.run(
            """INSERT INTO call (run, at, model, reason, exchange, digest, batch, state, cost)
               VALUES (?, ?, ?, ?, ?, ?, ?, 'reserved', ?)""",
            (run, at, call.model, call.reason, call.exchange, call.digest, batch, call.cost),
        )

    def attach(self, calls: Sequence[int], batch: int) -> None:
        """These calls are made by a batch."""
        self._db.run_many("UPDATE call SET batch = ? WHERE id = ?", [(batch, call) for call in calls])

    def settle(self, call: int, usage: Usage, cost: int) -> None:
        """The call was answered and charged."""
        self._db.run(
            """UPDATE call SET state = 'settled', cost = ?, tokens_in = ?, cache_written = ?, cache_read = ?,
                   tokens_out = ? WHERE id = ?""",
            (cost, usage.tokens_in, usage.cache_written, usage.cache_read, usage.tokens_out, call),
        )

    def release(self, calls: Sequence[int]) -> None:
        """These calls cost nothing: they were refused, or never made."""
        self._db.run_many(
            "UPDATE call SET state = 'released', cost = 0 WHERE id = ? AND state = 'reserved'",
            [(call,) for call in calls],
        )

    def of_batch(self, batch: int) -> dict[int, int]:
        """The reserved calls of a batch, by exchange."""
        rows = self._db.rows("SELECT exchange, id FROM call WHERE batch = ? AND state = 'reserved'", (batch,))
        return {cast(int, exchange): cast(int, call) for exchange, call in rows}

    def model_of(self, call: int) -> str:
        """The model that a call was reserved for."""
        row = self._db.one("SELECT model FROM call WHERE id = ?", (call,))
        return str(row[0]) if row else ""

    def spent_since(self, at: Milliseconds) -> int:
        """What was spent or is reserved since this instant."""
        return self._db.number("SELECT sum(cost) FROM call WHERE at >= ?", (at,))

    def spent_in(self, run: str) -> int:
        """What one run has spent or reserved."""
        return self._db.number("SELECT sum(cost) FROM call WHERE run = ?", (run,))

    def by_model(self) -> list[Spent]:
        """What every model was used for, dearest first. Calls that were never charged are left out."""
        rows = self._db.rows(
            f"""SELECT model, reason, count(*), sum(state = 'reserved'), sum(cost), {_TOTALS} FROM call
                WHERE state <> 'released' GROUP BY model, reason ORDER BY 5 DESC, 1, 2"""
        )
        return [_spent(row) for row in rows]

    def disclosure(self, most: int) -> Disclosure:
        """What the last `most` exchanges that taught something cost to read, in each way there is.

        All is counted as observations are when they are stored: about 5 ms for an exchange.
        """
        taught = "SELECT exchange FROM observation GROUP BY exchange ORDER BY exchange DESC LIMIT ?"
        row = self._db.one(f"SELECT count(*), total(price) FROM observation WHERE exchange IN ({taught})", (most,))
        observations, price = (int(cast(float, value)) for value in row or (0, 0))
        exchanges = said = kept = 0
        for (turns,) in self._db.rows(f"SELECT turns FROM exchange WHERE item IN ({taught})", (most,)):
            exchanges += 1
            for _, _, kind, text, *_ in orjson.loads(cast(bytes, turns)):
                tokens = count(text)
                said += tokens if kind in _SAID else 0
                kept += tokens
        return Disclosure(exchanges, observations, price, said, kept)


def _spent(row: Row) -> Spent:
    calls, unanswered, cost, *used = (cast(int, value) for value in row[2:])
    return Spent(str(row[0]), str(row[1]), calls, unanswered, cost, Usage(*used))
