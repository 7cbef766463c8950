"""Observations: what was learned from an exchange."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import cast

import orjson
from msgspec import Struct
from msgspec.structs import astuple, replace

from ...core.observation import Evidence, Observation, ObservationType
from .change_log import ChangeTable, Entity
from .database import AMONG, Database, Row, Value


class StoredObservation(Struct, frozen=True):
    """An observation under its key, with its exchange's key, its session's number and what layer 2 costs in tokens."""

    key: int
    exchange: int
    session: int
    observation: Observation
    price: int
    summary: bool = False
    """Whether it sums up its session; it then stands with the exchange that its session began with."""


COLUMNS = """i.key, o.exchange, i.session, o.type, o.title, o.subtitle, o.narrative, o.facts, o.concepts,
    o.files_read, o.files_modified, o.evidence, i.at, o.origin, o.extractor, o.price, o.scope"""
_NAMES = """type, title, subtitle, narrative, facts, concepts, files_read, files_modified, evidence, origin, extractor,
    price, mark"""
_SET = ", ".join(f"{name.strip()} = ?" for name in _NAMES.split(","))
FROM = "FROM observation o JOIN item i ON i.key = o.item"


MODEL_PREFIX = "llm:"
"""How the name of an extractor begins that asks a language model. Its results outlive a change of the rules."""
OPTED_OUT = f"{MODEL_PREFIX}renounced"
"""Extractor of exchanges that an earlier version excluded from extraction at the user's request."""


class ObservationTable:
    """Reads and writes observations by exchange."""

    def __init__(self, database: Database, changes: ChangeTable) -> None:
        self._db, self._changes = database, changes

    def replace(
        self,
        exchange: int,
        session: int,
        observations: Sequence[Observation],
        extractor: str,
        marks: Sequence[str] = (),
        refused: int = 0,
    ) -> None:
        """Make these the observations of an exchange. What is still said under its title keeps its key.

        `marks` are what near-identical observations would have in common, one for each; `refused` facts had no proof.
        The exchange counts as changed too: its index entry carries the types and concepts learned from it.
        """
        known = [stored for stored in self.of_exchange(exchange) if not stored.summary]
        marked = dict(zip(observations, marks, strict=True)) if marks else dict.fromkeys(observations, "")
        kept = _matched(known, list(marked))
        reworded = [stored.key for stored, now in kept if not _alike(stored.observation, now)]
        gone = [stored.key for stored in known if stored.key not in {same.key for same, _ in kept}]
        self._unconfirm(reworded)
        self._db.run_many("DELETE FROM item WHERE key = ?", [(key,) for key in gone])
        for stored, now in kept:
            self.rewrite(stored.key, now, marked[now], reworded=stored.key in reworded)
        fresh = [one for one in marked if all(one is not now for _, now in kept)]
        for one in fresh:
            self.insert(exchange, session, one, marked[one])
        self._db.run("UPDATE exchange SET observed = ?, refused = ? WHERE item = ?", (extractor, refused, exchange))

    def count_refused(self) -> int:
        """How many facts the rules made that no line bears out."""
        return self._db.number("SELECT coalesce(sum(refused), 0) FROM exchange")

    def of_exchange(self, exchange: int) -> list[StoredObservation]:
        """The observations learned from one exchange, in the order they were made."""
        return self.of_exchanges([exchange]).get(exchange, [])

    def of_exchanges(self, exchanges: Sequence[int]) -> dict[int, list[StoredObservation]]:
        """The observations of several exchanges, by exchange; those without any are left out."""
        rows = self._db.rows_among(f"SELECT {COLUMNS} {FROM} WHERE o.exchange {AMONG} ORDER BY i.key", exchanges)
        found: dict[int, list[StoredObservation]] = {}
        for stored in map(stored_of, rows):
            found.setdefault(stored.exchange, []).append(stored)
        return found

    def load(self, keys: Sequence[int]) -> dict[int, StoredObservation]:
        """The observations with these keys; unknown keys are left out."""
        rows = self._db.rows_among(f"SELECT {COLUMNS} {FROM} WHERE i.key {AMONG}", keys)
        return {stored.key: stored for stored in map(stored_of, rows)}

    def keys_of_exchanges(self, exchanges: Sequence[int]) -> dict[int, list[int]]:
        """Return the keys of the observations of these exchanges by exchange, in the order they were made."""
        rows = self._db.rows_among(
            f"SELECT exchange, item FROM observation WHERE exchange {AMONG} ORDER BY item", exchanges
        )
        found: dict[int, list[int]] = {}
        for exchange, item in rows:
            found.setdefault(cast(int, exchange), []).append(cast(int, item))
        return found

    def unobserve(self, exchanges: Collection[int]) -> None:
        """Have these exchanges observed anew."""
        self._db.run_many("UPDATE exchange SET observed = NULL WHERE item = ?", [(key,) for key in exchanges])
        self._changes.log(Entity.ITEM, exchanges)

    def move(self, exchange: int, session: int, lines: Mapping[int, int]) -> None:
        """An exchange is of this session now, and what stood on these lines, all that it said, stands on others."""
        learned = [stored.key for stored in self.of_exchange(exchange)]
        self._db.run_many("UPDATE item SET session = ? WHERE key = ?", [(session, key) for key in (exchange, *learned)])
        moved = json.dumps(lines)
        for table in ("observation", "confirmation"):
            self._db.run(
                f"""UPDATE {table} SET evidence = (
                        SELECT json_group_array(json_array(
                            coalesce(?1 ->> ('$.' || (one.value ->> 0)), one.value ->> 0),
                            coalesce(?1 ->> ('$.' || (one.value ->> 1)), one.value ->> 1), one.value ->> 2
                        )) FROM json_each({table}.evidence) AS one
                    ) WHERE exchange = ?2""",
                (moved, exchange),
            )

    def latest(self, session: int, before: int, limit: int) -> list[StoredObservation]:
        """What a session taught before one of its exchanges, newest first."""
        rows = self._db.rows(
            f"""SELECT {COLUMNS} {FROM} WHERE i.session = ? AND o.exchange < ? AND o.scope = 'exchange'
                ORDER BY i.key DESC LIMIT ?""",
            (session, before, limit),
        )
        return [stored_of(row) for row in rows]

    def by_people(self) -> list[StoredObservation]:
        """The decisions that are a person's own word, in the order in which they were learned."""
        rows = self._db.rows(f"SELECT {COLUMNS} {FROM} WHERE o.origin = 'human' AND o.type = 'decision' ORDER BY i.key")
        return [stored_of(row) for row in rows]

    def count_by_type(self) -> dict[str, int]:
        """How many observations there are of each type, most first."""
        rows = self._db.rows("SELECT type, count(*) FROM observation GROUP BY type ORDER BY 2 DESC, 1")
        return {str(name): cast(int, count) for name, count in rows}

    def rewrite(self, key: int, observation: Observation, mark: str = "", *, reworded: bool = True) -> None:
        """Make a stored observation say this. Its vector goes when it is `reworded`."""
        self._db.run(f"UPDATE observation SET {_SET} WHERE item = ?", (*_values(observation), mark, key))
        self._db.run("UPDATE item SET at = ? WHERE key = ?", (observation.at, key))
        if reworded:
            self._db.run("UPDATE item SET embedded = NULL WHERE key = ?", (key,))

    def insert(
        self, exchange: int, session: int, observation: Observation, mark: str = "", *, summary: bool = False
    ) -> int:
        """Store an observation; its key."""
        key = self._db.run(
            "INSERT INTO item (kind, session, at) VALUES ('observation', ?, ?)", (session, observation.at)
        )
        self._db.run(
            f"INSERT INTO observation (item, exchange, scope, {_NAMES}) VALUES ({','.join('?' * 16)})",
            (key, exchange, "session" if summary else "exchange", *_values(observation), mark),
        )
        return key

    def _unconfirm(self, keys: Sequence[int]) -> None:
        """What these observations say changed: whatever confirmed them is to be observed anew."""
        for key in keys:
            rows = self._db.rows(
                """SELECT e.item FROM confirmation c JOIN exchange e ON e.item = c.exchange
                   WHERE c.observation = ? AND e.observed <> ?""",
                (key, OPTED_OUT),
            )
            self._db.run_many("DELETE FROM job WHERE exchange = ? AND state = 'done'", [*rows])
            self._db.run_many("UPDATE exchange SET observed = NULL WHERE item = ?", [*rows])
            self._db.run("DELETE FROM confirmation WHERE observation = ?", (key,))


def _matched(
    known: Sequence[StoredObservation], now: Sequence[Observation]
) -> list[tuple[StoredObservation, Observation]]:
    """Which stored observation each becomes: the one that says the same, else the one of the same title and origin."""
    left = list(known)
    found: list[tuple[StoredObservation, Observation]] = []
    for alike in (_alike, _titled_alike):
        for one in now:
            same = next((stored for stored in left if alike(stored.observation, one)), None)
            if same is not None and all(one is not other for _, other in found):
                found.append((same, one))
                left.remove(same)
    return found


def _alike(one: Observation, other: Observation) -> bool:
    """Whether both are the same, whichever version of the rules or of a prompt said so."""
    return replace(one, extractor="") == replace(other, extractor="")


def _titled_alike(one: Observation, other: Observation) -> bool:
    return (one.title, one.origin) == (other.title, other.origin)


def _values(observation: Observation) -> tuple[Value, ...]:
    """The columns of `_NAMES` but the mark."""
    return (
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
        observation.tokens,
    )


# Looking a value up is three times as fast as calling the enumeration.
_TYPES = {kind.value: kind for kind in ObservationType}


def _texts(value: object) -> tuple[str, ...]:
    return tuple(orjson.loads(str(value)))


def stored_of(row: Row) -> StoredObservation:
    key, exchange, session = (cast(int, value) for value in row[:3])
    observation = Observation(
        type=_TYPES[str(row[3])],
        title=str(row[4]),
        subtitle=str(row[5]),
        narrative=str(row[6]),
        facts=_texts(row[7]),
        concepts=_texts(row[8]),
        files_read=_texts(row[9]),
        files_modified=_texts(row[10]),
        evidence=tuple(Evidence(*values) for values in orjson.loads(str(row[11]))),
        at=cast("int | None", row[12]),
        origin=str(row[13]),
        extractor=str(row[14]),
    )
    return StoredObservation(key, exchange, session, observation, cast(int, row[15]), row[16] == "session")
