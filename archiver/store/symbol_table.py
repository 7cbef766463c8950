"""Named units of code, such as functions and classes, which are queried from the table of chunks."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ...core import ids
from ...core.code import UNITS, Symbol, last_name
from ...core.document import DocumentFilter
from .database import Database, Row, Value
from .document_table import DocumentTable
from .path_seal import PathSeal

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

    def with_keys(self, keys: Sequence[str], wanted: DocumentFilter, owner: str = "") -> list[Symbol]:
        """Return the units with one of these keys, as computed by `symbol_key`.

        With `owner`, return a unit inside another unit only if its qualified name contains `owner` before a dot. For
        example, `store` matches `Store.open`.
        """
        condition = f"{_KEY} IN ({','.join('?' * len(keys))}) AND {_OWNED}"
        return self._select(condition, (*keys, f"{owner}."), wanted)

    def named(self, name: str, wanted: DocumentFilter, limit: int) -> list[Symbol]:
        """Return the units with the `symbol_key` of `name`. Best first: equal spelling, then classes, then short names.

        Use `limit`, because thousands of units can have one name, such as `__init__`. Reading all of them takes 50 ms.
        """
        best = (_SPELLED, (name,) * 4)
        return self._select(f"{_KEY} = ?", (symbol_key(name),), wanted, limit, best)

    def beginning_with(self, key: str, wanted: DocumentFilter, limit: int, owner: str = "") -> list[Symbol]:
        """Return units whose key begins with `key` and is longer. Units with the shortest names come first.

        `owner` has the same meaning as in `with_keys`. A limit of -1 means no limit.
        """
        condition = f"{_KEY} > ? AND {_KEY} < ? AND {_OWNED}"
        return self._select(condition, (key, key + _LAST, f"{owner}."), wanted, limit)

    def of_file(self, path: Path) -> list[Symbol]:
        """Return the units of a file in order."""
        found = self._select("d.path = ?", (self._paths.stored(path),), DocumentFilter())
        return sorted(found, key=lambda each: (each.start_line, -each.end_line))

    def keys(self) -> list[str]:
        """Return the keys of all units, as computed by `symbol_key`, without duplicates."""
        return [key for (key,) in self._db.rows(f"SELECT DISTINCT {_KEY} FROM chunk WHERE name <> ''")]

    def count(self, wanted: DocumentFilter) -> int:
        """Return the number of units that satisfy a filter."""
        where, values = self._documents.conditions(wanted)
        return self._db.number(
            f"""SELECT count(*) FROM (SELECT 1 FROM chunk c JOIN document d ON d.id = c.document
                WHERE {_NAMED} AND {where} GROUP BY {_UNIT})""",
            values,
        )

    def _select(
        self,
        condition: str,
        values: tuple[Value, ...],
        wanted: DocumentFilter,
        limit: int = -1,
        order: tuple[str, tuple[Value, ...]] = ("length(c.name), c.name", ()),
    ) -> list[Symbol]:
        where, more = self._documents.conditions(wanted)
        by, given = order
        rows = self._db.rows(
            f"""SELECT min(c.item), c.name, c.unit, c.signature, d.path, d.namespace, d.language, {_LINES},
                       max(c.doc)
                FROM chunk c JOIN document d ON d.id = c.document
                WHERE {_NAMED} AND {condition} AND {where}
                GROUP BY {_UNIT} ORDER BY {by} LIMIT ?""",
            (*values, *more, *given, limit),
        )
        return list(map(self._symbol, rows))

    def _symbol(self, row: Row) -> Symbol:
        key, name, unit, signature, path, namespace, language, start, end, doc = row
        shown = self._documents.shown(self._paths.path(path))
        return Symbol(ids.show("chunk", key), name, unit, signature, shown, namespace, language, start, end, doc)
