"""Integrity: what the rows say, held against each other, and the repairs that need nothing but rows."""

from collections.abc import Collection, Iterable
from typing import Final, cast

from .change_log import ChangeTable, Entity
from .database import AMONG, Database, listed
from .observation_table import MODEL_PREFIX
from .vector_table import TOKEN_BYTES

_TOLD: Final = 20
"""Problems of the file that are told; one is enough to act."""
_PARSED: Final = (("exchange", "turns", "source"), ("source", "coverage", "id"), ("source", "resume", "id"))
"""Columns that hold JSON, and the source from whose copy each row can be made again."""
_LEARNED: Final = ("facts", "concepts", "files_read", "files_modified", "evidence")
"""Columns of an observation that hold JSON."""
_BODIES: Final = ("exchange", "observation", "memory", "chunk")
_UNTAGGED: Final = "SELECT item, value FROM memory, json_each(memory.tags)"
_TAGGED: Final = "SELECT memory, tag FROM memory_tag"


class Integrity:
    """Compares rows. Its repairs run inside a transaction of the caller."""

    def __init__(self, database: Database, changes: ChangeTable) -> None:
        self._db, self._changes = database, changes

    def damage(self) -> list[str]:
        """What SQLite finds wrong with its file, when it finds it twice; empty for a whole one."""
        return self._damage() and self._damage()

    def _damage(self) -> list[str]:
        found = [str(row[0]) for row in self._db.rows(f"PRAGMA integrity_check({_TOLD})")]
        return [] if found == ["ok"] else found

    def is_readable(self) -> bool:
        """A quick look at the file: whether every page can be read, without comparing indexes to their tables."""
        return self._db.rows("PRAGMA quick_check(1)") == [("ok",)]

    def dangling(self) -> dict[str, int]:
        """Rows that refer to rows which do not exist, by table."""
        rows = self._db.rows('SELECT "table", count(*) FROM pragma_foreign_key_check GROUP BY 1')
        return {str(table): cast(int, count) for table, count in rows}

    def bodiless(self) -> list[int]:
        """Items of which nothing else is known: nothing can be found of them, and nothing is lost with them."""
        bodies = " UNION ALL ".join(f"SELECT item FROM {table}" for table in _BODIES)
        return self._keys(f"SELECT key FROM item WHERE key NOT IN ({bodies})")

    def unparsed(self) -> set[int]:
        """Sources whose rows cannot be read back, or whose lines do not add up."""
        asked = [
            f"SELECT {source} FROM {table} WHERE NOT json_valid(CAST({column} AS TEXT))"
            for table, column, source in _PARSED
        ]
        unreadable = set(self._keys(" UNION ".join(asked)))
        if unreadable:
            return unreadable
        return set(self._keys("SELECT id FROM source WHERE lines <> (SELECT total(value) FROM json_each(coverage))"))

    def misplaced(self) -> set[int]:
        """Sources with records or exchanges on lines that they do not have."""
        return set(
            self._keys(
                """SELECT r.source FROM record r JOIN source s ON s.id = r.source WHERE r.line NOT BETWEEN 1 AND s.lines
                   UNION SELECT s.id FROM exchange e JOIN source s ON s.id = e.source
                   WHERE e.start_line < 1 OR e.end_line < e.start_line OR e.end_line > s.lines"""
            )
        )

    def unproven(self) -> list[int]:
        """Observations that cannot be read back, or whose evidence lies on lines that their source does not have."""
        broken = " OR ".join(f"NOT json_valid({column})" for column in _LEARNED)
        unreadable = self._keys(f"SELECT item FROM observation WHERE {broken}")
        return unreadable or self._keys(
            """SELECT DISTINCT o.item FROM observation o JOIN exchange e ON e.item = o.exchange
               JOIN source s ON s.id = e.source, json_each(o.evidence) AS one
               WHERE one.value ->> 0 < 1 OR one.value ->> 1 < one.value ->> 0 OR one.value ->> 1 > s.lines"""
        )

    def parts(self, model: str, keys: Collection[int]) -> dict[int, set[int]]:
        """Which parts have vectors, of those of these items that this model has embedded."""
        found: dict[int, set[int]] = {}
        for key, part in self._db.rows(
            f"""SELECT i.key, v.part FROM item i LEFT JOIN vector v ON v.item = i.key AND v.model = i.embedded
               WHERE i.embedded = ? AND i.key {AMONG}""",
            (model, listed(keys)),
        ):
            found.setdefault(cast(int, key), set()).update([] if part is None else [cast(int, part)])
        return found

    def misshapen(self) -> list[int]:
        """Items with vectors whose length is not that of most vectors of their model, or with a part of a token."""
        return self._keys(
            """WITH shape AS (SELECT model, length(data) AS size, count(*) AS many FROM vector GROUP BY 1, 2)
               SELECT item FROM token WHERE length(signs) % ?
               UNION SELECT v.item FROM vector v WHERE length(v.data) <> (
                   SELECT size FROM shape WHERE shape.model = v.model ORDER BY many DESC, size DESC LIMIT 1
               )""",
            (TOKEN_BYTES,),
        )

    def mistagged(self) -> int:
        """How many tags of memories can be found and are not theirs, or are theirs and cannot be found."""
        return self._db.number(
            f"""SELECT (SELECT count(*) FROM ({_UNTAGGED} EXCEPT {_TAGGED}))
                     + (SELECT count(*) FROM ({_TAGGED} EXCEPT {_UNTAGGED}))"""
        )

    def retag(self) -> None:
        """Make the tags that can be found those that the memories have."""
        self._db.run("DELETE FROM memory_tag")
        self._db.run(f"INSERT OR IGNORE INTO memory_tag (memory, tag) {_UNTAGGED}")

    def remove(self, keys: Iterable[int]) -> None:
        """Remove items, with all that is known of them."""
        self._db.run_many("DELETE FROM item WHERE key = ?", [(key,) for key in keys])

    def reread(self, sources: Iterable[int]) -> None:
        """Have the copies of these sources read again from their beginning, as `Sources.outdated` then says."""
        for number in sources:
            self._db.run("DELETE FROM record WHERE source = ?", (number,))
            self._db.run(
                """UPDATE source SET rules = '', coverage = '{}', lines = 0, resume = '[1, 0, 0, {}]'
                   WHERE id = ?""",
                (number,),
            )

    def unlearn(self, observations: Iterable[int]) -> None:
        """Remove observations; what rules learned from their exchanges is learned again."""
        doomed = list(observations)
        self._db.run_many(
            f"""UPDATE exchange SET observed = NULL WHERE observed NOT LIKE '{MODEL_PREFIX}%'
                AND item = (SELECT exchange FROM observation WHERE item = ?)""",
            [(item,) for item in doomed],
        )
        self.remove(doomed)

    def reembed(self, keys: Iterable[int]) -> None:
        """Have these items embedded again."""
        doomed = list(keys)
        self._db.run_many("DELETE FROM vector WHERE item = ?", [(key,) for key in doomed])
        self._db.run_many("UPDATE item SET embedded = NULL WHERE key = ?", [(key,) for key in doomed])
        self._changes.log(Entity.ITEM, doomed)

    def _keys(self, sql: str, values: tuple[int, ...] = ()) -> list[int]:
        return [cast(int, row[0]) for row in self._db.rows(sql, values) if row[0] is not None]
