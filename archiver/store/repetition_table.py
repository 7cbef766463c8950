"""Repetitions: lines of one source that another source repeats, as in forks, resumed sessions and copies."""

import json
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from .database import AMONG, Database, listed
from .source_table import NO_DEVICE


class Repetition(NamedTuple):
    """Line of a source that repeats a line of another source.

    `again` is the number of the repeating line. The repeated line is line `line` of the source with the ID `first`.
    """

    first: int
    line: int
    again: int


class RepetitionTable:
    """Table that records which lines of other sources repeat an exchange."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def record(self, source: int, found: Iterable[Repetition], *, replace: bool) -> None:
        """Record the lines of a source that repeat other sources. With `replace`, first delete its earlier records."""
        if replace:
            self._db.run("DELETE FROM repetition WHERE elsewhere = ?", (source,))
        rows = json.dumps([tuple(each) for each in found])
        self._db.run(
            """INSERT INTO repetition (source, ordinal, elsewhere, start_line, end_line)
                   SELECT e.source, e.ordinal, ?1, min(line.value ->> 2), max(line.value ->> 2)
                   FROM json_each(?2) AS line JOIN exchange e ON e.source = line.value ->> 0
                       AND line.value ->> 1 BETWEEN e.start_line AND e.end_line
                   GROUP BY e.source, e.ordinal
               ON CONFLICT DO UPDATE SET start_line = min(start_line, excluded.start_line),
                   end_line = max(end_line, excluded.end_line)""",
            (source, rows),
        )

    def outdate(self, sources: Collection[int]) -> None:
        """Schedule a new read of all sources that repeat lines of the given sources.

        Call this after a change to the exchanges of the given sources.
        """
        self._db.run(
            f"UPDATE source SET rules = '' WHERE id IN (SELECT elsewhere FROM repetition WHERE source {AMONG})",
            (listed(sources),),
        )

    def repeating(self, sources: Collection[int]) -> set[int]:
        """Return the sources that repeat lines of the given sources."""
        return set(
            self._db.numbers(f"SELECT DISTINCT elsewhere FROM repetition WHERE source {AMONG}", (listed(sources),))
        )

    def of_exchanges(self, keys: Sequence[int]) -> dict[int, tuple[str, ...]]:
        """Map each exchange to the IDs of other sessions that repeat it. Exchanges without repetitions are omitted."""
        rows = self._db.rows_among(
            f"""SELECT DISTINCT e.item, t.session, s.native_id FROM exchange e JOIN item i ON i.key = e.item
                   JOIN repetition r ON (r.source, r.ordinal) = (e.source, e.ordinal)
                   JOIN source t ON t.id = r.elsewhere JOIN session s ON s.id = t.session
               WHERE e.item {AMONG} AND t.session <> i.session
               ORDER BY e.item, t.session""",
            keys,
        )
        found: dict[int, tuple[str, ...]] = {}
        for key, _, session in rows:
            found[key] = (*found.get(key, ()), session)
        return found

    def in_files(self, keys: Sequence[int]) -> list[tuple[int, int, int]]:
        """Return the lines on which files of the same session repeat these exchanges of containers.

        Each tuple contains the ID of the source of the file, its first line and its last line.
        """
        rows = self._db.rows_among(
            f"""SELECT r.elsewhere, r.start_line, r.end_line FROM exchange e
                   JOIN repetition r ON (r.source, r.ordinal) = (e.source, e.ordinal)
                   JOIN source c ON c.id = e.source JOIN source f ON f.id = r.elsewhere
               WHERE e.item {AMONG} AND c.device = {NO_DEVICE} AND f.device <> {NO_DEVICE} AND f.session = c.session""",
            keys,
        )
        return [(source, start, end) for source, start, end in rows]

    def on_lines(self, source: int, start: int, end: int) -> tuple[str, ...]:
        """Return the IDs of all other sessions that contain some of the lines `start` to `end` of a source.

        A session is included whether it repeats these lines or contained them first.
        """
        rows = self._db.rows(
            """WITH here AS (
                   SELECT e.source, e.ordinal FROM exchange e
                       WHERE e.source = ?1 AND e.start_line <= ?3 AND e.end_line >= ?2
                   UNION SELECT e.source, e.ordinal FROM repetition r JOIN exchange e USING (source, ordinal)
                       WHERE r.elsewhere = ?1 AND r.start_line <= ?3 AND r.end_line >= ?2
               ), place AS (
                   SELECT source FROM here UNION SELECT r.elsewhere FROM here JOIN repetition r USING (source, ordinal)
               )
               SELECT DISTINCT s.id, s.native_id FROM place JOIN source t ON t.id = place.source
                   JOIN session s ON s.id = t.session
               WHERE s.id <> (SELECT session FROM source WHERE id = ?1) ORDER BY s.id""",
            (source, start, end),
        )
        return tuple(name for _, name in rows)
