"""Ledger of every call to a language model, with its cost, and the queue of content that no model has read yet.

Amounts are integers in billionths of a dollar, so that sums are exact. A price of 1 dollar per million tokens equals
1,000 units per token.

The queue of sessions and exchanges is computed from the stored rows.
"""

from typing import Final

import orjson
from msgspec import Struct

from ...core.conversation import Kind, Milliseconds
from ...core.reports import ReadingCosts, Spent, Usage
from ...core.tokens import count
from .database import Database, Row
from .observation_table import FINDING_PREFIX, MODEL_PREFIX, OPTED_OUT, SUMMARY_PREFIX


class PlannedCall(Struct, frozen=True):
    """Call that is about to be made. `cost` is its maximum cost."""

    model: str
    reason: str
    exchange: int
    digest: str
    cost: int


class Attempts(Struct, frozen=True):
    """Calls with the same request.

    `failed` counts those that may have cost money and gave no valid reply, and `nothing` the replies that the text
    contains nothing worth keeping.
    """

    calls: int = 0
    failed: int = 0
    nothing: int = 0


INVALID: Final = "invalid"
"""Outcome of a reply that cannot be used."""
NOTHING: Final = "nothing"
"""Outcome of a reply that found nothing worth keeping."""
_CONVERSATION: Final = frozenset({Kind.PROMPT, Kind.PROSE})
_TOTALS = "sum(tokens_in), sum(cache_written), sum(cache_read), sum(tokens_out)"


class LedgerTable:
    """Table of calls. A reserved call counts with its maximum cost until `settle` records its actual cost."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def reserve(self, run: str, at: Milliseconds, call: PlannedCall) -> int:
        """Record a call before it is made, and return the ID of the entry."""
        return self._db.run(
            """INSERT INTO call (run, at, model, reason, exchange, digest, state, cost)
               VALUES (?, ?, ?, ?, ?, ?, 'reserved', ?)""",
            (run, at, call.model, call.reason, call.exchange, call.digest, call.cost),
        )

    def settle(self, call: int, usage: Usage, cost: int, outcome: str = "") -> None:
        """Record the actual token counts and cost of an answered call, and how its reply was used."""
        self._db.run(
            """UPDATE call SET state = 'settled', cost = ?, tokens_in = ?, cache_written = ?, cache_read = ?,
                   tokens_out = ?, outcome = ? WHERE id = ?""",
            (cost, usage.tokens_in, usage.cache_written, usage.cache_read, usage.tokens_out, outcome, call),
        )

    def release(self, call: int) -> None:
        """Record that a call cost nothing, because it was refused or never made."""
        self._db.run("UPDATE call SET state = 'released', cost = 0 WHERE id = ? AND state = 'reserved'", (call,))

    def attempts(self, digest: str) -> Attempts:
        """Return how earlier calls with the same request ended."""
        row = self._db.one(
            """SELECT count(*), total(state = 'reserved' OR outcome = ?), total(outcome = ?) FROM call
               WHERE digest = ?""",
            (INVALID, NOTHING, digest),
        )
        return Attempts(*map(int, row or (0, 0, 0)))

    def outcomes(self) -> dict[str, int]:
        """Count the replies by outcome."""
        sql = "SELECT outcome, count(*) FROM call WHERE outcome <> '' GROUP BY outcome ORDER BY outcome"
        return dict(self._db.rows(sql))

    def spent_since(self, at: Milliseconds) -> int:
        """Return the cost of all calls that were charged or reserved since `at`."""
        return self._db.number("SELECT sum(cost) FROM call WHERE at >= ?", (at,))

    def calls_since(self, at: Milliseconds, model: str) -> int:
        """Count the calls of a model since `at`, without released calls."""
        return self._db.number(
            "SELECT count(*) FROM call WHERE at >= ? AND model = ? AND state <> 'released'", (at, model)
        )

    def spent_in(self, run: str) -> int:
        """Return the cost of all calls that a run made or reserved."""
        return self._db.number("SELECT sum(cost) FROM call WHERE run = ?", (run,))

    def by_model(self) -> list[Spent]:
        """Return the calls and cost of each model by purpose, most expensive first. Released calls are omitted."""
        rows = self._db.rows(
            f"""SELECT model, reason, count(*), sum(state = 'reserved'), sum(cost), {_TOTALS} FROM call
                WHERE state <> 'released' GROUP BY model, reason ORDER BY 5 DESC, 1, 2"""
        )
        return [_spent(row) for row in rows]

    def reading_costs(self, most: int) -> ReadingCosts:
        """Return the token counts of the last `most` exchanges that have observations.

        The tokens are counted in three forms: the observations, the dialogue (prompts and replies) and the full
        transcript. Counting takes about 5 ms per exchange.
        """
        newest = "SELECT exchange FROM observation GROUP BY exchange ORDER BY exchange DESC LIMIT ?"
        row = self._db.one(f"SELECT count(*), total(tokens) FROM observation WHERE exchange IN ({newest})", (most,))
        observations, observation_tokens = map(int, row or (0, 0))
        exchanges = dialogue_tokens = transcript_tokens = 0
        for (turns,) in self._db.rows(f"SELECT turns FROM exchange WHERE item IN ({newest})", (most,)):
            exchanges += 1
            for _, _, kind, text, *_ in orjson.loads(turns):
                tokens = count(text)
                dialogue_tokens += tokens if kind in _CONVERSATION else 0
                transcript_tokens += tokens
        return ReadingCosts(exchanges, observations, observation_tokens, dialogue_tokens, transcript_tokens)


def _spent(row: Row) -> Spent:
    model, reason, calls, unanswered, cost, *used = row
    return Spent(model, reason, calls, unanswered, cost, Usage(*used))


class ModelQueue:
    """Queue of the extraction with a language model. It is derived, so nothing has to be added or removed."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def sessions(self, version: str, quiet_since: Milliseconds) -> list[int]:
        """Return the sessions without a card of this prompt version and without activity since `quiet_since`.

        Sessions that no model has read come first, then those with a card of another version. Both parts begin with
        the newest session.
        """
        return self._db.numbers(
            """SELECT s.id FROM session s JOIN item i ON i.session = s.id JOIN exchange e ON e.item = i.key
                LEFT JOIN (SELECT m.session, o.extractor FROM summary m JOIN observation o ON o.item = m.item) card
                    ON card.session = s.id AND card.extractor LIKE ?
                WHERE s.kind = 'main' AND coalesce(card.extractor, '') NOT LIKE ?
                GROUP BY s.id HAVING total(e.observed = ?) = 0 AND max(coalesce(e.ended, i.at, 0)) <= ?
                ORDER BY card.extractor IS NOT NULL, max(coalesce(i.at, 0)) DESC, s.id DESC""",
            (f"{SUMMARY_PREFIX}%", f"{SUMMARY_PREFIX}%:{version}", OPTED_OUT, quiet_since),
        )

    def exchanges(self, version: str) -> list[int]:
        """Return the exchanges that were not sent alone with this prompt version, newest first."""
        return self._db.numbers(
            """SELECT e.item FROM exchange e JOIN item i ON i.key = e.item
                WHERE coalesce(e.observed, '') <> ?
                    AND (coalesce(e.observed, '') NOT LIKE ? OR e.observed LIKE ?)
                ORDER BY coalesce(i.at, 0) DESC, i.key DESC""",
            (OPTED_OUT, f"{MODEL_PREFIX}%:{version}", f"{FINDING_PREFIX}%"),
        )

    def release_findings(self, session: int) -> None:
        """Schedule a new extraction by rules for the exchanges with findings of a model that read the session."""
        self._db.run(
            """UPDATE exchange SET observed = NULL WHERE observed LIKE ?
                AND item IN (SELECT key FROM item WHERE session = ?)""",
            (f"{FINDING_PREFIX}%", session),
        )
