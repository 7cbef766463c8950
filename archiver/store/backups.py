"""Backups of the database, consistency checks of its rows, reserved IDs, and the watermark of changes.

Palaver makes one verified backup per day and keeps the newest three. They are ordered by the number in their names,
such as `palaver-000012-2026-11-24.db.zst`. The number only grows, so a clock that was wrong for some time deletes no
newer backup. A file with the suffix `.sha256` beside each backup contains its SHA-256 in the format of `sha256sum`.

A backup is compressed, and `zstd -d` restores it. It lacks vectors and token embeddings, which are half of a database
and hardly shrink. Items of a restored backup are embedded again.

Two small files are stored beside the raw copies:

- The reservation contains the highest reserved item ID, so that a rebuilt or restored database issues no ID twice. It
  is ahead of the database by up to `_AHEAD` IDs. A restored database that lacks fewer IDs can issue these IDs again.
- The watermark contains the number of the last committed change. If it is higher than the last change in the
  database, committed changes were lost, for example with the write-ahead log. It is not flushed to the disk, so after
  a power failure it can be too small, but never too large. A damaged or missing file is reported like a loss.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

import apsw

from ...core.conversation import now, show_instant
from ...core.errors import CopyDamaged, StoreCorrupt, StoreError
from ...core.home import Home
from ...core.reports import many
from ...core.runtime import replacing, sync_path, with_checksum, without_checksum
from ..compressed_file import CompressedFile, compress_file
from .change_log import TOKEN_BYTES, ChangeLog, Entity
from .database import AMONG, Database, connect, has_log, listed, translated_errors
from .observation_table import MODEL_PREFIX

KEPT: Final = 3
_NAME: Final = re.compile(r"palaver-(?:(\d{6,})-)?(\d{4}-\d\d-\d\d)\.db(?:\.zst)?")
"""Name of a backup: its number and its day. Earlier versions of Palaver wrote backups without compression, and the
first versions wrote names without a number.
"""
_FRAME: Final = 1 << 16
"""Content bytes per frame of a compressed backup. A damaged byte costs a whole frame."""


class Backups:
    """Folder of backups.

    `salvage` and the watermark also save damaged files in this folder, under names such as
    `damaged-2026-11-24-03600.db`.
    """

    def __init__(self, home: Home) -> None:
        self._folder = home.backups

    def all(self) -> list[Path]:
        """Return the backups, the newest made first."""
        found = (path for path in self._folder.glob("palaver-*.db*") if _NAME.fullmatch(path.name))
        return sorted(found, key=_order, reverse=True)

    @property
    def is_due(self) -> bool:
        """True if no backup exists for the current day (UTC)."""
        return all(day_of(path) != _utc_day() for path in self.all())

    def make(self, database: Database) -> None:
        """Copy the database without vectors, verify and compress the copy, and store its SHA-256.

        Only the newest backups are kept, as many as `KEPT`.

        The caller must hold the lease `BACKUP`. Therefore, existing unfinished files come from a killed process and are
        deleted.

        Raises:
            StoreError: There is not enough free space.
            StoreCorrupt: The database or the copy is damaged.
        """
        self._folder.mkdir(mode=0o700, exist_ok=True)
        if shutil.disk_usage(self._folder).free < 2 * database.path.stat().st_size:
            raise StoreError("not enough free space for a backup of the database", hint="Free some space.")
        number = max(map(_number, self.all()), default=0) + 1
        made = self._folder / f"palaver-{number:06}-{_utc_day()}.db.zst"
        copy, compressed = unfinished = [self._folder / f"unfinished{end}" for end in ("", ".zst")]
        try:
            for path in unfinished:
                path.unlink(missing_ok=True)
                path.touch(mode=0o600)
            database.copy_to(copy)
            _leave_out_vectors(copy)
            if problems := Database.problems(copy):
                raise StoreCorrupt(f"{copy}: {problems[0]}", hint="Check the disk.")
            try:
                compress_file(copy, compressed, _FRAME)
            except CopyDamaged as damage:
                raise StoreCorrupt(str(damage), hint=damage.hint) from None
            with replacing(_checksum_file(made)) as file:
                file.write(_checksum_line(compressed, made.name))
            compressed.replace(made)
            sync_path(self._folder)
        finally:
            for path in unfinished:
                path.unlink(missing_ok=True)
        for old in self.all()[KEPT:]:
            old.unlink(missing_ok=True)
        for checksum in self._folder.glob("*.sha256"):
            if not checksum.with_suffix("").exists():
                checksum.unlink(missing_ok=True)

    def damaged(self) -> Iterator[tuple[Path, str]]:
        """Verify all backups, and yield the path of each damaged one with a description of the damage."""
        for path in self.all():
            try:
                if damage := _damage(path):
                    yield path, damage
            except OSError as error:
                yield path, error.strerror or str(error)

    def set_aside(self, path: Path) -> Path:
        """Rename a damaged backup, so that it is no longer verified, and return its new path."""
        kept = path.with_name(f"damaged-{path.name}")
        path.replace(kept)
        _checksum_file(path).unlink(missing_ok=True)
        return kept

    def remove(self) -> None:
        """Remove all backups and damaged files, which may contain erased content."""
        shutil.rmtree(self._folder, ignore_errors=True)


def _leave_out_vectors(path: Path) -> None:
    """Delete the vectors and token embeddings from a copy of the database, and fill their pages with zeros.

    Unlike `VACUUM`, this needs no more space, and keeps the numbers of all other pages.
    """
    with translated_errors(path), closing(connect(str(path), apsw.SQLITE_OPEN_READWRITE)) as copy:
        copy.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
        copy.execute("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA secure_delete=ON").fetchall()
        copy.execute("BEGIN; DELETE FROM token; DELETE FROM vector; UPDATE item SET embedded = NULL; COMMIT")


def extracted(backup: Path, folder: Path) -> Path:
    """Return the database of a backup. A compressed backup is extracted to a folder, with zeros in place of damage."""
    if backup.suffix != ".zst":
        return backup
    database = folder / f"extracted-{backup.stem}"
    with database.open("wb") as file, suppress(CopyDamaged), CompressedFile(backup) as content:
        for start, data in content.intact_frames():
            file.seek(start)
            file.write(data)
        file.truncate(content.table.size)
    return database


def day_of(backup: Path) -> str:
    """Return the day (UTC) on which a backup was made, as in `2026-11-24`."""
    return _order(backup)[1]


def stamp() -> str:
    """Return the current UTC day and seconds since midnight, for a file name. Example: `2026-11-24-03600`."""
    return f"{_utc_day()}-{now() // 1000 % 86_400:05}"


def _utc_day() -> str:
    return show_instant(now())[:10]


def _order(backup: Path) -> tuple[int, str]:
    """Return the number and the day of a backup. The number is 0 for a name of earlier versions."""
    match = _NAME.fullmatch(backup.name)
    return (int(match[1] or 0), match[2]) if match else (0, "")


def _number(backup: Path) -> int:
    return _order(backup)[0]


def _damage(backup: Path) -> str:
    """Return a description of the damage of a backup, or an empty text.

    Without a checksum, as written by earlier versions, SQLite's integrity check is used instead.
    """
    checksum = _checksum_file(backup)
    if not checksum.exists():
        return "its SHA-256 is missing" if _number(backup) else next(iter(Database.problems(backup)), "")
    if checksum.read_bytes() != _checksum_line(backup, backup.name):
        return "it does not match its SHA-256"
    return ""


def _checksum_file(backup: Path) -> Path:
    return backup.with_name(f"{backup.name}.sha256")


def _checksum_line(path: Path, name: str) -> bytes:
    with path.open("rb") as file:
        return f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {name}\n".encode()


_TITLE: Final = b"palaver-given-2 "
_AHEAD: Final = 1_000
_LAST: Final = "SELECT seq FROM sqlite_sequence WHERE name = 'item'"


class IdReservation:
    """Reserved IDs of one store. If the file is missing, no IDs are reserved."""

    def __init__(self, database: Database) -> None:
        self._db, self._path, self._reserved = database, Home(database.path.parent).numbers, 0
        self._skipped = False

    def reserve(self) -> None:
        """Reserve more IDs if the current transaction issued an unreserved ID. Call this before the commit."""
        last = self._db.number(_LAST)
        if last <= self._reserved or not self._path.parent.is_dir():
            return
        self._reserved = self._read()
        if last > self._reserved:
            with suppress(OSError):  # Commit even if reserving IDs fails.
                self._write(last + _AHEAD)

    def skip_reserved(self) -> None:
        """Continue after the reserved IDs if a restored database has issued far fewer IDs than the file records.

        Call this before writes.
        """
        if self._skipped:
            return
        if self._is_behind(self._read()):
            with self._db.transaction():
                if self._is_behind(reserved := self._read()):
                    self._db.run("DELETE FROM sqlite_sequence WHERE name = 'item'")
                    self._db.run("INSERT INTO sqlite_sequence (name, seq) VALUES ('item', ?)", (reserved,))
        self._skipped = True

    @property
    def damage(self) -> str:
        """Description of a file that does not match its checksum, or that is missing although IDs were issued."""
        if self._path.exists():
            is_damaged = not self._read()
        else:
            is_damaged = self._path.parent.is_dir() and self._db.number(_LAST) > 0
        return f"{self._path}, which records the IDs in use, is missing or damaged" if is_damaged else ""

    def renew(self) -> None:
        """Write the file again, with `_AHEAD` IDs reserved after the last issued ID. Raises `OSError`."""
        self._write(self._db.number(_LAST) + _AHEAD)

    def _is_behind(self, reserved: int) -> bool:
        return reserved > self._db.number(_LAST) + _AHEAD

    def _read(self) -> int:
        return highest_reserved(self._path)

    def _write(self, reserved: int) -> None:
        with replacing(self._path) as file:
            file.write(with_checksum(b"%s%d" % (_TITLE, reserved)))
        self._reserved = reserved


def highest_reserved(path: Path) -> int:
    """Return the highest reserved ID that a file contains, or 0 if the file is missing or damaged."""
    try:
        line = path.read_bytes()
    except OSError:
        return 0
    if line.startswith(_TITLE):
        line = without_checksum(line) or b""
    number = line.removeprefix(_TITLE).strip()
    return int(number) if number.isdigit() and len(number) < 16 else 0


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
        parts: dict[int, set[int]] = {}
        for key, part in self._db.rows(
            f"""SELECT i.key, v.part FROM item i LEFT JOIN vector v ON v.item = i.key AND v.model = i.embedded
               WHERE i.embedded = ? AND i.key {AMONG}""",
            (model, listed(keys)),
        ):
            parts.setdefault(key, set()).update([] if part is None else [part])
        return parts

    def damaged_vectors(self) -> list[int]:
        """Return the keys of items with damaged vectors or token embeddings.

        A vector is damaged if its length differs from the most frequent length of its model. Token embeddings are
        damaged if they are incomplete.
        """
        return self._db.numbers(
            """WITH shape AS (SELECT model, length(data) AS size, count(*) AS many FROM vector GROUP BY 1, 2)
               SELECT item FROM token WHERE length(bits) % ?
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


LOSS_HINT: Final = (
    "The last stored memories or observations may be lost, for example because palaver.db-wal was deleted or damaged. "
    "Compare with a file in backups/. Run `palaver archive`, then `palaver fsck --repair`, which restores memories "
    "from a damaged palaver.db-wal, and stops reporting the loss."
)


class Watermark:
    """Watermark of one store. It shows how many committed changes are missing from the database."""

    def __init__(self, database: Database, changes: ChangeLog) -> None:
        self._home, self._changes = Home(database.path.parent), changes
        self._path, self._lost_path = _paths(self._home)
        self._written = -1

    @property
    def missing(self) -> int:
        """Number of committed changes that are missing from the database, as far as it is known."""
        if self._lost_path.exists():
            return _read(self._lost_path) or 1
        return self._behind()

    @property
    def loss(self) -> str:
        """Description of the missing changes, or an empty string if no changes are missing."""
        if self._is_unreadable or (self._lost_path.exists() and not _read(self._lost_path)):
            return f"{self._path} is missing or damaged, so lost changes cannot be ruled out"
        count = self.missing
        if not count:
            return ""
        return f"{many(count, 'acknowledged change is', 'acknowledged changes are')} missing from the database"

    def advance(self) -> None:
        """Write the number of the last change to the file. Call this after each commit.

        A recorded loss stays recorded.
        """
        last = self._changes.last()
        if last == self._written or not self._path.parent.is_dir():
            return
        _write(self._path, last)
        self._written = last

    def check(self) -> None:
        """Before the first write, record how many changes are missing, and save the write-ahead log.

        With a damaged watermark, the recorded number is 0, which means that it is unknown. Further calls have no
        effect.
        """
        if self._written < 0:
            self._written = 0
            missing = self._behind()
            if missing or self._is_unreadable:
                with suppress(OSError):
                    _keep_log(self._home)
                _write(self._lost_path, missing)
            elif not self._path.exists():
                _write(self._path, self._changes.last())  # A process can be killed between a commit and `advance`.

    def accept(self) -> None:
        """Delete the record of a loss, and set the watermark to the last change in the database."""
        reset(self._home)
        self._written = 0
        self.advance()

    def _behind(self) -> int:
        return max(0, (_read(self._path) or 0) - self._changes.last())

    @property
    def _is_unreadable(self) -> bool:
        """True if the watermark is damaged, or missing although changes were committed."""
        if self._path.exists():
            return _read(self._path) is None
        return self._path.parent.is_dir() and self._changes.last() > 0


def reset(home: Home) -> None:
    """Reset the watermark to 0, and delete the record of a loss. Call this when the database is replaced."""
    mark, lost = _paths(home)
    if mark.parent.is_dir():
        _write(mark, 0)
    with suppress(OSError):
        lost.unlink(missing_ok=True)


def _paths(home: Home) -> tuple[Path, Path]:
    """Return the paths of two files: the watermark, and the record of a loss."""
    return home.changes, home.changes.with_name(f"{home.changes.name}.lost")


def _keep_log(home: Home) -> None:
    """Copy the write-ahead log to the backups before SQLite removes the log."""
    if has_log(home.database):
        home.backups.mkdir(mode=0o700, exist_ok=True)
        log = home.database.with_name(f"{home.database.name}-wal")
        shutil.copy2(log, home.backups / f"lost-{stamp()}.db-wal")


def _read(path: Path) -> int | None:
    """Return the number in a file, or None if the file is missing or damaged."""
    try:
        return int(without_checksum(path.read_bytes()) or b"damaged")
    except (OSError, ValueError):
        return None


def _write(path: Path, number: int) -> None:
    """Write a number of fixed length in place, so that a killed process leaves no partial file."""
    line = with_checksum(b"%020d" % number)
    with suppress(OSError):
        if not path.exists():
            with replacing(path) as file:
                file.write(line)
            return
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.pwrite(descriptor, line, 0)
            os.ftruncate(descriptor, len(line))
        finally:
            os.close(descriptor)
