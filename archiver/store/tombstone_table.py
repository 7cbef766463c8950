"""Deletions and their tombstones: keyed hashes that recognise deleted content when it occurs again.

A deletion is `kept` while it can be undone, `erasing` until all its bytes are removed, and then `erased`. Its
tombstones are kept in every state. The rows of deleted exchanges are kept so that undo can restore every ID and text,
except session summaries, which are written anew with new IDs.

The tombstone file is stored beside the copies, so that deletions survive the loss of the database. It contains IDs,
times, states and keyed hashes, but no content. Before a transaction with a deletion commits, the whole file is
replaced. A new or restored database merges the deletions from the file. The first line contains the number of the
last write, the number of deletions and the fingerprint of the key. Every line has a checksum.
"""

import base64
import hashlib
import struct
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from ...core.conversation import Kind, Milliseconds
from ...core.deletion import Deletion, DeletionState, DeletionSummary
from ...core.errors import StoreError
from ...core.home import Home
from ...core.reports import many
from ...core.runtime import replacing, with_checksum, without_checksum
from .database import AMONG, Database, PathSeal, listed, placeholders
from .exchange_table import unpack
from .lease_table import StageTable
from .observation_table import MODEL_PREFIX
from .session_table import SummaryTable

_Rows = dict[str, list[dict[str, Any]]]
"""Rows by table name. Each row maps column names to values."""
_BY_ITEM: Final = (("item", "key"), ("observation", "item"), ("vector", "item"), ("token", "item"))
"""Tables with rows about an exchange or an observation, each with the column that contains the item's ID."""
_BY_EXCHANGE: Final = (("exchange", "item"), ("edited_file", "exchange"), ("confirmation", "exchange"))
_ORDER: Final = ("item", "exchange", "observation", "vector", "token", "edited_file")
"""Tables in the order of insertion: each table follows the tables that it references."""
_ORDINAL_OFFSET: Final = 1 << 40
"""Number added to the keys of restored exchanges. The sums are temporary ordinals that no other exchange has.

The exchanges get their final ordinals, in line order, when their source is read again.
"""


class DeletedRowTable:
    """Table with one bundle of rows for each deleted exchange. The caller opens the transaction."""

    def __init__(self, database: Database, summaries: SummaryTable) -> None:
        self._db, self._summaries = database, summaries

    def keep(self, deletion: int, exchanges: Sequence[int]) -> None:
        """Store the rows of exchanges and all dependent rows before the exchanges are deleted."""
        for key in exchanges:
            position = self._db.one(
                "SELECT source, start_line, end_line, observed FROM exchange WHERE item = ?", (key,)
            )
            if position is None:
                continue
            observations = self._select("observation", "exchange", [key])
            items = [key, *(row["item"] for row in observations if row["scope"] == "exchange")]
            rows: _Rows = {table: self._select(table, column, items) for table, column in _BY_ITEM}
            rows |= {table: self._select(table, column, [key]) for table, column in _BY_EXCHANGE}
            rows["confirmation"] += self._select("confirmation", "observation", items)
            self._db.run(
                "INSERT OR REPLACE INTO deleted_exchange VALUES (?, ?, ?, ?, ?, ?, ?)",
                (key, deletion, *position, msgspec.msgpack.encode(rows)),
            )

    def restore(self, deletion: int) -> None:
        """Insert the rows of a deletion again, except where another exchange begins on the same line.

        The caller must schedule the sources to be read again. If another deletion also covers a restored exchange, that
        reading removes the exchange.
        """
        bundles: list[_Rows] = []
        kept = self._db.rows("SELECT source, start_line, rows FROM deleted_exchange WHERE deletion = ?", (deletion,))
        for source, line, packed in kept:
            rows: _Rows = msgspec.msgpack.decode(packed)
            taken = "SELECT EXISTS (SELECT 1 FROM exchange WHERE source = ? AND start_line = ?)"
            # Earlier versions could delete observations without their exchange. Such a bundle needs its exchange in the
            # database.
            if bool(rows.get("exchange")) != bool(self._db.number(taken, (source, line))):
                bundles.append(rows)
        self._insert(bundles)
        self._db.run("DELETE FROM deleted_exchange WHERE deletion = ?", (deletion,))

    def prompts(self, deletion: int, limit: int) -> list[tuple[int, str]]:
        """Return the session and the prompt of the first `limit` exchanges of a deletion that can be undone."""
        query = "SELECT rows FROM deleted_exchange WHERE deletion = ? ORDER BY exchange LIMIT ?"
        prompts = list[tuple[int, str]]()
        for (packed,) in self._db.rows(query, (deletion, limit)):
            rows: _Rows = msgspec.msgpack.decode(packed)
            for row in rows.get("exchange", ()):
                texts = [turn.text for turn in unpack(row["turns"]) if turn.kind is Kind.PROMPT]
                prompts.append((rows["item"][0]["session"], "\n\n".join(texts)))
        return prompts

    def erase(self, source: int, is_erased: Callable[[int], bool]) -> None:
        """Remove the bundles of exchanges that contain erased lines of a source."""
        rows = self._db.rows("SELECT exchange, start_line, end_line FROM deleted_exchange WHERE source = ?", (source,))
        for key, start, end in rows:
            if any(map(is_erased, range(start, end + 1))):
                self._db.run("DELETE FROM deleted_exchange WHERE exchange = ?", (key,))

    def texts(self) -> Iterator[bytes]:
        """Yield the stored rows of each deleted exchange as bytes. Text in them is encoded as UTF-8."""
        for (packed,) in self._db.rows("SELECT rows FROM deleted_exchange"):
            yield packed

    def _select(self, table: str, column: str, keys: Sequence[int]) -> list[dict[str, Any]]:
        names = self._columns(table)
        rows = self._db.rows(f"SELECT {', '.join(names)} FROM {table} WHERE {column} {AMONG}", (listed(keys),))
        return [dict(zip(names, row, strict=True)) for row in rows]

    def _columns(self, table: str) -> list[str]:
        return [name for (name,) in self._db.rows("SELECT name FROM pragma_table_info(?)", (table,))]

    def _insert(self, bundles: Sequence[_Rows]) -> None:
        for table in _ORDER:
            for row in (row for rows in bundles for row in rows.get(table, ())):
                if table == "exchange":
                    row["ordinal"] = _ORDINAL_OFFSET + row["item"]
                self._insert_row(table, row)
        keys = {row["key"] for rows in bundles for row in rows["item"]}
        confirmations = [row for rows in bundles for row in rows.get("confirmation", ())]
        for row in confirmations:
            both = "SELECT count(*) FROM item WHERE key IN (?, ?)"
            if self._db.number(both, (row["observation"], row["exchange"])) == 2:
                self._insert_row("confirmation", row)
        # An exchange that confirmed a restored observation may contain the same observation itself, so extract from it
        # again.
        unobserved = {row["exchange"] for row in confirmations} - keys
        self._db.run(
            f"UPDATE exchange SET observed = NULL WHERE item {AMONG} AND observed NOT LIKE '{MODEL_PREFIX}%'",
            (listed(unobserved),),
        )
        for session in {row["session"] for rows in bundles for row in rows["item"]}:
            self._summaries.outdate(session)

    def _insert_row(self, table: str, row: dict[str, Any]) -> None:
        columns = [name for name in self._columns(table) if name in row]
        self._db.run(
            f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({placeholders(columns)})",
            tuple(row[name] for name in columns),
        )


_TITLE: Final = b"palaver-forgotten-2"
_UNCHECKED: Final = b"palaver-forgotten-1"
"""Prefix of a first line without a checksum. Earlier versions of Palaver wrote such lines."""
_STATES: Final = ("kept", "erasing", "erased")


class Tombstones(Struct, frozen=True):
    """One deletion with its tombstones: the keyed hashes of the deleted content."""

    number: int
    at: Milliseconds
    state: str
    hashes: tuple[int, ...]


class FileContent(Struct, frozen=True):
    """Readable deletions in a tombstone file, and the number of damaged deletions."""

    deletions: tuple[Tombstones, ...] = ()
    damaged: int = 0


class FileHeader(Struct, frozen=True):
    """First line of the file: number of the last write, number of deletions, and fingerprint of the key."""

    seq: int
    count: int
    fingerprint: bytes


NEVER_WRITTEN: Final = FileHeader(0, 0, b"")
"""Header for a missing file."""


class KeyLost(StoreError):
    """Error: the tombstones were made with another key, so they match no content."""

    def __init__(self, key: Path, tombstones: Path) -> None:
        self.path = key
        super().__init__(
            f"{key} does not match the list of deleted content, which would therefore reappear",
            hint=f"Restore {key} from a backup. If you have no backup, delete {tombstones}. Deleted content then "
            "reappears wherever an agent's file or the archive still contains it, and can be deleted again.",
        )


class KeyChanged(KeyLost):
    """Error: the secret placeholders were made with another key, and no deletion exists."""

    def __init__(self, key: Path) -> None:
        self.path = key
        StoreError.__init__(
            self,
            f"{key} was changed or damaged, so new placeholders of secrets would not match those in the archive",
            hint=f"Restore {key} from a backup. If you have no backup, run `palaver fsck --repair`. It accepts the "
            "current key, and the next `palaver archive` redacts all copies again.",
        )


def fingerprint(key: bytes) -> bytes:
    """Return a hash that identifies a key."""
    return hashlib.blake2b(key=key[:64], person=b"register", digest_size=8).hexdigest().encode()


class TombstoneFile:
    """Reader and writer of the tombstone file. A writer must hold the write lock of the database."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def header(self) -> FileHeader | None:
        """Return the first line. Return `NEVER_WRITTEN` for a missing file, and None if the first line is damaged.

        Raises:
            StoreError: The file cannot be read.
        """
        try:
            with self._path.open("rb") as file:
                return _header(file.readline())
        except FileNotFoundError:
            return NEVER_WRITTEN
        except OSError as error:
            raise self._unreadable(error) from None

    def read(self) -> FileContent:
        """Return all readable deletions, and the number of damaged deletions. Raises `StoreError` if reading fails."""
        try:
            first, *rows = self._path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return FileContent()
        except OSError as error:
            raise self._unreadable(error) from None
        parsed = [_parse(row) for row in rows if row]
        deletions = tuple(deletion for deletion in parsed if deletion is not None)
        header = _header(first)
        # The first deletion creates the file, so an empty file has lost at least one deletion.
        count = header.count if header is not None else max(len(parsed), 1)
        return FileContent(deletions, max(count, len(parsed)) - len(deletions))

    def write(self, header: FileHeader, deletions: Iterable[Tombstones]) -> None:
        """Replace the file durably.

        Raises:
            StoreError: The file cannot be written. The previous file is kept.
        """
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with replacing(self._path) as file:
                file.write(with_checksum(b"%s %d %d %s" % (_TITLE, header.seq, header.count, header.fingerprint)))
                file.writelines(map(_row, deletions))
        except OSError as error:
            reason = f"cannot write {self._path}: {error.strerror or error}"
            hint = "Nothing was changed. Check free space and permissions, then try again."
            raise StoreError(reason, hint=hint) from None

    def _unreadable(self, error: OSError) -> StoreError:
        reason = f"cannot read {self._path}: {error.strerror or error}"
        hint = "Palaver records deletions in this file. Check its permissions and the disk, then try again."
        return StoreError(reason, hint=hint)


def _row(deletion: Tombstones) -> bytes:
    fields = b"%d %d %s %s" % (deletion.number, deletion.at, deletion.state.encode(), _packed(deletion.hashes))
    return b"%08x %s\n" % (zlib.crc32(fields), fields)


def _parse(row: bytes) -> Tombstones | None:
    """Parse the deletion on a line. Return None if the line is damaged."""
    checksum, _, text = row.partition(b" ")
    fields = text.split(b" ")
    try:
        if int(checksum, 16) != zlib.crc32(text) or len(fields) not in {4, 6}:  # Earlier versions wrote six fields.
            return None
        number, at, state, hashes = fields[:4]
        deletion = Tombstones(int(number), int(at), state.decode(), _unpacked(hashes))
    except (ValueError, struct.error):
        return None
    return deletion if deletion.state in _STATES else None


def _packed(hashes: Sequence[int]) -> bytes:
    return base64.b64encode(struct.pack(f">{len(hashes)}q", *hashes))


def _unpacked(text: bytes) -> tuple[int, ...]:
    packed = base64.b64decode(text, validate=True)
    return struct.unpack(f">{len(packed) // 8}q", packed)


def _header(row: bytes) -> FileHeader | None:
    if row.startswith(_TITLE):
        row = without_checksum(row) or b""
    title, *fields = row.rstrip(b"\n").split(b" ")
    if title not in {_TITLE, _UNCHECKED} or len(fields) != 3 or not (fields[0].isdigit() and fields[1].isdigit()):
        return None
    return FileHeader(int(fields[0]), int(fields[1]), fields[2])


_STAGE: Final = "forget"


class TombstoneTable:
    """Table of deletions and their tombstones. The caller opens the transaction."""

    def __init__(self, database: Database) -> None:
        self._db, self._home = database, Home(database.path.parent)
        self._paths = PathSeal(database)
        self._file = TombstoneFile(self._home.tombstone_file)
        self.changed = False
        """True if the file must be written before the commit."""
        self.lost = 0
        """Number of deletions that were unreadable when the tombstone file was last merged into the database."""

    # The tombstone file.

    @property
    def in_sync(self) -> bool:
        """True if the database and the file record the same deletions."""
        header = self._file.header()
        return header is not None and header.seq == self._seq() and (bool(header.seq) or not self.has_deletions())

    @property
    def is_complete(self) -> bool:
        """True if the database contains all deletions of the file."""
        header = self._file.header()
        return header is not None and header.seq <= self._seq()

    def synchronise(self) -> None:
        """Merge a newer tombstone file into the database, or schedule an older or missing file to be written.

        Raises:
            StoreError: The file cannot be read.
        """
        if self.in_sync:
            return
        seq, header = self._seq(), self._file.header()
        self.changed = True
        if header is None or header.seq > seq:
            self._merge_file()
        if self.lost:
            records = many(self.lost, "record")
            problem = f"{records} of deletions cannot be read, so deleted content may have reappeared. Delete it again."
            StageTable(self._db).note(_STAGE, [StoreError(problem)])
        self._save_seq(max(header.seq if header else 0, seq))

    def write_file(self) -> None:
        """Write the file. Call this before the commit of a changed deletion, so that the file records every deletion.

        Raises:
            StoreError: The file cannot be written.
        """
        header = self._file.header() or NEVER_WRITTEN
        seq, deletions = max(self._seq(), header.seq) + 1, self._deletions()
        # Keep the fingerprint in the file even if the key was replaced: it identifies the key of the hashes.
        key = header.fingerprint or self._fingerprint()
        self._file.write(FileHeader(seq, len(deletions), key), deletions)
        self._save_seq(seq)
        self.changed = False

    def rewrite_file(self) -> None:
        """Schedule writing the file at the next commit."""
        self.changed = True

    def differs_from_file(self) -> bool:
        """Return whether the file is damaged or its deletions differ from those in the database."""
        content = self._file.read()
        return bool(content.damaged) or content.deletions != tuple(self._deletions())

    @property
    def damage(self) -> str:
        """Description of lost tombstones, or an empty string if none are lost or the user acknowledged the loss."""
        return next((stage.problem for stage in StageTable(self._db).all() if stage.name == _STAGE and stage.fails), "")

    def acknowledge_damage(self) -> None:
        """Record that the user acknowledged `damage`."""
        StageTable(self._db).note(_STAGE)

    def check_key(self, key: bytes) -> None:
        """Check that `key` made the tombstones and the placeholders of secrets.

        Raises:
            KeyLost: Another key made the tombstones.
            KeyChanged: Another key made the placeholders, and there are no deletions.
        """
        if not self.has_deletions():
            stored = self._db.one("SELECT fingerprint FROM key_fingerprint")
            if stored is not None and stored[0] != fingerprint(key):
                raise KeyChanged(self._home.key_file)
            return
        header = self._file.header()
        if header is not None and header.fingerprint and header.fingerprint != fingerprint(key):
            raise KeyLost(self._home.key_file, self._home.tombstone_file)

    def accept_key(self, key: bytes) -> None:
        """Record `key` as the key that `check_key` expects."""
        stored = self._db.one("SELECT fingerprint FROM key_fingerprint")
        if stored is None or stored[0] != fingerprint(key):
            self._db.run("DELETE FROM key_fingerprint")
            self._db.run("INSERT INTO key_fingerprint VALUES (?)", (fingerprint(key),))

    def _fingerprint(self) -> bytes:
        try:
            return fingerprint(self._home.key())
        except OSError as error:
            reason = f"cannot read {self._home.key_file}: {error.strerror or error}"
            raise StoreError(reason, hint="Nothing was changed. Check its permissions, then try again.") from None

    def _seq(self) -> int:
        return self._db.number("SELECT seq FROM tombstone_file")

    def _save_seq(self, seq: int) -> None:
        self._db.run("DELETE FROM tombstone_file")
        self._db.run("INSERT INTO tombstone_file VALUES (?)", (seq,))

    def _deletions(self) -> list[Tombstones]:
        """Return every deletion with its tombstones, oldest first."""
        hashes: dict[int, list[int]] = {}
        for number, line_hash in self._db.rows("SELECT deletion, hash FROM tombstone ORDER BY deletion, hash"):
            hashes.setdefault(number, []).append(line_hash)
        return [
            Tombstones(deletion.id, deletion.at, deletion.state, tuple(hashes.get(deletion.id, ())))
            for deletion in reversed(self.all())
        ]

    def _merge_file(self) -> None:
        """Insert the deletions of the file. Their content stays in the database until the copies are read again."""
        content, stored = self._file.read(), {deletion.id: deletion for deletion in self.all()}
        self.lost = max(content.damaged - len(stored.keys() - {deletion.number for deletion in content.deletions}), 0)
        copies = [name for (name,) in self._db.rows("SELECT archived FROM source")]
        for deletion in content.deletions:
            state = DeletionState(deletion.state)
            if copies and state is DeletionState.ERASED:
                state = DeletionState.ERASING  # The database is older than the erasure, so its rows must be erased.
            same = stored.get(deletion.number)
            if same is not None and same.at == deletion.at:
                number = same.id
                state = max(state, same.state, key=list(DeletionState).index)
                self.set_state(number, state)
            else:
                sql = "INSERT INTO deletion (id, at, state) VALUES (?, ?, ?)"
                number = self._db.run(sql, (None if same else deletion.number, deletion.at, state))
            self._insert_hashes(number, deletion.hashes)
            if state is DeletionState.ERASING:
                self.schedule_erasure(number, dict.fromkeys(copies, False))
                self._db.run("DELETE FROM deleted_exchange")  # Any of these rows may contain erased content.
        if copies and content.deletions:
            # Lines may have been erased from the copies after these checksums were stored.
            self._db.run("UPDATE source SET rules = '', sums = x''")
            self._db.run("UPDATE session SET title = '', title_rank = -1, branch = '', cwd = ''")

    # Deletions.

    def insert(self, at: Milliseconds, state: DeletionState, hashes: Collection[int], summary: DeletionSummary) -> int:
        """Insert a deletion with its tombstones, and return its ID."""
        self.changed = True
        number = self._db.run(
            "INSERT INTO deletion (at, state, summary) VALUES (?, ?, ?)",
            (at, state, msgspec.json.encode(summary).decode()),
        )
        self._insert_hashes(number, hashes)
        if state is not DeletionState.KEPT:
            self._drop_titles(number)
        return number

    def _insert_hashes(self, number: int, hashes: Iterable[int]) -> None:
        self._db.run_many(
            "INSERT OR IGNORE INTO tombstone VALUES (?, ?)", [(line_hash, number) for line_hash in hashes]
        )

    def extend(self, hashes: Iterable[tuple[int, int]]) -> None:
        """Add tombstones for copies of deleted content. Each pair has the tombstone of the content and the new one."""
        self.changed = True
        self._db.run_many(
            "INSERT OR IGNORE INTO tombstone SELECT ?2, deletion FROM tombstone WHERE hash = ?1", list(hashes)
        )

    def set_state(self, number: int, state: DeletionState) -> None:
        """Change the state of a deletion. When undo is no longer possible, delete the content kept for undo."""
        self.changed = True
        self._db.run("UPDATE deletion SET state = ? WHERE id = ?", (state, number))
        if state is not DeletionState.KEPT:
            self._db.run("DELETE FROM deleted_exchange WHERE deletion = ?", (number,))
            remaining = "json_remove(summary, '$.projects', '$.first', '$.last')"
            self._db.run(f"UPDATE deletion SET summary = {remaining} WHERE id = ?", (number,))
            self._drop_titles(number)

    def _drop_titles(self, erasure: int) -> None:
        """Drop the titles of an erasure, and of earlier deletions, because they may quote the erased text.

        Those of later deletions do not, because the sessions got new titles without the deleted text.
        """
        self._db.run("UPDATE deletion SET summary = json_remove(summary, '$.titles') WHERE id <= ?", (erasure,))

    def undo(self, number: int) -> None:
        """Remove a deletion and its tombstones."""
        self.changed = True
        self._db.run("DELETE FROM tombstone WHERE deletion = ?", (number,))
        self._db.run("DELETE FROM deletion WHERE id = ?", (number,))
        self._db.run("DELETE FROM erased_file")

    def has_deletions(self, *, erased: bool = False) -> bool:
        """Return whether any deletion exists. With `erased`, count only erasures."""
        condition = "WHERE state <> 'kept'" if erased else ""
        return bool(self._db.number(f"SELECT EXISTS (SELECT 1 FROM deletion {condition})"))

    def matching(self, hashes: Collection[int], *, erased: bool = False) -> set[int]:
        """Return the given keyed hashes that are tombstones.

        With `erased`, include only tombstones of erased content.
        """
        condition = "AND deletion IN (SELECT id FROM deletion WHERE state <> 'kept')" if erased else ""
        return set(self._db.numbers(f"SELECT hash FROM tombstone WHERE hash {AMONG} {condition}", (listed(hashes),)))

    def deletions_of(self, hashes: Collection[int]) -> dict[int, int]:
        """Return the deletion of each of these keyed hashes that is a tombstone."""
        return dict(
            self._db.rows(
                f"SELECT hash, min(deletion) FROM tombstone WHERE hash {AMONG} GROUP BY hash", (listed(hashes),)
            )
        )

    def all(self) -> list[Deletion]:
        """Return every deletion, newest first."""
        rows = self._db.rows(
            """SELECT id, at, state, (SELECT count(*) FROM tombstone WHERE deletion = id), summary
               FROM deletion ORDER BY id DESC"""
        )
        return [
            Deletion(number, at, DeletionState(state), count, msgspec.json.decode(summary, type=DeletionSummary))
            for number, at, state, count, summary in rows
        ]

    def load(self, number: int) -> Deletion | None:
        """Return the deletion with this ID, or None."""
        return next((deletion for deletion in self.all() if deletion.id == number), None)

    def fully_erased(self) -> list[int]:
        """Return the IDs of deletions that could be undone, but whose content other deletions erased completely."""
        return self._db.numbers(
            """SELECT f.id FROM deletion f WHERE f.state = 'kept' AND EXISTS (
                   SELECT 1 FROM tombstone WHERE deletion = f.id
               ) AND NOT EXISTS (
                   SELECT 1 FROM tombstone t WHERE t.deletion = f.id AND t.hash NOT IN (
                       SELECT hash FROM tombstone JOIN deletion g ON g.id = deletion WHERE g.state <> 'kept'
                   )
               )"""
        )

    # Erasure of copies and rows.

    def schedule_erasure(self, deletion: int, copies: Mapping[str, bool]) -> None:
        """Record that lines must be erased from these copies.

        `copies` maps each copy to True if the whole copy must be deleted, or to False if only lines must be erased.
        """
        self._db.run_many(
            "INSERT OR REPLACE INTO scheduled_erasure (archived, deletion, whole) VALUES (?, ?, ?)",
            [(archived, deletion, is_whole) for archived, is_whole in copies.items()],
        )

    def scheduled_erasures(self) -> dict[str, bool]:
        """Map each copy with a scheduled erasure to True if the whole copy must be deleted."""
        return {
            name: bool(is_whole) for name, is_whole in self._db.rows("SELECT archived, whole FROM scheduled_erasure")
        }

    def unfinished(self) -> set[int]:
        """Return the IDs of deletions with lines that must still be erased from a copy."""
        return set(self._db.numbers("SELECT deletion FROM scheduled_erasure"))

    def complete_erasure(self, archived: str) -> None:
        """Record that the erased lines were removed from a copy."""
        self._db.run("DELETE FROM scheduled_erasure WHERE archived = ?", (archived,))

    def record_erased_file(self, path_hash: int, mtime: int, size: int) -> None:
        """Record that a file contains only erased content. The record is valid until the file changes."""
        self._db.run("INSERT OR REPLACE INTO erased_file VALUES (?, ?, ?)", (path_hash, mtime, size))

    def is_erased_file(self, path_hash: int, mtime: int, size: int) -> bool:
        """Return whether a file was recorded as containing only erased content and has not changed since."""
        sql = "SELECT 1 FROM erased_file WHERE (path_hash, mtime, size) = (?, ?, ?)"
        return self._db.one(sql, (path_hash, mtime, size)) is not None

    def erase_rows(self, sources: Collection[int], sessions: Collection[int] = ()) -> None:
        """Delete sources with all their rows, and the given sessions that have no other source.

        The costs in the ledger of model calls are kept.
        """
        for source in sources:
            path = self._db.one("SELECT path FROM source WHERE id = ?", (source,))
            self._db.run("DELETE FROM record WHERE source = ?", (source,))
            self._db.run("DELETE FROM item WHERE key IN (SELECT item FROM exchange WHERE source = ?)", (source,))
            self._db.run("DELETE FROM source WHERE id = ?", (source,))
            if path is not None:
                self._erase_path(path[0])
        gone = f"{AMONG} AND {{}} NOT IN (SELECT session FROM source WHERE session NOT NULL)"
        self._db.run(f"DELETE FROM item WHERE session {gone.format('session')}", (listed(sessions),))
        erased = f"SELECT native_id FROM session WHERE id {gone.format('id')}"
        self._db.run(f"DELETE FROM injection WHERE session_id IN ({erased})", (listed(sessions),))
        self._db.run(f"DELETE FROM session WHERE id {gone.format('id')}", (listed(sessions),))

    def _erase_path(self, path: bytes) -> None:
        self._db.run("DELETE FROM problem WHERE path = ?", (path,))
        path_text = str(self._paths.path(path))
        self._db.run("UPDATE stage SET problem = 'about a file that was erased' WHERE instr(problem, ?)", (path_text,))

    def erase_calls(self, exchanges: Collection[int]) -> None:
        """Remove references to these exchanges from the ledger of model calls."""
        self._db.run(f"UPDATE call SET exchange = 0, digest = '' WHERE exchange {AMONG}", (listed(exchanges),))

    def erase_records(self, records: Collection[str]) -> None:
        """Delete the records with these IDs."""
        self._db.run(f"DELETE FROM record WHERE id {AMONG}", (listed(records),))

    def sent(self, exchanges: Collection[int]) -> int:
        """Return how many of these exchanges were sent to a language model."""
        return self._db.number(
            f"SELECT count(DISTINCT exchange) FROM call WHERE state <> 'released' AND exchange {AMONG}",
            (listed(exchanges),),
        )

    def compact(self, *, whole: bool) -> bool:
        """Truncate the write-ahead log. Return False if another process is reading the database.

        With `whole`, rewrite the database file first.
        """
        if whole:
            self._db.run("VACUUM")
        row = self._db.one("PRAGMA wal_checkpoint(TRUNCATE)")
        return row is not None and row[0] == 0
