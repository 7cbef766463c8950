"""SuppressionList: what was forgotten is known again wherever it comes from, by keyed marks that say nothing of it.

A line that carries an id or a time is known by its content wherever it stands; any other only where it stood, in the
agent's file or in its copy, because two people may say the same. A record is known by its id, which forks and resumed
sessions repeat in lines of their own.

A line of JSON also has the mark of its canonical form, so that it stays forgotten when its file is written again with
other whitespace or another order of keys.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path, PurePath

import orjson

from ..files.compression import opened
from ..files.lines import Line, is_blanked, split
from ..store import Store

_OWN = re.compile(rb"\d{10,}|\d\d:\d\d:\d\d|[0-9a-f]{8}-[0-9a-f]{4}-")
"""An id or a time, which no other line shares by chance."""
_TOGETHER = 5_000


class SuppressionList:
    """Knows what was forgotten in one archive; with `erased` only what may not even be in the copies."""

    def __init__(self, store: Store, key: bytes, *, erased: bool = False) -> None:
        """Raises `KeyLost` where something was forgotten under another key."""
        store.tombstones.check(key)
        self._store, self._key, self._erased = store, key, erased
        self._archive = store.home.archive

    def __bool__(self) -> bool:
        return self._store.tombstones.exist(erased=self._erased)

    def line(self, paths: Sequence[Path], line: Line) -> set[int]:
        """Return the marks of a line: of its bytes and of its canonical form.

        A line without an id or a time has a mark for its place in each of the files that `paths` name.
        """
        data = line.data + b"\n"
        if _OWN.search(data):
            return {self._mark(b"line", data), self._mark(b"line", _canonical(data))}
        return {self._place(path, line.number) for path in paths}

    def _place(self, path: Path, number: int) -> int:
        # An archive may be moved, and is the same.
        return self.place(path.relative_to(self._archive) if path.is_relative_to(self._archive) else path, number)

    def place(self, path: PurePath | str, number: int) -> int:
        """The mark of a line by where it stands; the path of a copy is relative to the archive."""
        return self._mark(b"place", os.fsencode(path) + b"\0%d" % number)

    def record(self, record: str) -> int:
        """The mark of a record by its id."""
        return self._mark(b"record", record.encode("utf-8", "surrogatepass"))

    def file(self, path: Path) -> int:
        """The mark of a file by its path."""
        return self._mark(b"file", os.fsencode(path))

    def lines(self, path: Path, lines: Iterable[Line]) -> set[int]:
        """The numbers of those lines that were forgotten; those that were blanked in the copy among them."""
        found: set[int] = set()
        waiting = iter(lines)
        while part := list(islice(waiting, _TOGETHER)):
            marks = {line.number: self.line([path], line) for line in part}
            known = self._store.tombstones.known(set[int]().union(*marks.values()), erased=self._erased)
            found |= {number for number, told in marks.items() if told & known}
            found |= {line.number for line in part if is_blanked(line.data)}
        return found

    def is_all_of(self, path: Path) -> bool:
        """Whether an agent's file says nothing but what was forgotten. Raises `OSError`."""
        with opened(path) as file:
            rows = list(split(file))
        return bool(rows) and len(self.lines(path, rows)) == len(rows)

    def records(self, records: Mapping[str, int], *, erased: bool = False) -> set[int]:
        """The lines of those records that were forgotten, or erased."""
        marks = {self.record(record): line for record, line in records.items()}
        return {marks[mark] for mark in self._store.tombstones.known(marks, erased=self._erased or erased)}

    def without(self, path: Path, rows: Iterable[bytes]) -> Iterator[bytes]:
        """Lines with their ends, without those that were forgotten."""
        if not self:
            yield from rows
            return
        for row in rows:
            line = Line(0, 0, len(row), row.removesuffix(b"\n").removesuffix(b"\r"), complete=True, oversized=False)
            if not self._store.tombstones.known(self.line([path], line), erased=self._erased):
                yield row

    def _mark(self, kind: bytes, told: bytes) -> int:
        digest = hashlib.blake2b(told, digest_size=8, key=self._key, person=kind).digest()
        return int.from_bytes(digest, "big", signed=True)


def _canonical(line: bytes) -> bytes:
    """Return JSON with sorted keys and without whitespace, and any other line unchanged."""
    try:
        return orjson.dumps(orjson.loads(line), option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)
    except ValueError:
        return line
