"""Confirmations: what was learned again. The first wording stays, and each later exchange adds its evidence to it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import cast

from ...core.observation import Evidence
from .database import Database
from .observations import COLUMNS, FROM, StoredObservation, stored_of


@dataclass(frozen=True, slots=True)
class Confirmation:
    """An exchange that says an observation again. `archived` is the copy that the lines of `evidence` refer to."""

    observation: int
    exchange: int
    archived: str
    evidence: tuple[Evidence, ...]


class Confirmations:
    """Reads and writes confirmations by exchange and by observation."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def candidates(self, mark: str, before: int) -> list[StoredObservation]:
        """The observations with this mark of exchanges before this one, first wording first."""
        rows = self._db.rows(
            f"SELECT {COLUMNS} {FROM} WHERE o.mark = ? AND o.mark != '' AND o.exchange < ? ORDER BY o.exchange, i.key",
            (mark, before),
        )
        return [stored_of(row) for row in rows]

    def replace(self, exchange: int, confirmed: Mapping[int, Sequence[Evidence]]) -> None:
        """Make these observations the ones that an exchange confirms, each with its evidence."""
        self._db.run("DELETE FROM confirmation WHERE exchange = ?", (exchange,))
        self._db.run_many(
            "INSERT INTO confirmation (observation, exchange, evidence) VALUES (?, ?, ?)",
            [(key, exchange, json.dumps([astuple(proof) for proof in proofs])) for key, proofs in confirmed.items()],
        )

    def of_observations(self, keys: Sequence[int]) -> dict[int, list[Confirmation]]:
        """Where these observations were said again, by observation; those that were not are left out."""
        return self._select("c.observation", keys)

    def by_exchanges(self, keys: Sequence[int]) -> dict[int, list[Confirmation]]:
        """What these exchanges say again, by observation."""
        return self._select("c.exchange", keys)

    def _select(self, column: str, keys: Sequence[int]) -> dict[int, list[Confirmation]]:
        rows = self._db.rows(
            f"""SELECT c.observation, c.exchange, r.archived, c.evidence FROM confirmation c
                JOIN exchange e ON e.item = c.exchange JOIN source r ON r.id = e.source
                WHERE {column} IN (SELECT value FROM json_each(?)) ORDER BY c.observation, c.exchange""",
            (json.dumps(list(keys)),),
        )
        found: dict[int, list[Confirmation]] = {}
        for key, exchange, archived, proofs in rows:
            evidence = tuple(Evidence(*values) for values in json.loads(str(proofs)))
            confirmation = Confirmation(cast(int, key), cast(int, exchange), str(archived), evidence)
            found.setdefault(confirmation.observation, []).append(confirmation)
        return found
