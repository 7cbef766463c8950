"""Tables of documents and of watched folders, queue of files to read, and named units of code.

A document is a file that is split into chunks. Each chunk is an item. The watcher keeps the documents of watched
folders indexed. `DocumentTable.delete` removes watched folders together with their documents. Units such as functions
and classes are queried from the table of chunks.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field, json
from msgspec.structs import asdict, replace

from ...core import ids
from ...core.conversation import Milliseconds
from ...core.document import (
    UNITS,
    Chunk,
    ChunkKind,
    DocumentFilter,
    DocumentFolder,
    FailedFile,
    StoredChunk,
    StoredFile,
    Symbol,
    last_name,
)
from ...core.home import Home
from ..redaction import Redactor
from ..redaction.scanner import name_may_contain_secret
from .database import AMONG, Database, PathSeal, Row, Value, listed, placeholders


class DocumentFolderTable:
    """Table of watched folders, by path and namespace."""

    def __init__(self, database: Database) -> None:
        self._db, self._paths = database, PathSeal(database)

    def add(self, folder: DocumentFolder) -> None:
        """Watch a folder, or change whether its subfolders are included."""
        self._db.run(
            """INSERT INTO watched_folder (path, namespace, recursive) VALUES (?, ?, ?)
               ON CONFLICT (path, namespace) DO UPDATE SET recursive = excluded.recursive""",
            (self._paths.stored(folder.path), folder.namespace, folder.recursive),
        )

    def change_namespace(self, folder: DocumentFolder, target: str) -> None:
        """Move a watched folder, with its stored and queued documents, to the namespace `target`.

        Documents that the target namespace already contains are not moved.
        """
        path, namespace = self._paths.stored(folder.path), folder.namespace
        below = path.rstrip(b"/") + b"/"
        for table in ("document", "queued_file"):
            self._db.run(
                f"UPDATE OR IGNORE {table} SET namespace = ? WHERE namespace = ? AND substr(path, 1, ?) = ?",
                (target, namespace, len(below), below),
            )
        self._db.run(
            "UPDATE OR IGNORE watched_folder SET namespace = ? WHERE namespace = ? AND path = ?",
            (target, namespace, path),
        )
        self._db.run("DELETE FROM watched_folder WHERE namespace = ? AND path = ?", (namespace, path))

    def all(self) -> list[DocumentFolder]:
        """Return the watched folders in path order."""
        rows = self._db.rows("SELECT path, namespace, recursive FROM watched_folder ORDER BY path, namespace")
        return [
            DocumentFolder(self._paths.path(path), namespace, bool(recursive)) for path, namespace, recursive in rows
        ]


_CHUNK: Final = Chunk.__struct_fields__
_SELECT: Final = f"""SELECT {", ".join(_CHUNK)}, item, path, namespace, language, ordinal, at, metadata
    FROM chunk c JOIN document d ON d.id = c.document"""
_BATCH: Final = 50
_PATHS: Final = 256
"""Maximum number of paths whose redacted form is cached."""
_UNEMBEDDED: Final = "FROM chunk JOIN item ON item.key = chunk.item WHERE item.embedded IS NOT ?"


class Document(Struct, frozen=True):
    """State of a file when it was read, without its chunks. `at` is its modification time.

    `digest` is computed from the bytes of the file and the versions of the parser and of the redaction rules.
    `metadata` contains named values from the file, such as `title` and `author`.
    """

    path: Path
    namespace: str
    language: str
    digest: bytes
    at: Milliseconds
    metadata: dict[str, str] = field(default_factory=dict[str, str])


class QueuedFile(Struct, frozen=True):
    """File in the queue. It is refused if its path, with symbolic links resolved, is outside the folder `root`."""

    path: Path
    namespace: str
    root: Path


class DocumentTable:
    """Table of documents, their chunks, and the queue of files to read. Triggers log the changes."""

    def __init__(self, database: Database) -> None:
        self._db, self._paths = database, PathSeal(database)

    def digest(self, path: Path, namespace: str) -> bytes:
        """Return the stored digest of a file, or empty bytes if the file or one of its chunks is not stored."""
        row = self._db.one(
            "SELECT digest FROM document WHERE path = ? AND namespace = ?", (self._paths.stored(path), namespace)
        )
        return row[0] if row else b""

    def replace(self, document: Document, chunks: Sequence[Chunk]) -> list[int]:
        """Replace the chunks of a document, and return their keys. A chunk with equal content keeps its key."""
        number = self._save(document)
        before: dict[Chunk, list[tuple[int, int, Chunk]]] = {}
        for stored in reversed(self._select("d.id = ?", (number,))):
            before.setdefault(_without_place(stored.chunk), []).append((stored.key, stored.index, stored.chunk))
        kept: list[tuple[int, int, Chunk]] = []
        keys: list[int] = []
        for index, chunk in enumerate(chunks):
            same = before.get(_without_place(chunk))
            if same:
                key, *position = same.pop()
                if [index, chunk] != position:
                    kept.append((key, index, chunk))
            else:
                key = self._insert(number, document.at, index, chunk)
            keys.append(key)
        self._delete(key for leftover in before.values() for key, _, _ in leftover)
        self._move(kept)
        return keys

    def paths_of(self, digest: bytes, namespace: str, language: str) -> list[Path]:
        """Return the paths of the documents with this digest, in path order. Documents without chunks are omitted."""
        rows = self._db.rows(
            """SELECT path FROM document d WHERE digest = ? AND namespace = ? AND language = ?
               AND EXISTS (SELECT 1 FROM chunk WHERE document = d.id) ORDER BY path""",
            (digest, namespace, language),
        )
        return [self._paths.path(path) for (path,) in rows]

    def move(self, path: Path, namespace: str, target: Path, at: Milliseconds) -> list[int]:
        """Change the path of a file, and return the keys of its chunks. `at` is the new modification time.

        The chunks keep their IDs and vectors. `former_paths` returns the old path. A document that was stored for
        `target` is deleted.
        """
        file_key = self._paths.stored(path), namespace
        self._delete(self.keys_of(target, namespace))
        self._db.run("DELETE FROM document WHERE path = ? AND namespace = ?", (self._paths.stored(target), namespace))
        self._db.run(
            """INSERT INTO former_path (document, path, at) SELECT id, path, at FROM document
               WHERE path = ? AND namespace = ? ON CONFLICT DO UPDATE SET at = excluded.at""",
            file_key,
        )
        self._db.run(
            "UPDATE document SET path = ?, at = ? WHERE path = ? AND namespace = ?",
            (self._paths.stored(target), at, *file_key),
        )
        return self.keys_of(target, namespace)

    def former_paths(self, path: Path, namespace: str) -> list[Path]:
        """Return the paths that a file had before it was moved, oldest first."""
        rows = self._db.rows(
            """SELECT f.path FROM former_path f JOIN document d ON d.id = f.document
               WHERE d.path = ? AND d.namespace = ? ORDER BY f.at, f.path""",
            (self._paths.stored(path), namespace),
        )
        return [self._paths.path(former) for (former,) in rows]

    def load(self, keys: Sequence[int]) -> dict[int, StoredChunk]:
        """Return the chunks with these keys. Unknown keys are omitted."""
        rows = self._db.rows_among(f"{_SELECT} WHERE c.item {AMONG} ORDER BY path, namespace, ordinal", keys)
        return {stored.key: stored for stored in map(self._stored, rows)}

    def select(self, filters: DocumentFilter, limit: int = -1, offset: int = 0) -> list[StoredChunk]:
        """Return the chunks that satisfy a filter, ordered by file and position."""
        where, values = self.conditions(filters)
        return self._select(where, values, limit, offset)

    def containing(self, text: str, filters: DocumentFilter) -> Iterator[StoredChunk]:
        """Yield the chunks that contain a text and satisfy a filter, ordered by file and position.

        The case of ASCII letters is ignored.
        """
        where, values = self.conditions(filters)
        keys = self._db.numbers(
            f"""SELECT c.item FROM chunk c JOIN document d ON d.id = c.document
                WHERE {where} AND instr(lower(c.text), lower(?)) ORDER BY d.path, d.namespace, c.ordinal""",
            (*values, text),
        )
        for start in range(0, len(keys), _BATCH):
            yield from self.load(keys[start : start + _BATCH]).values()

    def beside(self, stored: StoredChunk, start_line: int, end_line: int) -> list[StoredChunk]:
        """Return the chunks of the same document that contain any of the lines `start_line` to `end_line`, in order."""
        return self._select(
            "d.id = (SELECT document FROM chunk WHERE item = ?) AND c.end_line >= ? AND c.start_line <= ?",
            (stored.key, start_line, end_line),
        )

    def keys_of(self, path: Path, namespace: str) -> list[int]:
        """Return the keys of the chunks of a document, in order."""
        return self._db.numbers(
            """SELECT c.item FROM chunk c JOIN document d ON d.id = c.document
               WHERE d.path = ? AND d.namespace = ? ORDER BY c.ordinal""",
            (self._paths.stored(path), namespace),
        )

    def exist(self) -> bool:
        """Return whether there is any document."""
        return self._db.one("SELECT 1 FROM document LIMIT 1") is not None

    def uses(self, namespace: str) -> bool:
        """Return whether a document is in this namespace."""
        return self._db.one("SELECT 1 FROM document WHERE namespace = ? LIMIT 1", (namespace,)) is not None

    def count_by(self, column: str, *, files: bool = False) -> dict[str, int]:
        """Count the chunks or the files of each `namespace` or `kind`, the most frequent first."""
        assert column in {"namespace", "kind"}
        counted = "count(DISTINCT d.id)" if files else "count(*)"
        joined = f"SELECT {column}, {counted} FROM chunk c JOIN document d ON d.id = c.document"
        return dict(self._db.rows(f"{joined} GROUP BY {column} ORDER BY 2 DESC, 1"))

    def unembedded(self, model: str) -> list[int]:
        """Return the keys of the chunks that have no vectors of this model yet."""
        return self._db.numbers(f"SELECT item.key {_UNEMBEDDED}", (model,))

    def count_unembedded(self, model: str) -> int:
        """Count the chunks that have no vectors of this model yet."""
        return self._db.number(f"SELECT count(*) {_UNEMBEDDED}", (model,))

    def files(self, filters: DocumentFilter | None = None) -> list[StoredFile]:
        """Return the stored files that satisfy a filter, in path order.

        A file is listed once for each of its namespaces. The fields `kinds` and `units` of the filter are ignored,
        because they are conditions for chunks.
        """
        where, values = self._file_where(filters or DocumentFilter())
        rows = self._db.rows(
            f"""SELECT path, namespace, language, (SELECT count(*) FROM chunk WHERE document = d.id), at, metadata
                FROM document d WHERE {where} ORDER BY path, namespace""",
            values,
        )
        return [
            StoredFile(self._paths.path(path), namespace, language, count, at, _metadata(metadata))
            for path, namespace, language, count, at, metadata in rows
        ]

    def paths_named(self, names: Collection[str]) -> dict[Path, set[Path]]:
        """Map each stored code file to its matching paths: current and former paths with one of these file names."""
        rows = self._db.rows(
            """WITH code AS (SELECT id, path FROM document WHERE id IN (SELECT document FROM chunk WHERE name <> ''))
               SELECT path, path FROM code
               UNION SELECT code.path, f.path FROM code JOIN former_path f ON f.document = code.id ORDER BY 1"""
        )
        current_paths: dict[Path, set[Path]] = {}
        for current, packed in rows:
            if (path := self._paths.path(packed)).name in names:
                current_paths.setdefault(self._paths.path(current), set()).add(path)
        return current_paths

    def modified(self, filters: DocumentFilter) -> dict[Path, Milliseconds]:
        """Return the modification time of each stored file. Use only the files, folder and namespaces of the filter."""
        where, values = self._place(filters)
        return {
            self._paths.path(path): at
            for path, at in self._db.rows(f"SELECT path, at FROM document d WHERE {where}", values)
        }

    def delete_chunks(self, keys: Sequence[int]) -> list[int]:
        """Delete the chunks with these keys, and return the keys that were found.

        To restore the chunks, index their files again.
        """
        deleted = sorted(self.load(keys))
        self._db.run(
            f"UPDATE document SET digest = x'' WHERE id IN (SELECT document FROM chunk WHERE item {AMONG})",
            (listed(deleted),),
        )
        self._delete(deleted)
        self._db.run("DELETE FROM document WHERE digest = x'' AND id NOT IN (SELECT document FROM chunk)")
        return deleted

    def delete(self, filters: DocumentFilter) -> int:
        """Delete documents, stored or queued, by file, folder or namespace. Return the number of their chunks.

        Folders that match are no longer watched.

        Raises:
            ValueError: The filter has other conditions, such as a language. They are unknown for queued files.
        """
        if filters.pattern or filters.languages or filters.kinds or filters.units:
            raise ValueError("documents are deleted by file, folder or namespace only")
        where, values = self._place(filters)
        keys = self._db.numbers(
            f"SELECT c.item FROM chunk c JOIN document d ON d.id = c.document WHERE {where}", values
        )
        self._delete(keys)
        self._db.run(f"DELETE FROM document AS d WHERE {where}", values)
        self._db.run(f"DELETE FROM queued_file AS d WHERE {where}", values)
        self._db.run(f"DELETE FROM watched_folder AS d WHERE {where}", values)
        return len(keys)

    def queue(self, files: Iterable[QueuedFile]) -> None:
        """Add files to the queue, to be read later. A file already in the queue is not added again."""
        self._db.run_many(
            """INSERT INTO queued_file (path, namespace, root) VALUES (?, ?, ?)
               ON CONFLICT (path, namespace) DO UPDATE SET root = excluded.root, problem = '', hint = ''""",
            [(self._paths.stored(file.path), file.namespace, self._paths.stored(file.root)) for file in files],
        )

    def queued(self, limit: int) -> list[QueuedFile]:
        """Return queued files in the order of arrival, without failed files."""
        rows = self._db.rows(
            "SELECT path, namespace, root FROM queued_file WHERE problem = '' ORDER BY id LIMIT ?", (limit,)
        )
        return [QueuedFile(self._paths.path(path), namespace, self._paths.path(root)) for path, namespace, root in rows]

    def count_queued(self) -> int:
        """Count the queued files, without failed files."""
        return self._db.number("SELECT count(*) FROM queued_file WHERE problem = ''")

    def settle(self, file: QueuedFile, problem: str = "", hint: str = "") -> None:
        """Remove a file from the queue after it was read. With a `problem`, record that the file could not be read."""
        file_key = (self._paths.stored(file.path), file.namespace)
        if problem:
            self._db.run(
                """INSERT INTO queued_file (path, namespace, root, problem, hint) VALUES (?, ?, ?, ?, ?)
                   ON CONFLICT (path, namespace) DO UPDATE SET problem = excluded.problem, hint = excluded.hint""",
                (*file_key, self._paths.stored(file.root), problem, hint),
            )
        else:
            self._db.run("DELETE FROM queued_file WHERE path = ? AND namespace = ?", file_key)

    def failed(self, filters: DocumentFilter | None = None) -> list[FailedFile]:
        """Return the files that could not be read. Use only the files, folder and namespaces of the filter."""
        where, values = self._place(filters or DocumentFilter())
        rows = self._db.rows(
            f"SELECT path, problem, hint FROM queued_file d WHERE problem <> '' AND {where} ORDER BY path", values
        )
        return [FailedFile(self._paths.path(path), problem, hint) for path, problem, hint in rows]

    def _save(self, document: Document) -> int:
        file_key = (self._paths.stored(document.path), document.namespace)
        self._db.run(
            """INSERT INTO document (path, namespace, language, digest, at, metadata) VALUES (?, ?, ?, ?, ?, ?)
               ON CONFLICT (path, namespace) DO UPDATE
               SET language = excluded.language, digest = excluded.digest, at = excluded.at,
                   metadata = excluded.metadata""",
            (*file_key, document.language, document.digest, document.at, json.encode(document.metadata).decode()),
        )
        return self._db.number("SELECT id FROM document WHERE path = ? AND namespace = ?", file_key)

    def _insert(self, number: int, at: Milliseconds, index: int, chunk: Chunk) -> int:
        key = self._db.run("INSERT INTO item (kind, at) VALUES (?, ?)", (chunk.kind, at))
        self._db.insert("chunk", {"item": key, "document": number, "ordinal": index} | asdict(chunk))
        return key

    def _move(self, kept: Iterable[tuple[int, int, Chunk]]) -> None:
        """Update the positions of chunks that kept their keys: the index, the lines and the page."""
        self._db.run_many(
            """UPDATE chunk SET ordinal = ?, start_line = ?, end_line = ?, page = ?, unit_start = ?, unit_end = ?
               WHERE item = ?""",
            (
                (index, chunk.start_line, chunk.end_line, chunk.page, chunk.unit_start, chunk.unit_end, key)
                for key, index, chunk in kept
            ),
        )

    def _delete(self, keys: Iterable[int]) -> None:
        self._db.run(f"DELETE FROM item WHERE key {AMONG}", (listed(keys),))

    def _select(self, where: str, values: tuple[Value, ...], limit: int = -1, offset: int = 0) -> list[StoredChunk]:
        rows = self._db.rows(
            f"{_SELECT} WHERE {where} ORDER BY path, namespace, ordinal LIMIT ? OFFSET ?",
            (*values, limit, offset),
        )
        return [self._stored(row) for row in rows]

    def conditions(self, filters: DocumentFilter) -> tuple[str, tuple[Value, ...]]:
        """Return a filter as SQL conditions on the tables `chunk c` and `document d`, with their values."""
        where, values = self._file_where(filters)
        return _and(where, values, {"c.kind": filters.kinds, "lower(c.unit)": [*map(str.lower, filters.units)]})

    def _place(self, filters: DocumentFilter) -> tuple[str, tuple[Value, ...]]:
        """Return SQL conditions for the files, folder and namespaces of a filter. They apply to queued files too."""
        files = [*map(self._paths.stored, filters.source_files)]
        where, values = _and("1", (), {"d.namespace": filters.namespaces, "d.path": files})
        if filters.under is not None:
            folder = self._paths.stored(filters.under).rstrip(b"/") + b"/"
            where, values = f"{where} AND substr(d.path, 1, ?) = ?", (*values, len(folder), folder)
        return where, values

    def _file_where(self, filters: DocumentFilter) -> tuple[str, tuple[Value, ...]]:
        where, values = _and(*self._place(filters), {"lower(d.language)": [*map(str.lower, filters.languages)]})
        if filters.pattern:
            rows = self._db.rows(f"SELECT d.id, d.path FROM document d WHERE {where}", values)
            fitting = [number for number, path in rows if filters.admits_path(self.shown(self._paths.path(path)))]
            where, values = f"{where} AND d.id {AMONG}", (*values, listed(fitting))
        return where, values

    def shown(self, path: Path) -> Path:
        """Return a file path for display, with placeholders in place of secrets."""
        if not name_may_contain_secret(str(path)):
            return path
        return Path(self._redactor.redact_name(str(path)))

    @cached_property
    def _shown_of(self) -> Callable[[bytes], Path]:
        """Cached variant of `shown` for a path in bytes. The chunks of a file are usually loaded together."""

        def shown(path: bytes) -> Path:
            return self.shown(self._paths.path(path))

        return lru_cache(_PATHS)(shown)

    @cached_property
    def _redactor(self) -> Redactor:
        home = Home(self._db.path.parent)
        return Redactor(home.key() if home.key_file.is_file() else os.urandom(32))

    def _stored(self, row: Row) -> StoredChunk:
        *values, key, path, namespace, language, index, at, metadata = row
        fields: dict[str, Any] = dict(zip(_CHUNK, values, strict=True))
        fields["kind"] = ChunkKind(fields["kind"])
        chunk, shown_path = Chunk(**fields), self._shown_of(path)
        return StoredChunk(key, chunk, shown_path, namespace, language, index, at, _metadata(metadata))


def _and(where: str, values: tuple[Value, ...], named: Mapping[str, Sequence[Value]]) -> tuple[str, tuple[Value, ...]]:
    """Append SQL conditions: each column in `named` must have one of its values. Ignore columns without values."""
    clauses = [where, *(f"{column} IN ({placeholders(choices)})" for column, choices in named.items() if choices)]
    return " AND ".join(clauses), (*values, *(value for choices in named.values() for value in choices))


def _without_place(chunk: Chunk) -> Chunk:
    return replace(chunk, start_line=0, end_line=0, page=0, unit_start=0, unit_end=0)


def _metadata(value: str) -> dict[str, str]:
    return json.decode(value, type=dict[str, str])


_KEY: Final = "lower(replace(substr(name, 1 + length(rtrim(name, replace(name, '.', '')))), '_', ''))"
"""SQL form of `symbol_key`. SQLite uses the index `chunk_symbol` only if a query contains this exact expression."""
_NAMED: Final = "c.name <> '' AND c.unit NOT IN ('', 'module')"
_UNIT: Final = "d.path, c.unit, c.name, c.signature, c.unit_start"
"""Columns that identify a unit. They omit the namespace, so a file in several namespaces yields each unit only once."""
_LINES: Final = (
    "CASE WHEN c.unit_start THEN c.unit_start ELSE min(c.start_line) END, max(max(c.unit_end), max(c.end_line))"
)
"""SQL columns with the first and the last line of a unit.

Chunks stored by earlier versions lack the lines of their unit. The lines of the chunks are used instead.
"""
_SPELLED: Final = f"""c.name <> ? AND substr(c.name, -length(?) - 1) <> '.' || ?, c.name <> ?,
    CASE c.unit {" ".join(f"WHEN '{unit}' THEN {place}" for place, unit in enumerate(UNITS))} ELSE {len(UNITS)} END,
    length(c.name) - length(replace(c.name, '.', '')), length(c.name), d.path, c.unit_start"""
"""SQL sort order of units with equal keys. Each of its four parameters is the name that was searched."""
_OWNED: Final = "(instr(c.name, '.') = 0 OR instr(lower(replace(c.name, '_', '')), ?))"
_LAST: Final = "\U0010ffff"
_ASCII_UPPER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


def symbol_key(name: str) -> str:
    """Return the key of a unit: the last part of its name, without underscores, and in lower case.

    Example: `readfile` for `Store.read_file`. Only ASCII letters are changed to lower case, as in SQLite.
    """
    return last_name(name).replace("_", "").translate(_ASCII_UPPER)


class SymbolTable:
    """Queries for named units of code in indexed documents. A unit that is split into several chunks is one symbol."""

    def __init__(self, database: Database, documents: DocumentTable) -> None:
        self._db, self._documents, self._paths = database, documents, PathSeal(database)

    def with_keys(self, keys: Sequence[str], filters: DocumentFilter, owner: str = "") -> list[Symbol]:
        """Return the units with one of these keys, as computed by `symbol_key`.

        With `owner`, return a unit inside another unit only if its qualified name contains `owner` before a dot. For
        example, `store` matches `Store.open`.
        """
        condition = f"{_KEY} IN ({','.join('?' * len(keys))}) AND {_OWNED}"
        return self._select(condition, (*keys, f"{owner}."), filters)

    def named(self, name: str, filters: DocumentFilter, limit: int) -> list[Symbol]:
        """Return the units with the `symbol_key` of `name`. Best first: equal spelling, then classes, then short names.

        Use `limit`, because thousands of units can have one name, such as `__init__`. Reading all of them takes 50 ms.
        """
        best = (_SPELLED, (name,) * 4)
        return self._select(f"{_KEY} = ?", (symbol_key(name),), filters, limit, best)

    def beginning_with(self, key: str, filters: DocumentFilter, limit: int, owner: str = "") -> list[Symbol]:
        """Return units whose key begins with `key` and is longer. Units with the shortest names come first.

        `owner` has the same meaning as in `with_keys`. A limit of -1 means no limit.
        """
        condition = f"{_KEY} > ? AND {_KEY} < ? AND {_OWNED}"
        return self._select(condition, (key, key + _LAST, f"{owner}."), filters, limit)

    def of_file(self, path: Path) -> list[Symbol]:
        """Return the units of a file in order."""
        symbols = self._select("d.path = ?", (self._paths.stored(path),), DocumentFilter())
        return sorted(symbols, key=lambda symbol: (symbol.start_line, -symbol.end_line))

    def keys(self) -> list[str]:
        """Return the keys of all units, as computed by `symbol_key`, without duplicates."""
        return [key for (key,) in self._db.rows(f"SELECT DISTINCT {_KEY} FROM chunk WHERE name <> ''")]

    def count(self, filters: DocumentFilter) -> int:
        """Return the number of units that satisfy a filter."""
        where, values = self._documents.conditions(filters)
        return self._db.number(
            f"""SELECT count(*) FROM (SELECT 1 FROM chunk c JOIN document d ON d.id = c.document
                WHERE {_NAMED} AND {where} GROUP BY {_UNIT})""",
            values,
        )

    def _select(
        self,
        condition: str,
        values: tuple[Value, ...],
        filters: DocumentFilter,
        limit: int = -1,
        order: tuple[str, tuple[Value, ...]] = ("length(c.name), c.name", ()),
    ) -> list[Symbol]:
        where, filter_values = self._documents.conditions(filters)
        by, order_values = order
        rows = self._db.rows(
            f"""SELECT min(c.item), c.name, c.unit, c.signature, d.path, d.namespace, d.language, {_LINES},
                       max(c.doc)
                FROM chunk c JOIN document d ON d.id = c.document
                WHERE {_NAMED} AND {condition} AND {where}
                GROUP BY {_UNIT} ORDER BY {by} LIMIT ?""",
            (*values, *filter_values, *order_values, limit),
        )
        return list(map(self._symbol, rows))

    def _symbol(self, row: Row) -> Symbol:
        key, name, unit, signature, path, namespace, language, start, end, doc = row
        shown_path = self._documents.shown(self._paths.path(path))
        return Symbol(ids.show("chunk", key), name, unit, signature, shown_path, namespace, language, start, end, doc)
