"""Confirmations: what was learned again. The first wording stays, and each later exchange adds its evidence to it."""

import json
from collections.abc import Mapping, Sequence
from typing import cast

from msgspec import Struct
from msgspec.structs import astuple

from ...core.conversation import Milliseconds
from ...core.observation import Evidence
from .database import AMONG, Database, listed
from .observation_table import COLUMNS, FROM, StoredObservation, stored_of

CANDIDATES = 100
"""Observations of equal values that a new one is compared with."""


class Confirmation(Struct, frozen=True):
    """An exchange that says an observation again, and when. `archived` is the copy with the lines of `evidence`."""

    observation: int
    exchange: int
    at: Milliseconds | None
    archived: str
    evidence: tuple[Evidence, ...]


class ConfirmationTable:
    """Reads and writes confirmations by exchange and by observation."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def candidates(self, mark: str, title: str, before: int) -> list[StoredObservation]:
        """The observations with this mark of exchanges before this one, those with this title first, then by age.

        At most `CANDIDATES`, so that what is learned costs the same however much is known.
        """
        rows = self._db.rows(
            f"""SELECT {COLUMNS} {FROM} WHERE o.mark = ? AND o.mark != '' AND o.exchange < ?
                ORDER BY o.title != ?, o.exchange, i.key LIMIT ?""",
            (mark, before, title, CANDIDATES),
        )
        return [stored_of(row) for row in rows]

    def replace(self, exchange: int, confirmed: Mapping[int, Sequence[Evidence]]) -> None:
        """Make these observations the ones that an exchange confirms, each with its evidence. What comes or goes makes
        the exchange a changed one.
        """
        self._db.run(
            f"DELETE FROM confirmation WHERE exchange = ? AND observation NOT {AMONG}", (exchange, listed(confirmed))
        )
        self._db.run_many(
            """INSERT INTO confirmation (observation, exchange, evidence) VALUES (?, ?, ?)
               ON CONFLICT (observation, exchange) DO UPDATE SET evidence = excluded.evidence""",
            [(key, exchange, json.dumps([astuple(proof) for proof in proofs])) for key, proofs in confirmed.items()],
        )

    def said_again(self, exchanges: Sequence[int]) -> dict[int, list[StoredObservation]]:
        """The observations that these exchanges confirm, by exchange; those that confirm none are left out."""
        rows = self._db.rows_among(
            f"""SELECT {COLUMNS}, c.exchange {FROM} JOIN confirmation c ON c.observation = o.item
                WHERE c.exchange {AMONG} ORDER BY i.key""",
            exchanges,
        )
        found: dict[int, list[StoredObservation]] = {}
        for *row, exchange in rows:
            found.setdefault(cast(int, exchange), []).append(stored_of(tuple(row)))
        return found

    def of_observations(self, keys: Sequence[int]) -> dict[int, list[Confirmation]]:
        """Where these observations were said again, by observation; those that were not are left out."""
        rows = self._db.rows_among(
            f"""SELECT c.observation, c.exchange, i.at, r.archived, c.evidence FROM confirmation c
               JOIN item i ON i.key = c.exchange JOIN exchange e ON e.item = c.exchange JOIN source r ON r.id = e.source
               WHERE c.observation {AMONG} ORDER BY c.observation, c.exchange""",
            keys,
        )
        found: dict[int, list[Confirmation]] = {}
        for key, exchange, at, archived, proofs in rows:
            evidence = tuple(Evidence(*values) for values in json.loads(str(proofs)))
            one = Confirmation(cast(int, key), cast(int, exchange), cast("int | None", at), str(archived), evidence)
            found.setdefault(one.observation, []).append(one)
        return found
