"""Rows of forgotten exchanges: kept while the deletion can be undone, so that undo restores every ID and text."""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Final, cast

import msgspec

from .database import AMONG, Database, Value, listed
from .observation_table import MODEL_PREFIX
from .summary_table import SummaryTable

_Rows = dict[str, list[dict[str, Any]]]
"""Rows by table, each as its columns."""
_OF_ITEMS: Final = (
    ("item", "key"),
    ("observation", "item"),
    ("summary", "item"),
    ("vector", "item"),
    ("token", "item"),
)
"""Tables whose rows belong to an observation, with the column that names it."""
_OF_EXCHANGE: Final = (("exchange", "item"), ("edited", "exchange"), ("confirmation", "exchange"))
_ORDER: Final = ("item", "exchange", "observation", "summary", "vector", "token", "edited")
"""Each table after those that it references."""


class DeletedRowTable:
    """Reads and writes the rows of forgotten exchanges, one set for each exchange. The caller opens the transaction."""

    def __init__(self, database: Database, summaries: SummaryTable) -> None:
        self._db, self._summaries = database, summaries

    def keep(self, forgetting: int, exchanges: Sequence[int]) -> None:
        """Copy what is about to be deleted: exchanges with all that depends on them.

        The summary of a session goes with whatever it quotes, so it is copied as well.
        """
        self._keep_summaries(forgetting, exchanges)
        for key in exchanges:
            place = self._db.one("SELECT source, start_line, end_line, observed FROM exchange WHERE item = ?", (key,))
            if place is None:
                continue
            *lines, observed = place
            learned = [
                row["item"] for row in self._select("observation", "exchange", [key]) if row["scope"] == "exchange"
            ]
            rows = self._of_items([key, *learned])
            rows |= {table: self._select(table, column, [key]) for table, column in _OF_EXCHANGE}
            self._put(key, forgetting, *lines, observed, rows)

    def _keep_summaries(self, forgetting: int, exchanges: Sequence[int]) -> None:
        """Copy the summaries of the sessions of these exchanges, as of line 0: they quote any line."""
        summaries = self._db.rows(
            f"""SELECT DISTINCT s.item, e.source FROM item i JOIN summary s ON s.session = i.session
               JOIN observation o ON o.item = s.item JOIN exchange e ON e.item = o.exchange WHERE i.key {AMONG}""",
            (listed(exchanges),),
        )
        for item, source in summaries:
            self._put(item, forgetting, source, 0, 0, None, self._of_items([cast(int, item)]))

    def _of_items(self, items: Sequence[int]) -> _Rows:
        rows: _Rows = {table: self._select(table, column, items) for table, column in _OF_ITEMS}
        return rows | {"confirmed": self._select("confirmation", "observation", items)}

    def _put(self, *values: Any) -> None:
        *columns, rows = values
        self._db.run(
            "INSERT OR REPLACE INTO forgotten_item VALUES (?, ?, ?, ?, ?, ?, ?)",
            (*columns, msgspec.msgpack.encode(rows)),
        )

    def restore(self, forgetting: int) -> None:
        """Insert the rows that were kept for a deletion, where their place is still free, and drop the kept copy.

        The caller has the sources read again: whatever else hides an exchange deletes it then.
        """
        rows = self._db.rows(
            "SELECT source, start_line, rows FROM forgotten_item WHERE forgetting = ?",
            (forgetting,),
        )
        found: list[_Rows] = []
        sources: set[int] = set()
        for source, line, packed in rows:
            kept: _Rows = msgspec.msgpack.decode(cast(bytes, packed))
            if not line:
                found.append(kept)
            elif "exchange" in kept:
                taken = self._db.number(
                    "SELECT EXISTS (SELECT 1 FROM exchange WHERE source = ? AND start_line = ?)", (source, line)
                )
                if not taken:
                    found.append(kept)
                    sources.add(cast(int, source))
        self._insert(found)
        self._number(sources)
        self._db.run("DELETE FROM forgotten_item WHERE forgetting = ?", (forgetting,))

    def erase(self, source: int, goes: Callable[[int], bool]) -> None:
        """Drop the kept rows of a source that are on erased lines."""
        rows = self._db.rows("SELECT exchange, start_line, end_line FROM forgotten_item WHERE source = ?", (source,))
        for key, start, end in cast("list[tuple[int, int, int]]", rows):
            if any(map(goes, range(start, end + 1))):
                self._db.run("DELETE FROM forgotten_item WHERE exchange = ?", (key,))

    def texts(self) -> Iterator[bytes]:
        """Yield the packed rows of each exchange, whose text is UTF-8."""
        for (packed,) in self._db.rows("SELECT rows FROM forgotten_item"):
            yield cast(bytes, packed)

    def _select(self, table: str, column: str, keys: Sequence[int]) -> list[dict[str, Any]]:
        names = self._columns(table)
        rows = self._db.rows(f"SELECT {', '.join(names)} FROM {table} WHERE {column} {AMONG}", (listed(keys),))
        return [dict(zip(names, row, strict=True)) for row in rows]

    def _columns(self, table: str) -> list[str]:
        return [str(name) for (name,) in self._db.rows("SELECT name FROM pragma_table_info(?)", (table,))]

    def _insert(self, found: Sequence[_Rows]) -> None:
        owners = [row["exchange"] for rows in found for row in rows["observation"]]
        here = {row["item"] for rows in found for row in rows.get("exchange", ())}
        here |= {key for (key,) in self._db.rows(f"SELECT item FROM exchange WHERE item {AMONG}", (listed(owners),))}
        for rows in found:  # a summary belongs to the first exchange of its session, which may still be forgotten
            gone = {row["item"] for row in rows["observation"] if row["exchange"] not in here}
            for name, column in _OF_ITEMS:
                rows[name] = [row for row in rows[name] if row[column] not in gone]
            self._summaries.drop([row["session"] for row in rows["summary"]])
        for table in _ORDER:
            for row in (row for rows in found for row in rows.get(table, ())):
                if table == "exchange":
                    row["ordinal"] = -1 - row["item"]
                self._insert_row(table, row)
        keys = [row["key"] for rows in found for row in rows["item"]]
        for row in (row for rows in found for row in rows.get("confirmation", ())):
            if self._db.number("SELECT EXISTS (SELECT 1 FROM observation WHERE item = ?)", (row["observation"],)):
                self._insert_row("confirmation", row)
        # What confirmed it may have learned the same by itself meanwhile: the rules look at it again.
        again = {row["exchange"] for rows in found for row in rows["confirmed"]} - {*keys}
        self._db.run(
            f"""UPDATE exchange SET observed = NULL WHERE item {AMONG} AND observed NOT LIKE '{MODEL_PREFIX}%'""",
            (listed(again),),
        )
        sessions = {row["session"] for rows in found for row in rows["item"]}
        for session in sessions:
            self._summaries.outdate(session)

    def _insert_row(self, table: str, row: dict[str, Any]) -> None:
        columns = [name for name in self._columns(table) if name in row]
        values = cast("list[Value]", [row[name] for name in columns])
        self._db.run(
            f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({','.join('?' * len(columns))})",
            tuple(values),
        )

    def _number(self, sources: Collection[int]) -> None:
        """Give the exchanges of these sources ordinals in the order of their lines."""
        for source in sources:
            rows = self._db.rows("SELECT item FROM exchange WHERE source = ? ORDER BY start_line", (source,))
            keys = [cast(int, key) for (key,) in rows]
            last = self._db.number("SELECT max(ordinal) FROM exchange WHERE source = ?", (source,))
            for offset in (max(last, 0) + 1, 0):  # first out of the way: an ordinal is unique at every moment
                self._db.run_many(
                    "UPDATE exchange SET ordinal = ? WHERE item = ?",
                    [(ordinal + offset, key) for ordinal, key in enumerate(keys)],
                )
