"""Observations: what was learned from an exchange."""

import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import cast

from ...core.observation import Evidence, Observation, ObservationType
from .changes import Changes, Entity
from .database import Database, Row


@dataclass(frozen=True, slots=True)
class StoredObservation:
    """An observation under its key, with its exchange's key, its session's number and what layer 2 costs in tokens."""

    key: int
    exchange: int
    session: int
    observation: Observation
    price: int


_COLUMNS = """i.key, o.exchange, i.session, o.type, o.title, o.subtitle, o.narrative, o.facts, o.concepts,
    o.files_read, o.files_modified, o.evidence, i.at, o.origin, o.extractor, o.price"""
_FROM = "FROM observation o JOIN item i ON i.key = o.item"


class Observations:
    """Reads and writes observations by exchange."""

    def __init__(self, database: Database, changes: Changes) -> None:
        self._db, self._changes = database, changes

    def replace(self, exchange: int, session: int, observations: Sequence[Observation], extractor: str) -> None:
        """Make these the observations of an exchange; those that stay the same keep their keys.

        The exchange counts as changed too: its index entry carries the types and concepts learned from it.
        """
        known = {stored.observation: stored.key for stored in self.of_exchange(exchange)}
        new = [observation for observation in dict.fromkeys(observations) if known.pop(observation, None) is None]
        gone = list(known.values())
        self._db.run_many("DELETE FROM item WHERE key = ?", [(key,) for key in gone])
        added = [self._insert(exchange, session, observation) for observation in new]
        self._db.run("UPDATE exchange SET observed = ? WHERE item = ?", (extractor, exchange))
        if gone or added:
            self._changes.log(Entity.ITEM, [exchange, *gone, *added])

    def of_exchange(self, exchange: int) -> list[StoredObservation]:
        """The observations learned from one exchange, in the order they were made."""
        return self.of_exchanges([exchange]).get(exchange, [])

    def of_exchanges(self, exchanges: Sequence[int]) -> dict[int, list[StoredObservation]]:
        """The observations of several exchanges, by exchange; those without any are left out."""
        marks = ",".join("?" * len(exchanges))
        rows = self._db.rows(
            f"SELECT {_COLUMNS} {_FROM} WHERE o.exchange IN ({marks}) ORDER BY i.key", tuple(exchanges)
        )
        found: dict[int, list[StoredObservation]] = {}
        for stored in map(_stored, rows):
            found.setdefault(stored.exchange, []).append(stored)
        return found

    def load(self, keys: Sequence[int]) -> dict[int, StoredObservation]:
        """The observations with these keys; unknown keys are left out."""
        marks = ",".join("?" * len(keys))
        rows = self._db.rows(f"SELECT {_COLUMNS} {_FROM} WHERE i.key IN ({marks})", tuple(keys))
        return {stored.key: stored for stored in map(_stored, rows)}

    def latest(self, session: int, before: int, limit: int) -> list[Observation]:
        """What a session taught before one of its exchanges, newest first."""
        rows = self._db.rows(
            f"SELECT {_COLUMNS} {_FROM} WHERE i.session = ? AND o.exchange < ? ORDER BY i.key DESC LIMIT ?",
            (session, before, limit),
        )
        return [_stored(row).observation for row in rows]

    def count_by_type(self) -> dict[str, int]:
        """How many observations there are of each type, most first."""
        rows = self._db.rows("SELECT type, count(*) FROM observation GROUP BY type ORDER BY 2 DESC, 1")
        return {str(name): cast(int, count) for name, count in rows}

    def _insert(self, exchange: int, session: int, observation: Observation) -> int:
        key = self._db.run(
            "INSERT INTO item (kind, session, at) VALUES ('observation', ?, ?)", (session, observation.at)
        )
        self._db.run(
            "INSERT INTO observation VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                key,
                exchange,
                observation.type,
                observation.title,
                observation.subtitle,
                observation.narrative,
                json.dumps(observation.facts),
                json.dumps(observation.concepts),
                json.dumps(observation.files_read),
                json.dumps(observation.files_modified),
                json.dumps([astuple(evidence) for evidence in observation.evidence]),
                observation.origin,
                observation.extractor,
                observation.price,
            ),
        )
        return key


def _texts(value: object) -> tuple[str, ...]:
    return tuple(json.loads(str(value)))


def _stored(row: Row) -> StoredObservation:
    key, exchange, session = (cast(int, value) for value in row[:3])
    observation = Observation(
        type=ObservationType(str(row[3])),
        title=str(row[4]),
        subtitle=str(row[5]),
        narrative=str(row[6]),
        facts=_texts(row[7]),
        concepts=_texts(row[8]),
        files_read=_texts(row[9]),
        files_modified=_texts(row[10]),
        evidence=tuple(Evidence(*values) for values in json.loads(str(row[11]))),
        at=cast("int | None", row[12]),
        origin=str(row[13]),
        extractor=str(row[14]),
    )
    return StoredObservation(key, exchange, session, observation, cast(int, row[15]))
