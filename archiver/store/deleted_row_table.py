"""Rows of deleted exchanges, kept so that undo can restore every ID and text.

Session summaries are not kept. A new summary with a new ID is written after a deletion and after its undo.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec

from .database import AMONG, Database, listed, placeholders
from .observation_table import MODEL_PREFIX
from .summary_table import SummaryTable

_Rows = dict[str, list[dict[str, Any]]]
"""Rows by table name. Each row maps column names to values."""
_BY_ITEM: Final = (("item", "key"), ("observation", "item"), ("vector", "item"), ("token", "item"))
"""Tables with rows about an exchange or an observation, each with the column that contains the item's ID."""
_BY_EXCHANGE: Final = (("exchange", "item"), ("edited", "exchange"), ("confirmation", "exchange"))
_ORDER: Final = ("item", "exchange", "observation", "vector", "token", "edited")
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
            place = self._db.one("SELECT source, start_line, end_line, observed FROM exchange WHERE item = ?", (key,))
            if place is None:
                continue
            observations = self._select("observation", "exchange", [key])
            items = [key, *(row["item"] for row in observations if row["scope"] == "exchange")]
            rows: _Rows = {table: self._select(table, column, items) for table, column in _BY_ITEM}
            rows |= {table: self._select(table, column, [key]) for table, column in _BY_EXCHANGE}
            rows["confirmation"] += self._select("confirmation", "observation", items)
            self._db.run(
                "INSERT OR REPLACE INTO forgotten_item VALUES (?, ?, ?, ?, ?, ?, ?)",
                (key, deletion, *place, msgspec.msgpack.encode(rows)),
            )

    def restore(self, deletion: int) -> None:
        """Insert the rows of a deletion again, except where another exchange begins on the same line.

        The caller must schedule the sources to be read again. If another deletion also covers a restored exchange, that
        reading removes the exchange.
        """
        found: list[_Rows] = []
        kept = self._db.rows("SELECT source, start_line, rows FROM forgotten_item WHERE forgetting = ?", (deletion,))
        for source, line, packed in kept:
            rows: _Rows = msgspec.msgpack.decode(packed)
            taken = "SELECT EXISTS (SELECT 1 FROM exchange WHERE source = ? AND start_line = ?)"
            # Earlier versions could delete observations without their exchange. Such a bundle needs its exchange in the
            # database.
            if bool(rows.get("exchange")) != bool(self._db.number(taken, (source, line))):
                found.append(rows)
        self._insert(found)
        self._db.run("DELETE FROM forgotten_item WHERE forgetting = ?", (deletion,))

    def erase(self, source: int, is_erased: Callable[[int], bool]) -> None:
        """Remove the bundles of exchanges that contain erased lines of a source."""
        rows = self._db.rows("SELECT exchange, start_line, end_line FROM forgotten_item WHERE source = ?", (source,))
        for key, start, end in rows:
            if any(map(is_erased, range(start, end + 1))):
                self._db.run("DELETE FROM forgotten_item WHERE exchange = ?", (key,))

    def texts(self) -> Iterator[bytes]:
        """Yield the stored rows of each deleted exchange as bytes. Text in them is encoded as UTF-8."""
        for (packed,) in self._db.rows("SELECT rows FROM forgotten_item"):
            yield packed

    def _select(self, table: str, column: str, keys: Sequence[int]) -> list[dict[str, Any]]:
        names = self._columns(table)
        rows = self._db.rows(f"SELECT {', '.join(names)} FROM {table} WHERE {column} {AMONG}", (listed(keys),))
        return [dict(zip(names, row, strict=True)) for row in rows]

    def _columns(self, table: str) -> list[str]:
        return [name for (name,) in self._db.rows("SELECT name FROM pragma_table_info(?)", (table,))]

    def _insert(self, found: Sequence[_Rows]) -> None:
        for table in _ORDER:
            for row in (row for rows in found for row in rows.get(table, ())):
                if table == "exchange":
                    row["ordinal"] = _ORDINAL_OFFSET + row["item"]
                self._insert_row(table, row)
        keys = {row["key"] for rows in found for row in rows["item"]}
        confirmations = [row for rows in found for row in rows.get("confirmation", ())]
        for row in confirmations:
            both = "SELECT count(*) FROM item WHERE key IN (?, ?)"
            if self._db.number(both, (row["observation"], row["exchange"])) == 2:
                self._insert_row("confirmation", row)
        # An exchange that confirmed a restored observation may contain the same observation itself, so extract from it
        # again.
        again = {row["exchange"] for row in confirmations} - keys
        self._db.run(
            f"UPDATE exchange SET observed = NULL WHERE item {AMONG} AND observed NOT LIKE '{MODEL_PREFIX}%'",
            (listed(again),),
        )
        for session in {row["session"] for rows in found for row in rows["item"]}:
            self._summaries.outdate(session)

    def _insert_row(self, table: str, row: dict[str, Any]) -> None:
        columns = [name for name in self._columns(table) if name in row]
        self._db.run(
            f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({placeholders(columns)})",
            tuple(row[name] for name in columns),
        )
