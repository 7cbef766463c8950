"""Tables of observations (facts extracted from exchanges), their confirmations and replacements.

A confirmation is an exchange that repeats an observation of an earlier exchange. The observation keeps its first
wording. Each exchange that repeats it adds evidence from its own lines.

A replacement is an observation that a later observation of its session replaces.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import orjson
from msgspec import Struct
from msgspec.structs import astuple, replace

from ...core.conversation import Milliseconds
from ...core.observation import Evidence, Observation, ObservationType
from .database import AMONG, Database, Row, Value, listed

MODEL_PREFIX: Final = "llm:"
"""Prefix of the names of extractors that use a language model.

A new version of the rules does not replace observations of these extractors.
"""
SUMMARY_PREFIX: Final = "llm-session:"
"""Prefix of the extractor names of session summaries that a language model wrote."""
FINDING_PREFIX: Final = f"{MODEL_PREFIX}finding:"
"""Prefix of the extractor names of observations that a language model found while it read the whole session."""
OPTED_OUT: Final = f"{MODEL_PREFIX}opted-out"
"""Extractor name of exchanges that the user excluded from extraction with an earlier version of Palaver."""

COLUMNS: Final = """i.key, o.exchange, i.session, o.tokens, o.scope = 'session', o.type, o.title, o.subtitle,
    o.narrative, o.facts, o.concepts, o.files_read, o.files_modified, o.evidence, i.at, o.origin, o.extractor"""
"""Columns from which `stored_of` creates an observation."""
FROM: Final = "FROM observation o JOIN item i ON i.key = o.item"
_LISTS: Final = ("facts", "concepts", "files_read", "files_modified")


class StoredObservation(Struct, frozen=True):
    """Observation with its key, the key of its exchange and the ID of its session.

    `tokens` is its size in tokens when shown in full. If `summary` is true, the observation summarises its session and
    belongs to the session's first exchange.
    """

    key: int
    exchange: int
    session: int
    observation: Observation
    tokens: int
    summary: bool = False


class ObservationTable:
    """Table of observations, by exchange. Triggers log the changes."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def replace(
        self,
        exchange: int,
        session: int,
        observations: Sequence[Observation],
        extractor: str,
        fingerprints: Sequence[str] = (),
        refused: int = 0,
    ) -> None:
        """Replace the observations of an exchange, and record that `extractor` processed the exchange.

        An old observation keeps its key if a new observation has the same title and origin. `fingerprints` contains one
        value per observation. Near-duplicates have the same value. `refused` counts facts without evidence.
        """
        stored_before = [stored for stored in self.of_exchange(exchange) if not stored.summary]
        fingerprint_of = (
            dict(zip(observations, fingerprints, strict=True)) if fingerprints else dict.fromkeys(observations, "")
        )
        kept = _matched(stored_before, list(fingerprint_of))
        reworded = [stored.key for stored, now in kept if not _is_same(stored.observation, now)]
        gone = [stored.key for stored in stored_before if stored.key not in {same.key for same, _ in kept}]
        self._drop_confirmations(reworded)
        self._db.run_many("DELETE FROM item WHERE key = ?", [(key,) for key in gone])
        for stored, now in kept:
            self.rewrite(stored.key, now, fingerprint_of[now], reworded=stored.key in reworded)
        for new in fingerprint_of:
            if all(new is not now for _, now in kept):
                self.insert(exchange, session, new, fingerprint_of[new])
        self._db.run("UPDATE exchange SET observed = ?, refused = ? WHERE item = ?", (extractor, refused, exchange))

    def insert(
        self, exchange: int, session: int, observation: Observation, fingerprint: str = "", *, summary: bool = False
    ) -> int:
        """Store an observation, and return its key."""
        key = self._db.run(
            "INSERT INTO item (kind, session, at) VALUES ('observation', ?, ?)", (session, observation.at)
        )
        columns = {"item": key, "exchange": exchange, "scope": "session" if summary else "exchange"}
        self._db.insert("observation", {**columns, **_values(observation), "fingerprint": fingerprint})
        return key

    def rewrite(self, key: int, observation: Observation, fingerprint: str = "", *, reworded: bool = True) -> None:
        """Replace a stored observation. If `reworded` is true, schedule a new embedding."""
        self._db.update("observation", "item", key, {**_values(observation), "fingerprint": fingerprint})
        self._db.run("UPDATE item SET at = ? WHERE key = ?", (observation.at, key))
        if reworded:
            self._db.run("UPDATE item SET embedded = NULL WHERE key = ?", (key,))

    def move(self, exchange: int, session: int, lines: Mapping[int, int]) -> None:
        """Move the observations of an exchange to another session, and update the lines of their evidence.

        `lines` maps each former line of the exchange to its current line.
        """
        learned = [stored.key for stored in self.of_exchange(exchange)]
        self._db.run_many("UPDATE item SET session = ? WHERE key = ?", [(session, key) for key in (exchange, *learned)])
        for table in ("observation", "confirmation"):
            self._db.run(
                f"""UPDATE {table} SET evidence = (
                        SELECT json_group_array(json_array(
                            coalesce(?1 ->> ('$.' || (one.value ->> 0)), one.value ->> 0),
                            coalesce(?1 ->> ('$.' || (one.value ->> 1)), one.value ->> 1), one.value ->> 2
                        )) FROM json_each({table}.evidence) AS one
                    ) WHERE exchange = ?2""",
                (json.dumps(lines), exchange),
            )

    def noted(self, prefix: str) -> list[StoredObservation]:
        """Return the observations whose subtitle begins with a prefix, oldest first."""
        rows = self._db.rows(f"SELECT {COLUMNS} {FROM} WHERE o.subtitle GLOB ? || '*' ORDER BY i.key", (prefix,))
        return [*map(stored_of, rows)]

    def load(self, keys: Sequence[int]) -> dict[int, StoredObservation]:
        """Return the observations with these keys. Unknown keys are omitted."""
        rows = self._db.rows_among(f"SELECT {COLUMNS} {FROM} WHERE i.key {AMONG}", keys)
        return {stored.key: stored for stored in map(stored_of, rows)}

    def of_exchange(self, exchange: int) -> list[StoredObservation]:
        """Return the observations of an exchange, in the order of their creation."""
        return self.of_exchanges([exchange]).get(exchange, [])

    def of_exchanges(self, exchanges: Sequence[int]) -> dict[int, list[StoredObservation]]:
        """Return the observations of each exchange. Exchanges without observations are omitted."""
        rows = self._db.rows_among(f"SELECT {COLUMNS} {FROM} WHERE o.exchange {AMONG} ORDER BY i.key", exchanges)
        by_exchange: dict[int, list[StoredObservation]] = {}
        for stored in map(stored_of, rows):
            by_exchange.setdefault(stored.exchange, []).append(stored)
        return by_exchange

    def keys_of_exchanges(self, exchanges: Sequence[int]) -> dict[int, list[int]]:
        """Return the keys of the observations of each exchange, in the order of their creation."""
        rows = self._db.rows_among(
            f"SELECT exchange, item FROM observation WHERE exchange {AMONG} ORDER BY item", exchanges
        )
        by_exchange: dict[int, list[int]] = {}
        for exchange, item in rows:
            by_exchange.setdefault(exchange, []).append(item)
        return by_exchange

    def latest(self, session: int, before: int, limit: int) -> list[StoredObservation]:
        """Return up to `limit` observations from a session's exchanges before the exchange `before`, newest first."""
        rows = self._db.rows(
            f"""SELECT {COLUMNS} {FROM} WHERE i.session = ? AND o.exchange < ? AND o.scope = 'exchange'
                ORDER BY i.key DESC LIMIT ?""",
            (session, before, limit),
        )
        return [stored_of(row) for row in rows]

    def of_sessions(self, sessions: Sequence[int]) -> dict[int, list[StoredObservation]]:
        """Return the observations of each session, including its summary, in the order of their creation."""
        rows = self._db.rows_among(f"SELECT {COLUMNS} {FROM} WHERE i.session {AMONG} ORDER BY i.key", sessions)
        by_session: dict[int, list[StoredObservation]] = {}
        for stored in map(stored_of, rows):
            by_session.setdefault(stored.session, []).append(stored)
        return by_session

    def with_fact(self, sessions: Sequence[int], prefix: str) -> list[StoredObservation]:
        """Return the observations that have a fact with this prefix, newest first.

        Only observations that these sessions made or confirmed are returned.
        """
        chosen = "IN (SELECT value FROM json_each(?1))"
        rows = self._db.rows(
            f"""SELECT {COLUMNS} {FROM} WHERE (i.session {chosen} OR o.item IN (
                    SELECT c.observation FROM confirmation c JOIN item e ON e.key = c.exchange WHERE e.session {chosen}
                )) AND EXISTS (SELECT 1 FROM json_each(o.facts) WHERE substr(value, 1, length(?2)) = ?2)
                ORDER BY i.at DESC, i.key DESC""",
            (listed(sessions), prefix),
        )
        return [stored_of(row) for row in rows]

    def page(self, kinds: Collection[str], project: str, limit: int, offset: int) -> list[StoredObservation]:
        """Return a page of the observations of some types, without session cards, newest first.

        An empty project is no condition.
        """
        rows = self._db.rows(
            f"""SELECT {COLUMNS} {FROM} JOIN session s ON s.id = i.session
                WHERE o.type IN (SELECT value FROM json_each(?1)) AND (?2 = '' OR s.project = ?2)
                AND o.scope <> 'session'
                ORDER BY i.at DESC, o.exchange DESC, i.key LIMIT ?3 OFFSET ?4""",
            (listed(kinds), project, limit, offset),
        )
        return [*map(stored_of, rows)]

    def count_by_type(self, project: str = "", *, cards: bool = True) -> dict[str, int]:
        """Return the number of observations of each type, the most frequent first.

        With `project`, count only those of this one. `cards` includes session cards.
        """
        rows = self._db.rows(
            f"""SELECT o.type, count(*) {FROM} JOIN session s ON s.id = i.session WHERE (?1 = '' OR s.project = ?1)
                AND (?2 OR o.scope <> 'session') GROUP BY o.type ORDER BY 2 DESC, 1""",
            (project, cards),
        )
        return dict(rows)

    def count_refused(self) -> int:
        """Count the extracted facts that were refused because their quote is not in the transcript."""
        return self._db.number("SELECT sum(refused) FROM exchange")

    def _drop_confirmations(self, keys: Collection[int]) -> None:
        """Delete the confirmations of these changed observations.

        The exchanges that confirmed them are scheduled for a new extraction.
        """
        for key in keys:
            rows = self._db.rows(
                """SELECT e.item FROM confirmation c JOIN exchange e ON e.item = c.exchange
                   WHERE c.observation = ? AND e.observed <> ?""",
                (key, OPTED_OUT),
            )
            self._db.run_many("UPDATE exchange SET observed = NULL WHERE item = ?", rows)
            self._db.run("DELETE FROM confirmation WHERE observation = ?", (key,))


def _matched(
    stored_before: Sequence[StoredObservation], now: Sequence[Observation]
) -> list[tuple[StoredObservation, Observation]]:
    """Pair stored observations with new observations.

    Equal observations are paired first, then observations with the same title and origin.
    """
    left = list(stored_before)
    pairs: list[tuple[StoredObservation, Observation]] = []
    for matches in (_is_same, _has_same_title):
        for observation in now:
            same = next((stored for stored in left if matches(stored.observation, observation)), None)
            if same is not None and all(observation is not paired for _, paired in pairs):
                pairs.append((same, observation))
                left.remove(same)
    return pairs


def _is_same(first: Observation, second: Observation) -> bool:
    """Return whether two observations are equal, ignoring the version of the extractor."""
    return replace(first, extractor="") == replace(second, extractor="")


def _has_same_title(first: Observation, second: Observation) -> bool:
    return (first.title, first.origin) == (second.title, second.origin)


def _values(observation: Observation) -> dict[str, Value]:
    return {
        "type": observation.type,
        "title": observation.title,
        "subtitle": observation.subtitle,
        "narrative": observation.narrative,
        **{name: json.dumps(getattr(observation, name)) for name in _LISTS},
        "evidence": json.dumps([astuple(evidence) for evidence in observation.evidence]),
        "origin": observation.origin,
        "extractor": observation.extractor,
        "tokens": observation.tokens,
    }


def stored_of(row: Row) -> StoredObservation:
    """Create an observation from a row with the columns `COLUMNS`."""
    key, exchange, session, tokens, summary, kind, title, subtitle, narrative, *texts, at, origin, extractor = row
    facts, concepts, files_read, files_modified = (tuple[str, ...](orjson.loads(text)) for text in texts[:4])
    observation = Observation(
        ObservationType(kind),
        title,
        subtitle,
        narrative,
        facts,
        concepts,
        files_read,
        files_modified,
        evidence=tuple(Evidence(*values) for values in orjson.loads(texts[4])),
        at=at,
        origin=origin,
        extractor=extractor,
    )
    return StoredObservation(key, exchange, session, observation, tokens, bool(summary))


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
            f"""SELECT {COLUMNS} {FROM} WHERE o.fingerprint = ? AND o.fingerprint != '' AND o.exchange < ?
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
        by_exchange: dict[int, list[StoredObservation]] = {}
        for *row, exchange in rows:
            by_exchange.setdefault(exchange, []).append(stored_of(tuple(row)))
        return by_exchange

    def of_observations(self, keys: Sequence[int]) -> dict[int, list[Confirmation]]:
        """Map each observation to its confirmations. Observations without confirmations are omitted."""
        rows = self._db.rows_among(
            f"""SELECT c.observation, c.exchange, i.at, r.archived, c.evidence FROM confirmation c
               JOIN item i ON i.key = c.exchange JOIN exchange e ON e.item = c.exchange JOIN source r ON r.id = e.source
               WHERE c.observation {AMONG} ORDER BY c.observation, c.exchange""",
            keys,
        )
        by_observation: dict[int, list[Confirmation]] = {}
        for key, exchange, at, archived, proofs in rows:
            evidence = tuple(Evidence(*values) for values in json.loads(proofs))
            by_observation.setdefault(key, []).append(Confirmation(key, exchange, at, archived, evidence))
        return by_observation


class StoredReplacement(NamedTuple):
    """Pair of observations of one session: `later` replaces `earlier`. `line` is the line with the evidence."""

    earlier: int
    later: int
    line: int


class ReplacementTable:
    """Table of replaced observations."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def put(self, among: Collection[int], replacements: Iterable[StoredReplacement]) -> None:
        """Store replacements, after deleting the stored replacements of the observations `among`."""
        self._db.run(f"DELETE FROM replacement WHERE earlier {AMONG}", (listed(among),))
        self._db.run(
            """INSERT INTO replacement (earlier, later, line)
                   SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?)""",
            (json.dumps([tuple(replacement) for replacement in replacements]),),
        )

    def of_observations(self, keys: Sequence[int]) -> dict[int, StoredReplacement]:
        """Map each of these observations to its replacement. Observations that are not replaced are omitted."""
        rows = self._db.rows_among(f"SELECT earlier, later, line FROM replacement WHERE earlier {AMONG}", keys)
        return {row[0]: StoredReplacement(*row) for row in rows}
