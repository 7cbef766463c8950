"""Suppression list, which recognises deleted lines by their keyed hashes when they occur again.

- A line with an ID or a time is recognised by its content, in any file.
- Any other line is recognised only in its original file or copy, because two users can write the same text.
- A copy of a whole exchange, or of its beginning, is recognised by its content and position in related sessions, even
  if its lines have other IDs and times. The hashes of its own lines are then added to the list.
- A record is recognised by its ID, even if a fork or resumed session repeats it on a different line.

A JSON line also has a keyed hash of its canonical form. Therefore, the line stays deleted if an agent rewrites the file
with other whitespace or another order of keys.
"""

import hashlib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

import orjson

from ...core.conversation import Exchange
from ..files.lines import Line, is_blanked
from ..reading.lineage import Beginning, beginnings
from ..store import Store

IDENTIFYING: Final = re.compile(rb"\d{10,}|\d\d:\d\d:\d\d|[0-9a-f]{8}-[0-9a-f]{4}-")
"""Pattern for an ID or a time, which makes a line unique."""
_BATCH: Final = 5_000
"""Number of lines whose hashes are looked up with one query."""


class SuppressionList:
    """List of the deleted lines of one archive.

    With `erased`, it contains only the lines that must also be erased from the copies.
    """

    def __init__(self, store: Store, key: bytes, *, erased: bool = False) -> None:
        """Load the tombstones. Raises `KeyLost` if another key was used for them."""
        store.tombstones.check_key(key)
        self._store, self._key, self._erased = store, key, erased
        self._archive = store.home.archive

    def __bool__(self) -> bool:
        return self._store.tombstones.has_deletions(erased=self._erased)

    def hashes(self, paths: Sequence[Path], line: Line) -> set[int]:
        """Return the keyed hashes of a line.

        A line without an ID or a time gets one hash for each file in `paths`, computed from the path and the line
        number. A record on several lines also gets the hashes of its first and its last line alone, which earlier
        versions stored. One of these lines contains the ID or the time of the record.
        """
        data = line.data + b"\n"
        if line.line_count > 1:
            ends = line.data.partition(b"\n")[0], line.data.rpartition(b"\n")[2]
            alone = (
                line._replace(number=number, data=end, line_count=1)
                for number, end in zip((line.number, line.last), ends, strict=True)
            )
            return {self._hash(b"line", data)}.union(*(self.hashes(paths, each) for each in alone))
        if IDENTIFYING.search(data):
            return {self._hash(b"line", data), self._hash(b"line", _canonical(data))}
        return {self._place(path, line.number) for path in paths}

    def record(self, record: str) -> int:
        """Return the keyed hash of a record ID."""
        return self._hash(b"record", record.encode("utf-8", "surrogatepass"))

    def copies(self, exchanges: Sequence[Exchange], origins: Collection[str]) -> dict[int, int]:
        """Return the lines of a whole file that copy deleted lines, each with the keyed hash of the deleted content.

        `origins` contains the IDs of the session and of its ancestors.
        """
        contents = self.contents(exchanges, origins)
        known = self._store.tombstones.matching({content for content, _ in contents}, erased=self._erased)
        return {line: content for content, lines in contents if content in known for line in lines}

    def contents(self, exchanges: Sequence[Exchange], origins: Collection[str]) -> list[tuple[int, set[int]]]:
        """Return the keyed hashes of the beginnings of the exchanges of a whole file, each with its lines."""
        return [(content, each.lines) for each in beginnings(exchanges) for content in self._content(each, origins)]

    def _content(self, beginning: Beginning, origins: Iterable[str]) -> set[int]:
        """Return the keyed hashes of the beginning of an exchange: one for each session ID, and one for its time.

        They recognise copies with other IDs. Unrelated sessions can contain the same text, but not at the same time.
        """
        times = [] if beginning.at is None else [b"\0%d" % beginning.at]
        names = [name.encode("utf-8", "surrogatepass") for name in origins]
        return {self._hash(b"content", beginning.digest + scope) for scope in (*names, *times)}

    def file(self, path: Path) -> int:
        """Return the keyed hash of a file path."""
        return self._hash(b"file", os.fsencode(path))

    def lines(self, path: Path, lines: Iterable[Line], *, blanked: bool = True) -> set[int]:
        """Return the numbers of the deleted lines among these lines of a file.

        Lines that were erased from a copy are included, unless `blanked` is false.
        """
        found: set[int] = set()
        remaining = iter(lines)
        while batch := list(islice(remaining, _BATCH)):
            hashes = [(line, self.hashes([path], line)) for line in batch]
            known = self._store.tombstones.matching(set[int]().union(*(its for _, its in hashes)), erased=self._erased)
            found |= {number for line, its in hashes if its & known for number in line.numbers}
            found |= {line.number for line in batch if blanked and is_blanked(line.data)}
        return found

    def records(self, records: Mapping[str, int], *, erased: bool = False) -> set[int]:
        """Return the lines of deleted records, or only of erased records. `records` maps record IDs to lines."""
        hashes = {self.record(record): line for record, line in records.items()}
        return {
            hashes[line_hash] for line_hash in self._store.tombstones.matching(hashes, erased=self._erased or erased)
        }

    def without(self, path: Path, rows: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the lines of a file that are not deleted, with their line endings."""
        if not self:
            yield from rows
            return
        for row in rows:
            line = Line(0, 0, len(row), row.removesuffix(b"\n").removesuffix(b"\r"), complete=True, oversized=False)
            if not self._store.tombstones.matching(self.hashes([path], line), erased=self._erased):
                yield row

    def _place(self, path: Path, number: int) -> int:
        # The path is relative to the archive, so that moving the archive changes nothing.
        path = path.relative_to(self._archive) if path.is_relative_to(self._archive) else path
        return self._hash(b"place", os.fsencode(path) + b"\0%d" % number)

    def _hash(self, kind: bytes, data: bytes) -> int:
        digest = hashlib.blake2b(data, digest_size=8, key=self._key, person=kind).digest()
        return int.from_bytes(digest, "big", signed=True)


def _canonical(line: bytes) -> bytes:
    """Return a JSON line with sorted keys and without whitespace. Return any other line unchanged."""
    try:
        return orjson.dumps(orjson.loads(line), option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)
    except ValueError:
        return line
