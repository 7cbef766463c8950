"""Consistency checks of database rows, and repairs that need only the database."""

from collections.abc import Collection, Iterable
from hashlib import sha256
from typing import Final

from .change_log import ChangeLog, Entity
from .database import AMONG, Database, listed
from .observation_table import MODEL_PREFIX
from .vector_table import TOKEN_BYTES

_MOST_PROBLEMS: Final = 20
"""Maximum number of problems that SQLite reports. A single problem already requires a repair."""
_PARSED_JSON: Final = (("exchange", "turns", "source"), ("source", "coverage", "id"), ("source", "resume", "id"))
"""Columns with JSON that was computed from raw copies: table, column, and the column with the source ID."""
_OBSERVATION_JSON: Final = ("facts", "concepts", "files_read", "files_modified", "evidence")
"""Columns of an observation that contain JSON."""
_CONTENT_TABLES: Final = ("exchange", "observation", "memory", "chunk")
_IS_JSON: Final = "json_valid(tags) AND json_valid(metadata)"
_HAS_NUL: Final = "instr(CAST(content AS BLOB), x'00')"
_TAGS_OF_MEMORIES: Final = "SELECT item, value FROM memory, json_each(memory.tags)"
_TAGS: Final = "SELECT memory, tag FROM memory_tag"


class Integrity:
    """Consistency checks and repairs of rows. For a repair, the caller opens the transaction."""

    def __init__(self, database: Database, changes: ChangeLog) -> None:
        self._db, self._changes = database, changes

    def damage(self) -> list[str]:
        """Return the problems that SQLite's integrity check finds, or else the memories that do not match their hash.

        The list is empty for an intact file. If the first check finds problems, the check is repeated, and only the
        problems of the second check are returned.
        """
        return self._damage() and self._damage()

    def _damage(self) -> list[str]:
        found = [str(row[0]) for row in self._db.rows(f"PRAGMA integrity_check({_MOST_PROBLEMS})")]
        return self._damaged_memories() if found == ["ok"] else found

    def _damaged_memories(self) -> list[str]:
        """Return descriptions of the memories whose content does not match its SHA-256.

        The usual cause is a database page full of zeros. The checksum of such a page is valid, because the checksum of
        zeros is zero.
        """
        rows = self._db.rows(f"SELECT item, content, hash, {_IS_JSON} FROM memory WHERE NOT ({_IS_JSON}) OR {_HAS_NUL}")
        return [
            f"mem_{key} does not match its SHA-256"
            for key, content, digest, is_json in rows
            if not is_json or sha256(content.encode("utf-8", "surrogatepass")).hexdigest() != digest
        ]

    def is_readable(self) -> bool:
        """Return whether SQLite can read every page. SQLite's indexes are not compared with their tables."""
        return self._db.rows("PRAGMA quick_check(1)") == [("ok",)]

    def dangling(self) -> dict[str, int]:
        """Count the rows with references to missing rows, by table."""
        return dict(self._db.rows('SELECT "table", count(*) FROM pragma_foreign_key_check GROUP BY 1'))

    def without_content(self) -> list[int]:
        """Return the keys of items without a row in a content table, such as `exchange`. Search cannot find them."""
        bodies = " UNION ALL ".join(f"SELECT item FROM {table}" for table in _CONTENT_TABLES)
        return self._db.numbers(f"SELECT key FROM item WHERE key NOT IN ({bodies})")

    def unreadable_sources(self) -> set[int]:
        """Return the IDs of sources with invalid JSON in their rows or in the rows of their exchanges.

        If all JSON is valid, return the IDs of sources whose line counts are inconsistent.
        """
        queries = [
            f"SELECT {source} FROM {table} WHERE NOT json_valid(CAST({column} AS TEXT))"
            for table, column, source in _PARSED_JSON
        ]
        return set(self._db.numbers(" UNION ".join(queries))) or set(
            self._db.numbers("SELECT id FROM source WHERE lines <> (SELECT total(value) FROM json_each(coverage))")
        )

    def outside_source(self) -> set[int]:
        """Return the IDs of sources with records or exchanges whose line numbers do not exist in the source."""
        return set(
            self._db.numbers(
                """SELECT r.source FROM record r JOIN source s ON s.id = r.source WHERE r.line NOT BETWEEN 1 AND s.lines
                   UNION SELECT s.id FROM exchange e JOIN source s ON s.id = e.source
                   WHERE e.start_line < 1 OR e.end_line < e.start_line OR e.end_line > s.lines"""
            )
        )

    def without_evidence(self) -> list[int]:
        """Return the keys of observations with invalid JSON.

        If all JSON is valid, return the keys of observations whose evidence has line numbers that do not exist in the
        source.
        """
        broken = " OR ".join(f"NOT json_valid({column})" for column in _OBSERVATION_JSON)
        return self._db.numbers(f"SELECT item FROM observation WHERE {broken}") or self._db.numbers(
            """SELECT DISTINCT o.item FROM observation o JOIN exchange e ON e.item = o.exchange
               JOIN source s ON s.id = e.source, json_each(o.evidence) AS one
               WHERE one.value ->> 0 < 1 OR one.value ->> 1 < one.value ->> 0 OR one.value ->> 1 > s.lines"""
        )

    def vector_parts(self, model: str, keys: Collection[int]) -> dict[int, set[int]]:
        """Map each given item that was embedded with this model to the part numbers of its vectors."""
        found: dict[int, set[int]] = {}
        for key, part in self._db.rows(
            f"""SELECT i.key, v.part FROM item i LEFT JOIN vector v ON v.item = i.key AND v.model = i.embedded
               WHERE i.embedded = ? AND i.key {AMONG}""",
            (model, listed(keys)),
        ):
            found.setdefault(key, set()).update([] if part is None else [part])
        return found

    def damaged_vectors(self) -> list[int]:
        """Return the keys of items with damaged vectors or token embeddings.

        A vector is damaged if its length differs from the most frequent length of its model. Token embeddings are
        damaged if they are incomplete.
        """
        return self._db.numbers(
            """WITH shape AS (SELECT model, length(data) AS size, count(*) AS many FROM vector GROUP BY 1, 2)
               SELECT item FROM token WHERE length(signs) % ?
               UNION SELECT v.item FROM vector v WHERE length(v.data) <> (
                   SELECT size FROM shape WHERE shape.model = v.model ORDER BY many DESC, size DESC LIMIT 1
               )""",
            (TOKEN_BYTES,),
        )

    def count_wrong_tags(self) -> int:
        """Count the tags that are in a memory's row but not in the table `memory_tag`, or the reverse."""
        return self._db.number(
            f"""SELECT (SELECT count(*) FROM ({_TAGS_OF_MEMORIES} EXCEPT {_TAGS}))
                     + (SELECT count(*) FROM ({_TAGS} EXCEPT {_TAGS_OF_MEMORIES}))"""
        )

    def rebuild_tags(self) -> None:
        """Rebuild the table `memory_tag` from the rows of memories."""
        self._db.run("DELETE FROM memory_tag")
        self._db.run(f"INSERT OR IGNORE INTO memory_tag (memory, tag) {_TAGS_OF_MEMORIES}")

    def remove(self, keys: Iterable[int]) -> None:
        """Delete items and all rows that belong to them."""
        self._db.run_many("DELETE FROM item WHERE key = ?", [(key,) for key in keys])

    def reread(self, sources: Iterable[int]) -> None:
        """Schedule the copies of these sources to be read again from the start (see `SourceTable.outdated`)."""
        for number in sources:
            self._db.run("DELETE FROM record WHERE source = ?", (number,))
            self._db.run(
                """UPDATE source SET rules = '', coverage = '{}', lines = 0, resume = '[1, 0, 0, {}]'
                   WHERE id = ?""",
                (number,),
            )

    def delete_observations(self, observations: Iterable[int]) -> None:
        """Delete observations, and schedule their exchanges for a new extraction by rules."""
        deleted = list(observations)
        self._db.run_many(
            f"""UPDATE exchange SET observed = NULL WHERE observed NOT LIKE '{MODEL_PREFIX}%'
                AND item = (SELECT exchange FROM observation WHERE item = ?)""",
            [(item,) for item in deleted],
        )
        self.remove(deleted)

    def reembed(self, keys: Iterable[int]) -> None:
        """Schedule these items to be embedded again."""
        changed = list(keys)
        self._db.run_many("DELETE FROM vector WHERE item = ?", [(key,) for key in changed])
        self._db.run_many("UPDATE item SET embedded = NULL WHERE key = ?", [(key,) for key in changed])
        self._changes.log(Entity.ITEM, changed)
