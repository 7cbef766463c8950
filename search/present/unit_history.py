"""Links between units of code and the exchanges that edited them.

An edit belongs to a unit if the edit wrote lines that occur in the unit, or wrote its declaration. Line numbers are not
compared, because they change. An edit whose text was replaced later is not found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.reading.written_edit import read_written_lines
from ...core import ids
from ...core.code import EditBasis, EditedUnit, Symbol, UnitEdit
from ...core.document import ChunkKind, DocumentFilter
from .session_names import SessionNames

if TYPE_CHECKING:
    from ...archiver.copies.raw import RawArchive
    from ...archiver.store import Edit, Store
    from ...core.document import Chunk
    from ...core.results import Detail

_EDITS_MAX, _SHOWN = 200, 10
"""Maximum number of edits of a file to read, newest first, and of linked edits or units to show."""
_DISTINCTIVE_MIN = 6
"""Minimum number of letters and digits of a line that can identify a unit. A line such as `else:` cannot."""
_COPIED_MIN = 2
"""Minimum number of matching lines if the edited file has another path, for example in another clone."""


class _UnitName(NamedTuple):
    unit: str
    name: str
    signature: str
    start_line: int

    @classmethod
    def of(cls, chunk: Chunk) -> Self:
        """Return the name of the unit of a chunk."""
        return cls(chunk.unit, chunk.name, chunk.signature, chunk.unit_start)


class _FileUnits(Struct, frozen=True):
    """Units of one file, and the unit of each line that occurs in only one unit."""

    units: Mapping[_UnitName, Symbol]
    owners: Mapping[str, _UnitName]

    def edited_by(self, lines: Iterable[str], *, same_file: bool) -> dict[_UnitName, tuple[EditBasis, int]]:
        """Return the units that contain the written lines, each with the basis and the number of matching lines."""
        rows = list(lines)
        counts: dict[_UnitName, int] = {}
        for row in rows:
            if owner := self.owners.get(row):
                counts[owner] = counts.get(owner, 0) + 1
        least = 1 if same_file else _COPIED_MIN
        found = {owner: (EditBasis.TEXT, count) for owner, count in counts.items() if count >= least}
        if same_file:
            written = [" ".join(row.split()) for row in rows]
            for owner, symbol in self.units.items():
                if owner not in found and (head := _declaration(symbol)) and any(head in row for row in written):
                    found[owner] = EditBasis.NAME, 0
        return found


class UnitHistory:
    """Lookup of the exchanges that edited a unit, and of the units that an exchange edited."""

    def __init__(self, store: Store, raw: RawArchive) -> None:
        self._store, self._raw, self._names = store, raw, SessionNames(store)

    def linked(self, details: Sequence[Detail]) -> tuple[Detail, ...]:
        """Return the details, with edited units added to those of exchanges, and edits added to those of units."""
        return tuple(map(self._linked, details))

    def _linked(self, detail: Detail) -> Detail:
        key = ids.key(detail.id)
        if key is None:
            return detail
        if detail.kind == ChunkKind.CODE:
            return replace(detail, edits=self.edits_of(key))
        if detail.kind in {"exchange", "observation"} and detail.observation.files_modified:
            stored = self._store.observations.load([key]).get(key)
            return replace(detail, units=self.units_of(stored.exchange if stored else key))
        return detail

    def edits_of(self, chunk: int) -> tuple[UnitEdit, ...]:
        """Return the exchanges that edited the unit of a chunk, newest first."""
        stored = self._store.documents.load([chunk]).get(chunk)
        if stored is None or not stored.chunk.name:
            return ()
        wanted = _UnitName.of(stored.chunk)
        path, found = stored.source_file, list[UnitEdit]()
        paths = {path, *self._store.documents.former_paths(path, stored.namespace)}
        units = self._units(path)
        for edit in self._store.edits.of_names(sorted({each.name for each in paths}), _EDITS_MAX):
            edited = units.edited_by(self._lines(edit), same_file=_is_same(edit, paths))
            if wanted in edited:
                basis, lines = edited[wanted]
                session = self._store.sessions.load(edit.session)
                title = self._names.of_all([edit.session])[edit.session].title
                public = ids.show("exchange", edit.exchange)
                found.append(UnitEdit(public, session.native_id, title, edit.started, basis, lines))
            if len(found) == _SHOWN:
                break
        return tuple(found)

    def units_of(self, exchange: int) -> tuple[EditedUnit, ...]:
        """Return the indexed units that an exchange edited, in the order of their files and lines."""
        edits = self._store.edits.of_exchanges([exchange])
        paths = self._store.documents.paths_named({Path(edit.absolute_path).name for edit in edits})
        found: dict[tuple[Path, _UnitName], EditedUnit] = {}
        for edit in edits if paths else ():
            name, same = Path(edit.absolute_path).name, {path for path in paths if _is_same(edit, paths[path])}
            named = [path for path, known in paths.items() if any(each.name == name for each in known)]
            # If the edited file is not indexed, compare files of the same name, such as those of another clone.
            for path in same or named:
                units = self._units(path)
                edited = units.edited_by(self._lines(edit), same_file=path in same)
                for owner, (basis, _) in edited.items():
                    symbol = units.units[owner]
                    place = symbol.source_file, symbol.start_line, symbol.end_line
                    found[path, owner] = EditedUnit(symbol.id, symbol.name, symbol.unit, *place, basis)
        ordered = sorted(found.values(), key=lambda each: (str(each.source_file), each.start_line))
        return tuple(ordered[:_SHOWN])

    def _lines(self, edit: Edit) -> frozenset[str]:
        stored = self._store.exchanges.load([edit.exchange]).get(edit.exchange)
        return read_written_lines(stored.exchange, edit, self._raw)[1] if stored else frozenset()

    def _units(self, path: Path) -> _FileUnits:
        symbols = {each.id: each for each in self._store.symbols.of_file(path)}
        units: dict[_UnitName, Symbol] = {}
        owners: dict[str, _UnitName | None] = {}
        for stored in self._store.documents.select(DocumentFilter(source_files=(path,))):
            name = _UnitName.of(stored.chunk)
            if stored.id in symbols:
                units[name] = symbols[stored.id]
            for row in map(str.strip, stored.chunk.text.split("\n")):
                owners[row] = name if owners.get(row, name) == name else None
        distinct = {row: name for row, name in owners.items() if name in units and _is_distinctive(row)}
        return _FileUnits(units, {row: name for row, name in distinct.items() if name is not None})


def _is_same(edit: Edit, paths: Iterable[Path]) -> bool:
    """Return whether an edit changed a file at one of these paths: the present and former paths of the file."""
    return edit.absolute_path in map(str, paths)


def _is_distinctive(row: str) -> bool:
    return sum(map(str.isalnum, row)) >= _DISTINCTIVE_MIN


def _declaration(symbol: Symbol) -> str:
    """Return the beginning of a declaration up to its name, such as `def open`, or an empty text."""
    before, name, _ = symbol.signature.partition(symbol.last_name)
    return f"{before}{name}" if before.strip() and name else ""
