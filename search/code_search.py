"""Code search in the document index: lines by literal text, symbols by name, and chunks by semantic search."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, Self

from msgspec.structs import replace

from ..archiver.redaction import placeholders_in
from ..archiver.store import Store
from ..archiver.store.document_table import symbol_key
from ..core.document import (
    UNITS,
    ChunkKind,
    CodeLine,
    CodeLines,
    DocumentFilter,
    StoredChunk,
    Symbol,
    SymbolMatch,
    Symbols,
    last_name,
)
from ..core.errors import InvalidInput, InvalidLimit
from ..core.home import Home
from ..core.query import CONTEXT_MAX, LIMIT_MAX, Mode
from .index.generation import Generations
from .model.embedder import DEFAULT_MODEL, load
from .rank.item_finder import DocumentFinder, FoundChunk

_SEPARATORS: Final = ("::", "->", "#", "/")
"""Separators in qualified names that are replaced with `.`, such as `::` in `Store::open`."""
_PACKAGE_FILES: Final = frozenset({"__init__", "index", "mod"})
"""Names of files that add no name to the module path. For example, the module of `json/__init__.py` is `json`."""
_PART_MIN: Final = 3
"""Minimum length of a searched name to find names that contain it (`SymbolMatch.PART`)."""
_SIMILARITY: Final = 0.7
"""Minimum similarity of a name for `SymbolMatch.SIMILAR`, 0 to 1. One wrong character of six gives 0.83."""
_CANDIDATES: Final = 200
"""Maximum number of inexact matches to read: units whose name begins with the searched name, or similar names."""
_CODE: Final = DocumentFilter(kinds=(ChunkKind.CODE,))
_LINE: Final = 200
"""Maximum number of characters to show of a line."""


class CodeSearch:
    """Search in the indexed code by name, literal text or description.

    Each search takes a `DocumentFilter`. If the filter has no `kinds`, only chunks of code are searched.
    """

    def __init__(self, store: Store, finder: Callable[[], DocumentFinder]) -> None:
        """Use `finder` for semantic search. Only `units` calls it, so other searches do not load the vector index."""
        self._store, self._finder = store, finder
        self._keys: tuple[int, list[str]] = (-1, [])
        """Sequence number of the last change that was read, and the normalised names (`symbol_key`) of all units."""

    @classmethod
    def of_home(cls, store: Store, home: Home, model: str | None = None) -> Self:
        """Return a search in an open store. The model `model` embeds queries until an index is published."""
        return cls(store, lambda: DocumentFinder(store, Generations(home.index), load(model or DEFAULT_MODEL)))

    def symbols(self, name: str, scope: DocumentFilter | None = None, *, limit: int = 10) -> Symbols:
        """Return the units whose names match a name, best first.

        Equal names come first, then names that begin with the searched name. If there are none, return names that
        contain the searched name, or else similar names.

        The name may be qualified, as in `Store.open`, `Store::open` or `Store#open()`.

        Raises:
            InvalidInput: The name has no letter or digit, or the limit is not 1 to `LIMIT_MAX`.
        """
        _check_limit(limit)
        plain, filter_ = _normalised(name), _of_code(scope)
        key = symbol_key(plain)
        if not key:
            raise InvalidInput(f"Invalid name: {name!r}", hint="Give the name of a function, class or other unit.")
        symbols = self._found(plain, key, filter_, limit)
        return Symbols(name, tuple(symbols[:limit]), limited=len(symbols) > limit)

    def lines(self, text: str, scope: DocumentFilter | None = None, *, limit: int = 10, context: int = 2) -> CodeLines:
        """Return the lines that contain a text literally, sorted by file, each with its surrounding lines.

        Case is ignored. The search reads the indexed text of a file, even if the file has changed since.

        Raises:
            InvalidInput: The text is empty, has several lines or contains a secret, or `limit` or `context` is out of
                range.
        """
        _check_limit(limit)
        if not 0 <= context <= CONTEXT_MAX:
            raise InvalidInput(f"Invalid number of context lines: {context}. Give 0 to {CONTEXT_MAX}")
        if not text.strip() or "\n" in text:
            raise InvalidInput("The text must be part of one line", hint="Give some characters of the line.")
        if placeholders_in(text):
            raise InvalidInput(
                "The text contains a secret, which the archive redacts", hint="Search for words near the secret."
            )
        matches = list(islice(self._lines(text, _of_code(scope), context), limit + 1))
        return CodeLines(text, tuple(matches[:limit]), limited=len(matches) > limit)

    def units(
        self, query: str, scope: DocumentFilter | None = None, *, limit: int = 10, mode: Mode = Mode.BOTH
    ) -> list[FoundChunk]:
        """Search chunks of code by words and embeddings, and return the matching chunks, best first.

        Raises:
            InvalidInput: The query is empty, or the limit is not 1 to `LIMIT_MAX`.
        """
        _check_limit(limit)
        if not query.strip():
            raise InvalidInput("Query cannot be empty", hint="Give a question or keywords.")
        return list(islice(self._finder().find(query, _of_code(scope), mode), limit))

    def _found(self, plain: str, key: str, scope: DocumentFilter, limit: int) -> list[Symbol]:
        """Return the units of the best kind of match that exists: by qualified name, by last name, or by similar name.

        If the best kind of match exists only outside the filter, return no units. A filter therefore never adds
        results.
        """
        kinds: list[Callable[[DocumentFilter], list[Symbol]]] = [
            lambda chosen: self._named(plain, chosen, limit),
            lambda chosen: self._similar(key, chosen),
        ]
        if "." in plain:
            kinds.insert(0, lambda chosen: self._named(plain, chosen, limit, qualified=True))
        for kind in kinds:
            if symbols := kind(scope):
                return sorted(symbols, key=lambda symbol: _rank(plain, symbol))
            if scope != _CODE and kind(_CODE):
                break
        return []

    def _named(self, plain: str, scope: DocumentFilter, limit: int, *, qualified: bool = False) -> list[Symbol]:
        """Return the units with the normalised name, followed by units whose name begins with it.

        The second group is left out if more than `limit` units have exactly this name.

        With `qualified`, return only units of the module or class in the name, such as `json` in `json.dumps`.
        """

        def chosen(symbols: list[Symbol], match: SymbolMatch) -> list[Symbol]:
            return [replace(symbol, match=match) for symbol in symbols if not qualified or _within(plain, symbol)]

        table, key, owner = self._store.symbols, symbol_key(plain), symbol_key(plain.rpartition(".")[0])
        same = table.with_keys([key], scope, owner) if qualified else table.named(plain, scope, limit + 1)
        matches = chosen(same, SymbolMatch.EXACT)
        if len(matches) <= limit:
            most = -1 if qualified else _CANDIDATES
            begun = table.beginning_with(key, scope, most, owner if qualified else "")
            matches += chosen(begun, SymbolMatch.PREFIX)
        return matches

    def _similar(self, key: str, scope: DocumentFilter) -> list[Symbol]:
        """Return the units whose normalised names contain `key`, or else units with similar names."""
        if containing := [name for name in self._all_keys() if len(key) >= _PART_MIN and key in name]:
            similar = sorted(containing, key=lambda name: (len(name), name))[:_CANDIDATES]
            match = SymbolMatch.PART
        else:
            from rapidfuzz import process  # few searches need it
            from rapidfuzz.distance import OSA

            scorer = OSA.normalized_similarity
            alike = process.extract(key, self._all_keys(), scorer=scorer, score_cutoff=_SIMILARITY, limit=_CANDIDATES)
            alike.sort(key=lambda match: (-match[1], abs(len(match[0]) - len(key)), match[0]))
            similar, match = [name for name, _, _ in alike], SymbolMatch.SIMILAR
        places = {name: position for position, name in enumerate(similar)}
        symbols = self._store.symbols.with_keys(similar, scope)
        symbols.sort(key=lambda symbol: places[symbol_key(symbol.name)])
        return [replace(symbol, match=match) for symbol in symbols]

    def _all_keys(self) -> list[str]:
        last = self._store.changes.last()
        if self._keys[0] != last:
            self._keys = last, self._store.symbols.keys()
        return self._keys[1]

    def _lines(self, text: str, scope: DocumentFilter, context: int) -> Iterator[CodeLine]:
        """Yield each line with a text once: in one namespace, and in one of two chunks that overlap.

        The number of a line is 0 in a document without lines, where overlaps cannot be recognised.
        """
        done: tuple[Path, str, int] | None = None
        # Return each line of a file once, even if the file is in several namespaces.
        rows: dict[tuple[Path, int, int, str], str] = {}
        for stored in self._store.documents.containing(text, scope):
            for number, row in _numbered(stored):
                copied = stored.source_file, stored.index, number, row
                if rows.setdefault(copied, stored.namespace) != stored.namespace:
                    continue
                location = stored.source_file, stored.namespace, number
                # Consecutive chunks of prose overlap.
                repeated = number > 0 and done is not None and done[:2] == location[:2] and done[2] >= number
                if text.lower() in row.lower() and not repeated:
                    yield self._line(stored, number, row, text, context)
                    done = location

    def _line(self, stored: StoredChunk, number: int, row: str, text: str, context: int) -> CodeLine:
        around: dict[int, str] = {}
        if context and number:
            for neighbour in self._store.documents.beside(stored, number - context, number + context):
                around.update(_numbered(neighbour))
        return CodeLine(
            id=stored.id,
            name=stored.chunk.name,
            unit=stored.chunk.unit,
            source_file=stored.source_file,
            namespace=stored.namespace,
            language=stored.language,
            line=number,
            before=tuple(_shortened(around.get(at, "")) for at in range(max(1, number - context), number)),
            text=_shortened(row, text),
            after=tuple(_shortened(around[at]) for at in range(number + 1, number + context + 1) if at in around),
        )


def _check_limit(limit: int) -> None:
    if not 1 <= limit <= LIMIT_MAX:
        raise InvalidLimit(limit)


def _of_code(scope: DocumentFilter | None) -> DocumentFilter:
    """Return the filter, restricted to chunks of code if it names no other kinds of chunks."""
    scope = scope or _CODE
    return scope if scope.kinds else replace(scope, kinds=(ChunkKind.CODE,))


def _normalised(name: str) -> str:
    """Return a qualified name with `.` as separator and without `()`, such as `Store.open` for `Store::open()`."""
    name = name.strip().removesuffix("()")
    for separator in _SEPARATORS:
        name = name.replace(separator, ".")
    return name.strip(".")


def _within(name: str, symbol: Symbol) -> bool:
    """Return whether a unit belongs to the class or module in a qualified name, such as `json` in `json.dumps`."""
    modules = [part for part in symbol.source_file.with_suffix("").parts if part not in _PACKAGE_FILES]
    parts = [symbol_key(part) for part in (*modules, *symbol.name.split(".")[:-1])]
    owners = [symbol_key(part) for part in name.split(".")[:-1]]
    return parts[-len(owners) :] == owners


def _rank(name: str, symbol: Symbol) -> tuple[object, ...]:
    """Return the sort key of a match.

    All matches of kind `PART` have the same key, so sorting keeps their order. The same applies to `SIMILAR`.
    """
    order = tuple(SymbolMatch).index(symbol.match)
    if symbol.match in {SymbolMatch.PART, SymbolMatch.SIMILAR}:
        return (order,)
    spelled = symbol.name == name or symbol.name.endswith(f".{name}")
    unit = UNITS.index(symbol.unit) if symbol.unit in UNITS else len(UNITS)
    length = len(last_name(symbol.name)) if symbol.match is SymbolMatch.PREFIX else 0
    location = (symbol.name.count("."), len(symbol.name), str(symbol.source_file), symbol.start_line)
    return (order, not spelled, symbol.name != name, length, unit, *location)


def _numbered(stored: StoredChunk) -> Sequence[tuple[int, str]]:
    """Return a (line number, text) pair for each line of a chunk.

    If a chunk was split within a long line, its line numbers are unknown. All its lines then get the number
    `start_line`.
    """
    chunk, rows = stored.chunk, stored.chunk.text.split("\n")
    if len(rows) != chunk.end_line - chunk.start_line + 1:
        return [(chunk.start_line, row) for row in rows]
    return list(enumerate(rows, chunk.start_line))


def _shortened(row: str, text: str = "") -> str:
    """Return a line, or the `_LINE` characters of a long line around the first occurrence of `text`."""
    row = row.rstrip()
    if len(row) <= _LINE:
        return row
    at = max(row.lower().find(text.lower()), 0)
    start = max(0, min(at + min(len(text), _LINE) // 2 - _LINE // 2, len(row) - _LINE))
    before, after = "…" if start else "", "…" if start + _LINE < len(row) else ""
    return f"{before}{row[start + len(before) : start + _LINE - len(after)]}{after}"
