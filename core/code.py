"""Results of code search: symbols, lines, and the conversations that edited a unit of code, such as a function."""

from enum import StrEnum
from pathlib import Path
from typing import Final

from msgspec import Struct

from .conversation import Milliseconds

UNITS: Final = ("class", "interface", "enum", "type", "function", "method", "constant")
"""Kinds of units. Among equally good matches, kinds that are earlier in this tuple come first."""


class SymbolMatch(StrEnum):
    """Degree to which the name of a unit matches the searched name, best first.

    Case and underscores are ignored, so `parseArgs` also finds `parse_args`. Exact matches with the same spelling come
    first. `PART` and `SIMILAR` matches are searched only if there are no `EXACT` or `PREFIX` matches.
    """

    EXACT = "exact"
    PREFIX = "prefix"
    PART = "part"
    SIMILAR = "similar"


class Symbol(Struct, frozen=True):
    """Named unit of code, such as a function or a class.

    Attributes:
        id: ID of the first chunk of the unit.
        name: Qualified name, such as `Store.open`.
        unit: Kind of the unit, such as `method`.
        start_line: First line of the unit when the file was indexed, 1-based.
        doc: Documentation comment.
        match: Similarity of the name to the searched name.
    """

    id: str
    name: str
    unit: str
    signature: str
    source_file: Path
    namespace: str
    language: str
    start_line: int
    end_line: int
    doc: str = ""
    match: SymbolMatch = SymbolMatch.EXACT

    @property
    def last_name(self) -> str:
        """Last part of the qualified name, such as `open` for `Store.open`."""
        return last_name(self.name)


class Symbols(Struct, frozen=True):
    """Units with the name `name`, or with similar names, best first. `limited` is true if more units match."""

    name: str
    symbols: tuple[Symbol, ...] = ()
    limited: bool = False


class CodeLine(Struct, frozen=True):
    """Line of a file that contains a text literally.

    Attributes:
        id: ID of the chunk with the line.
        name: Qualified name of the unit with the line, or an empty text. `unit` is its kind.
        line: Number of the line when the file was indexed, 1-based, or 0 if the format has no lines.
        before: Lines before the line.
        after: Lines after the line.
    """

    id: str
    name: str
    unit: str
    source_file: Path
    namespace: str
    language: str
    line: int
    before: tuple[str, ...]
    text: str
    after: tuple[str, ...]


class CodeLines(Struct, frozen=True):
    """Lines that contain `text`, grouped by file. `limited` is true if more lines may match."""

    text: str
    lines: tuple[CodeLine, ...] = ()
    limited: bool = False


class CodeStatus(Struct, frozen=True):
    """State of the index of a folder.

    Attributes:
        files: Number of indexed files.
        newest: Newest modification time of an indexed file, or None.
        is_stale: True if a file was changed, deleted or added since it was indexed.
    """

    files: int = 0
    symbols: int = 0
    newest: Milliseconds | None = None
    is_stale: bool = False


class EditBasis(StrEnum):
    """Evidence that an exchange edited a unit. Line numbers are not used as evidence, because they change.

    `TEXT`: the exchange wrote a line that only this unit of the file contains. `NAME`: the exchange wrote the
    declaration of the unit, but the unit contains none of the other lines that the exchange wrote.
    """

    TEXT = "text"
    NAME = "name"


class UnitEdit(Struct, frozen=True):
    """Exchange that edited a unit of code.

    Attributes:
        id: ID of the exchange.
        lines: Number of the unit's lines that the exchange wrote.
    """

    id: str
    session_id: str
    session_title: str
    at: Milliseconds | None
    basis: EditBasis
    lines: int = 0


class EditedUnit(Struct, frozen=True):
    """Unit of code that an exchange edited. `id` is the ID of the unit's first chunk."""

    id: str
    name: str
    unit: str
    source_file: Path
    start_line: int
    end_line: int
    basis: EditBasis


def last_name(name: str) -> str:
    """Return the last part of a qualified name, such as `open` for `Store.open`."""
    return name.rpartition(".")[2]
