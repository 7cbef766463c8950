"""Summaries: one observation per session that summarises its other observations. A new version keeps the key."""

from collections.abc import Collection, Sequence
from typing import Final

from msgspec.structs import replace

from ...core.observation import Observation
from .database import AMONG, Database, listed
from .observation_table import COLUMNS, FINDING_PREFIX, FROM, ObservationTable, StoredObservation, stored_of
from .source_table import MAIN_SOURCE

_CONVERSATION: Final = f"""
WITH main AS ({MAIN_SOURCE}), part AS (
    SELECT id FROM main UNION SELECT t.id FROM source t JOIN main ON t.id <> main.id
    WHERE t.session = ?1 AND NOT t.superseded
        AND NOT EXISTS (SELECT 1 FROM repetition r WHERE r.source = t.id AND r.elsewhere = main.id)
        AND NOT EXISTS (SELECT 1 FROM repetition r WHERE r.source = main.id AND r.elsewhere = t.id)
), found AS (
    SELECT e.item, part.id AS part, i.at, coalesce(r.start_line, e.start_line) AS line,
        coalesce(r.end_line, e.end_line) AS end_line, e.ordinal
    FROM part JOIN item i ON i.session = ?1 JOIN exchange e ON e.item = i.key
        LEFT JOIN repetition r ON (r.source, r.ordinal, r.elsewhere) = (e.source, e.ordinal, part.id)
    WHERE e.source = part.id OR r.elsewhere = part.id
), placed AS (
    SELECT *, min(latest) FROM (
        SELECT *, max(at) OVER (PARTITION BY part ORDER BY line, ordinal) AS latest FROM found
    ) GROUP BY item
)"""
"""SQL query for the exchanges of session `?1`. Within a file, an exchange follows all exchanges before it, even if its
time is earlier."""


class SummaryTable:
    """Table of the summaries of sessions."""

    def __init__(self, database: Database, observations: ObservationTable) -> None:
        self._db, self._observations = database, observations

    def newest_exchanges(self, session: int) -> list[int]:
        """Return the keys of a session's exchanges in its newest source, in order.

        A summary cites the lines of one source, so it covers only these.
        """
        rows = self._db.rows(
            """SELECT e.item, e.source FROM exchange e JOIN item i ON i.key = e.item
               WHERE i.session = ? ORDER BY e.source DESC, e.ordinal""",
            (session,),
        )
        return [key for key, source in rows if source == rows[0][1]]

    def conversation(self, session: int) -> list[int]:
        """Return the exchanges of a session in order of time, including those stored for other copies of its files.

        The main source is the most complete of several copies. The exchanges of a growing copy that an earlier copy
        contains are stored only once, for the earlier copy. Other files of the session that share no line with the main
        source contain further parts of the conversation.
        """
        return self._db.numbers(f"{_CONVERSATION} SELECT item FROM placed ORDER BY latest, part, line", (session,))

    def places(self, session: int) -> list[tuple[str, int, int]]:
        """Return the archive path and the first and last line of each exchange of `conversation`, in the same order."""
        rows = self._db.rows(
            f"""{_CONVERSATION} SELECT archived, line, end_line FROM placed JOIN source t ON t.id = part
                ORDER BY latest, part, line""",
            (session,),
        )
        return [(archived, start, end) for archived, start, end in rows]

    def summarised(self, exchanges: Sequence[int]) -> list[StoredObservation]:
        """Return the observations of these exchanges in order, without summaries."""
        found = self._observations.of_exchanges(exchanges)
        return [each for key in exchanges for each in found.get(key, ()) if not each.summary]

    def of_session(self, session: int) -> StoredObservation | None:
        """Return the summary of a session, or None if it has no summary."""
        row = self._db.one(f"SELECT {COLUMNS} {FROM} JOIN summary s ON s.item = i.key WHERE s.session = ?", (session,))
        return stored_of(row) if row else None

    def of_sessions(self, sessions: Collection[int]) -> dict[int, StoredObservation]:
        """Return the summaries of these sessions, by session."""
        rows = self._db.rows(
            f"SELECT {COLUMNS} {FROM} JOIN summary s ON s.item = i.key WHERE s.session {AMONG}", (listed(sessions),)
        )
        return {found.session: found for found in map(stored_of, rows)}

    def single_titles(self, sessions: Collection[int]) -> dict[int, str]:
        """Return the title of the observation of each of these sessions that has exactly one, by session."""
        rows = self._db.rows(
            f"""SELECT i.session, o.title {FROM} WHERE i.session {AMONG}
                GROUP BY i.session HAVING count(*) = 1 AND o.scope <> 'session'""",
            (listed(sessions),),
        )
        return dict(rows)

    def drop(self, sessions: Collection[int]) -> None:
        """Delete the summaries of these sessions, and schedule new ones.

        Call this after a change to content that the summaries may quote. The findings of a model, which may quote
        several exchanges too, are deleted with them.
        """
        findings = [
            key
            for each in sessions
            for key in self._db.numbers(
                """SELECT i.key FROM item i JOIN observation o ON o.item = i.key
                    WHERE i.session = ? AND o.extractor LIKE ?""",
                (each, f"{FINDING_PREFIX}%"),
            )
        ]
        self._db.run(
            f"""UPDATE exchange SET observed = NULL
                WHERE item IN (SELECT exchange FROM observation WHERE item {AMONG})""",
            (listed(findings),),
        )
        self._db.run(f"DELETE FROM item WHERE key {AMONG}", (listed(findings),))
        rows = self._db.rows(f"SELECT session, item FROM summary WHERE session {AMONG}", (listed(sessions),))
        for session, item in rows:
            self._db.run("DELETE FROM item WHERE key = ?", (item,))
            self.outdate(session)

    def outdate(self, session: int) -> None:
        """Schedule a new summary for a session."""
        self._db.run("INSERT OR IGNORE INTO summary_due VALUES (?)", (session,))

    def due(self) -> list[int]:
        """Return the sessions that have exchanges and need a new summary."""
        return self._db.numbers(
            """SELECT session FROM summary_due WHERE session IN (
                   SELECT i.session FROM exchange e JOIN item i ON i.key = e.item WHERE i.session = summary_due.session
               ) ORDER BY session"""
        )

    def put(self, session: int, exchange: int, summary: Observation | None) -> None:
        """Store the summary of a session as an observation of `exchange`, or delete it if `summary` is None."""
        self._db.run("DELETE FROM summary_due WHERE session = ?", (session,))
        known = self.of_session(session)
        if known is not None and summary is not None and known.exchange == exchange:
            reworded = replace(known.observation, extractor="") != replace(summary, extractor="")
            self._observations.rewrite(known.key, summary, reworded=reworded)
            return
        if known is not None:
            self._db.run("DELETE FROM item WHERE key = ?", (known.key,))
        if summary is not None:
            key = self._observations.insert(exchange, session, summary, summary=True)
            self._db.run("INSERT OR REPLACE INTO summary (session, item) VALUES (?, ?)", (session, key))
