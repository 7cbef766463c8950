"""Confirmations: exchanges that repeat an observation of an earlier exchange.

The observation keeps its first wording. Each exchange that repeats it adds evidence from its own lines.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import astuple

from ...core.conversation import Milliseconds
from ...core.observation import Evidence
from .database import AMONG, Database, listed
from .observation_table import COLUMNS, FROM, StoredObservation, stored_of

CANDIDATES: Final = 100
"""Maximum number of stored observations with which a new observation is compared."""


class Confirmation(Struct, frozen=True):
    """Exchange that confirms an observation, and the time of the exchange.

    `archived` is the archive path of the raw copy. The lines of `evidence` are lines of this copy.
    """

    observation: int
    exchange: int
    at: Milliseconds | None
    archived: str
    evidence: tuple[Evidence, ...]


class ConfirmationTable:
    """Table of confirmations, with queries by exchange and by observation."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def candidates(self, fingerprint: str, title: str, before: int) -> list[StoredObservation]:
        """Return up to `CANDIDATES` observations with this fingerprint from exchanges with a key below `before`.

        Near-duplicates have the same fingerprint. Observations with the title `title` come first. Within each group,
        the oldest come first. The limit keeps the cost of extraction independent of the size of the archive.
        """
        rows = self._db.rows(
            f"""SELECT {COLUMNS} {FROM} WHERE o.mark = ? AND o.mark != '' AND o.exchange < ?
                ORDER BY o.title != ?, o.exchange, i.key LIMIT ?""",
            (fingerprint, before, title, CANDIDATES),
        )
        return [stored_of(row) for row in rows]

    def replace(self, exchange: int, confirmed: Mapping[int, Sequence[Evidence]]) -> None:
        """Replace the confirmations by an exchange. Triggers log the changes.

        `confirmed` maps each observation that the exchange repeats to the evidence in the exchange.
        """
        self._db.run(
            f"DELETE FROM confirmation WHERE exchange = ? AND observation NOT {AMONG}", (exchange, listed(confirmed))
        )
        self._db.run_many(
            """INSERT INTO confirmation (observation, exchange, evidence) VALUES (?, ?, ?)
               ON CONFLICT (observation, exchange) DO UPDATE SET evidence = excluded.evidence""",
            [(key, exchange, json.dumps([astuple(proof) for proof in proofs])) for key, proofs in confirmed.items()],
        )

    def of_exchanges(self, exchanges: Sequence[int]) -> dict[int, list[StoredObservation]]:
        """Map each exchange to the observations that it confirms. Exchanges without confirmations are omitted."""
        rows = self._db.rows_among(
            f"""SELECT {COLUMNS}, c.exchange {FROM} JOIN confirmation c ON c.observation = o.item
                WHERE c.exchange {AMONG} ORDER BY i.key""",
            exchanges,
        )
        found: dict[int, list[StoredObservation]] = {}
        for *row, exchange in rows:
            found.setdefault(exchange, []).append(stored_of(tuple(row)))
        return found

    def of_observations(self, keys: Sequence[int]) -> dict[int, list[Confirmation]]:
        """Map each observation to its confirmations. Observations without confirmations are omitted."""
        rows = self._db.rows_among(
            f"""SELECT c.observation, c.exchange, i.at, r.archived, c.evidence FROM confirmation c
               JOIN item i ON i.key = c.exchange JOIN exchange e ON e.item = c.exchange JOIN source r ON r.id = e.source
               WHERE c.observation {AMONG} ORDER BY c.observation, c.exchange""",
            keys,
        )
        found: dict[int, list[Confirmation]] = {}
        for key, exchange, at, archived, proofs in rows:
            evidence = tuple(Evidence(*values) for values in json.loads(proofs))
            found.setdefault(key, []).append(Confirmation(key, exchange, at, archived, evidence))
        return found
