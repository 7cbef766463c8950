"""Documents: files in chunks, each chunk an item; and the queue of files that wait to be read."""

import os
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from ...core.conversation import Milliseconds
from ...core.document import Chunk, ChunkKind, DocumentFilter, FailedFile, HeldChunk, HeldFile
from ...core.home import Home
from ..redaction import Redactor
from ..redaction.quick import name_may_hold
from .database import AMONG, Database, Row, Value, listed

_CHUNK = "text, kind, start_line, end_line, page, header_path, unit, name, signature"
_HELD = f"""SELECT item, path, namespace, language, ordinal, at, {_CHUNK}
    FROM chunk c JOIN document d ON d.id = c.document"""
_UNEMBEDDED = "FROM chunk JOIN item ON item.key = chunk.item WHERE item.embedded IS NOT ?"


class Document(Struct, frozen=True):
    """A file as it was when it was read. `digest` is of its bytes and of how they are read."""

    path: Path
    namespace: str
    language: str
    digest: bytes
    at: Milliseconds


class Queued(Struct, frozen=True):
    """A file that waits to be read, and the folder that it must not lead out of."""

    path: Path
    namespace: str
    root: Path


class DocumentTable:
    """Reads and writes documents, their chunks, and what waits. What an index holds is logged with every write."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def digest(self, path: Path, namespace: str) -> bytes:
        """What `replace` was given last for this file; empty where it is not held whole."""
        row = self._db.one(
            "SELECT digest FROM document WHERE path = ? AND namespace = ?", (os.fsencode(path), namespace)
        )
        return cast(bytes, row[0]) if row else b""

    def replace(self, document: Document, chunks: Sequence[Chunk]) -> list[int]:
        """Make these the chunks of a document; their keys. A chunk that says the same as before keeps its key."""
        number = self._save(document)
        before: dict[Chunk, list[tuple[int, int, Chunk]]] = {}
        for held in reversed(self._select("d.id = ?", (number,))):
            before.setdefault(_unplaced(held.chunk), []).append((held.key, held.index, held.chunk))
        kept: list[tuple[int, int, Chunk]] = []
        keys: list[int] = []
        for index, chunk in enumerate(chunks):
            same = before.get(_unplaced(chunk))
            if same:
                key, *known = same.pop()
                if [index, chunk] != known:
                    kept.append((key, index, chunk))
            else:
                key = self._insert(number, document.at, index, chunk)
            keys.append(key)
        self._delete(key for rest in before.values() for key, _, _ in rest)
        self._move(kept)
        return keys

    def load(self, keys: Sequence[int]) -> dict[int, HeldChunk]:
        """The chunks with these keys; unknown keys are left out."""
        rows = self._db.rows_among(f"{_HELD} WHERE c.item {AMONG} ORDER BY path, namespace, ordinal", keys)
        return {one.key: one for one in map(self._held, rows)}

    def select(self, wanted: DocumentFilter, limit: int = -1, offset: int = 0) -> list[HeldChunk]:
        """The chunks that satisfy a filter, by file and place."""
        where, values = _where(wanted)
        return self._select(where, values, limit, offset)

    def keys_of(self, path: Path, namespace: str) -> list[int]:
        """The keys of a document's chunks, in order."""
        rows = self._db.rows(
            """SELECT c.item FROM chunk c JOIN document d ON d.id = c.document
               WHERE d.path = ? AND d.namespace = ? ORDER BY c.ordinal""",
            (os.fsencode(path), namespace),
        )
        return [cast(int, row[0]) for row in rows]

    def count_by(self, column: str) -> dict[str, int]:
        """How many chunks there are of each `namespace` or `kind`, most first."""
        assert column in {"namespace", "kind"}
        rows = self._db.rows(
            f"""SELECT {column}, count(*) FROM chunk c JOIN document d ON d.id = c.document
                GROUP BY {column} ORDER BY 2 DESC, 1"""
        )
        return {str(name): cast(int, count) for name, count in rows}

    def unembedded(self, model: str) -> list[int]:
        """Return the keys of the chunks that have no vectors of this model yet."""
        return [cast(int, key) for (key,) in self._db.rows(f"SELECT item.key {_UNEMBEDDED}", (model,))]

    def count_unembedded(self, model: str) -> int:
        """Count the chunks that have no vectors of this model yet."""
        return self._db.number(f"SELECT count(*) {_UNEMBEDDED}", (model,))

    def files(self, wanted: DocumentFilter | None = None) -> list[HeldFile]:
        """Every file in each namespace that it is held in, in order."""
        where, values = _where(wanted or DocumentFilter())
        rows = self._db.rows(
            f"""SELECT path, namespace, language, (SELECT count(*) FROM chunk WHERE document = d.id), at
                FROM document d WHERE {where} ORDER BY path, namespace""",
            values,
        )
        return [
            HeldFile(_path(path), str(namespace), str(language), cast(int, count), cast(int, at))
            for path, namespace, language, count, at in rows
        ]

    def delete_chunks(self, keys: Sequence[int]) -> list[int]:
        """Delete those of these that are chunks; their keys. Their files are read anew when they are indexed again."""
        found = sorted(self.load(keys))
        self._db.run(
            f"UPDATE document SET digest = x'' WHERE id IN (SELECT document FROM chunk WHERE item {AMONG})",
            (listed(found),),
        )
        self._delete(found)
        self._db.run("DELETE FROM document WHERE digest = x'' AND id NOT IN (SELECT document FROM chunk)")
        return found

    def delete(self, wanted: DocumentFilter) -> int:
        """Delete whole documents, and what waits of them, by file, folder or namespace; how many chunks they had."""
        assert not wanted.kinds
        where, values = _where(wanted)
        rows = self._db.rows(f"SELECT c.item FROM chunk c JOIN document d ON d.id = c.document WHERE {where}", values)
        self._delete(cast(int, row[0]) for row in rows)
        self._db.run(f"DELETE FROM document AS d WHERE {where}", values)
        self._db.run(f"DELETE FROM waiting_file AS d WHERE {where}", values)
        return len(rows)

    def queue(self, files: Iterable[Queued]) -> None:
        """Have these files read later; one that waits already waits once."""
        rows: list[tuple[Value, ...]] = [
            (os.fsencode(file.path), file.namespace, os.fsencode(file.root)) for file in files
        ]
        self._db.run_many(
            """INSERT INTO waiting_file (path, namespace, root) VALUES (?, ?, ?)
               ON CONFLICT (path, namespace) DO UPDATE SET root = excluded.root, problem = '', hint = ''""",
            rows,
        )

    def queued(self, limit: int) -> list[Queued]:
        """The files that wait, the first first; not those that failed."""
        rows = self._db.rows(
            "SELECT path, namespace, root FROM waiting_file WHERE problem = '' ORDER BY id LIMIT ?", (limit,)
        )
        return [Queued(_path(path), str(namespace), _path(root)) for path, namespace, root in rows]

    def count_queued(self) -> int:
        """How many files wait."""
        return self._db.number("SELECT count(*) FROM waiting_file WHERE problem = ''")

    def settle(self, file: Queued, problem: str = "", hint: str = "") -> None:
        """A file waits no longer: it was read, or it cannot be, which is kept until it is queued or read again."""
        place = (os.fsencode(file.path), file.namespace)
        if problem:
            self._db.run(
                "UPDATE waiting_file SET problem = ?, hint = ? WHERE path = ? AND namespace = ?",
                (problem, hint, *place),
            )
        else:
            self._db.run("DELETE FROM waiting_file WHERE path = ? AND namespace = ?", place)

    def failed(self) -> list[FailedFile]:
        """The files that waited and could not be read."""
        rows = self._db.rows("SELECT path, problem, hint FROM waiting_file WHERE problem <> '' ORDER BY path")
        return [FailedFile(_path(path), str(problem), str(hint)) for path, problem, hint in rows]

    def _save(self, document: Document) -> int:
        place = (os.fsencode(document.path), document.namespace)
        self._db.run(
            """INSERT INTO document (path, namespace, language, digest, at) VALUES (?, ?, ?, ?, ?)
               ON CONFLICT (path, namespace) DO UPDATE
               SET language = excluded.language, digest = excluded.digest, at = excluded.at""",
            (*place, document.language, document.digest, document.at),
        )
        return self._db.number("SELECT id FROM document WHERE path = ? AND namespace = ?", place)

    def _insert(self, number: int, at: Milliseconds, index: int, chunk: Chunk) -> int:
        key = self._db.run("INSERT INTO item (kind, at) VALUES (?, ?)", (chunk.kind, at))
        values = (key, number, index, *_values(chunk))
        self._db.run(f"INSERT INTO chunk (item, document, ordinal, {_CHUNK}) VALUES ({_marks(values)})", values)
        return key

    def _move(self, kept: Iterable[tuple[int, int, Chunk]]) -> None:
        """Give chunks the place in their document that they have now."""
        rows: list[tuple[Value, ...]] = [
            (index, chunk.start_line, chunk.end_line, chunk.page, key) for key, index, chunk in kept
        ]
        self._db.run_many("UPDATE chunk SET ordinal = ?, start_line = ?, end_line = ?, page = ? WHERE item = ?", rows)

    def _delete(self, keys: Iterable[int]) -> None:
        gone = list(keys)
        self._db.run(f"DELETE FROM item WHERE key {AMONG}", (listed(gone),))

    def _select(self, where: str, values: tuple[Value, ...], limit: int = -1, offset: int = 0) -> list[HeldChunk]:
        rows = self._db.rows(
            f"{_HELD} WHERE {where} ORDER BY path, namespace, ordinal LIMIT ? OFFSET ?",
            (*values, limit, offset),
        )
        return [self._held(row) for row in rows]

    def shown(self, path: Path) -> Path:
        """Return the path of a file without the secrets in its names: chunks, and so all replies, name it like this."""
        if not name_may_hold(str(path)):
            return path
        return Path(self._redactor.redact_name(str(path)))

    @cached_property
    def _redactor(self) -> Redactor:
        home = Home(self._db.path.parent)
        return Redactor(home.key() if home.key_file.is_file() else os.urandom(32))

    def _held(self, row: Row) -> HeldChunk:
        held = _held(row)
        return replace(held, source_file=self.shown(held.source_file))


def _where(wanted: DocumentFilter) -> tuple[str, tuple[Value, ...]]:
    named: dict[str, tuple[Value, ...]] = {
        "d.namespace": wanted.namespaces,
        "kind": wanted.kinds,
        "d.path": tuple(map(os.fsencode, wanted.source_files)),
        "language": wanted.languages,
    }
    clauses = [f"{column} IN ({_marks(given)})" for column, given in named.items() if given]
    values = tuple(value for given in named.values() for value in given)
    if wanted.under is not None:
        folder = os.fsencode(wanted.under).rstrip(b"/") + b"/"
        clauses.append("substr(d.path, 1, ?) = ?")
        values += (len(folder), folder)
    return " AND ".join(clauses) or "1", values


def _marks(values: Sequence[object]) -> str:
    return ",".join("?" * len(values))


def _unplaced(chunk: Chunk) -> Chunk:
    """What a chunk says, wherever it stands."""
    return Chunk(
        chunk.text,
        chunk.kind,
        header_path=chunk.header_path,
        unit=chunk.unit,
        name=chunk.name,
        signature=chunk.signature,
    )


def _values(chunk: Chunk) -> tuple[Value, ...]:
    said = (chunk.header_path, chunk.unit, chunk.name, chunk.signature)
    return (chunk.text, chunk.kind, chunk.start_line, chunk.end_line, chunk.page, *said)


def _held(row: Row) -> HeldChunk:
    key, index, at, start, end, page = (cast(int, row[place]) for place in (0, 4, 5, 8, 9, 10))
    headers, unit, name, signature = (str(value) for value in row[11:15])
    chunk = Chunk(str(row[6]), ChunkKind(str(row[7])), start, end, page, headers, unit, name, signature)
    return HeldChunk(key, chunk, _path(row[1]), str(row[2]), str(row[3]), index, at)


def _path(value: Value) -> Path:
    return Path(os.fsdecode(cast(bytes, value)))
