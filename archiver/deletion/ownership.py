"""Ownership of lines: a line belongs to the session that contained it first.

Forks and resumed sessions repeat lines of other sessions. Deleting a session deletes its own lines in every copy, and
keeps the lines that it repeats from other sessions.
"""

import io
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path
from typing import BinaryIO, Final

from ...core.conversation import Exchange, ResumePoint
from ...core.errors import CopyDamaged
from ..copies.compressed_file import CompressedFile
from ..copies.raw import RawArchive, matches
from ..copies.raw_copy import COMPRESSED_SUFFIX, Copy
from ..files.compression import opened
from ..files.lines import REPEATED, head, split
from ..formats import ExtractingFormat
from ..formats.record_events import SkipReason
from ..formats.registry import by_agent
from ..reading.parsing import ParsedLines, parse
from ..redaction import Redactor
from ..store import Source, Store
from ..store.source_table import DELETED
from .suppression import SuppressionList

_SHARED: Final = {REPEATED, DELETED}
"""Outcomes (see `Source.coverage`) of lines that may repeat lines of another copy."""


class Ownership:
    """Reader of copies that determines which of their lines belong to other sessions."""

    def __init__(self, store: Store, raw: RawArchive, key: bytes, *, originals: bool = False) -> None:
        """Prepare to read the copies, or with `originals` the agents' own files."""
        self._store, self._raw, self._key, self._originals = store, raw, key, originals
        self._suppression = SuppressionList(store, key)

    def repeated(self, source: Source, stays: Callable[[int, int], bool]) -> set[int]:
        """Return the lines of a copy that repeat a remaining line of another copy, or an earlier line of the same copy.

        `stays` receives a source ID and a line, and returns whether this line remains after the deletion. A line with a
        record ID is compared by this ID. Any other line is compared by its content with the copies that own a record in
        this copy. Every line is also compared with the earlier lines of its own copy.

        Raises:
            CopyDamaged: The copy cannot be read.
        """
        if not repeats_others(source):
            return set()
        records = self.records(source)
        found, owners = set[int](), set[int]()
        for record, (owner, line) in self._store.sources.locate(records).items():
            if (owner, line) != (source.id, records[record]) and stays(owner, line):
                found.add(records[record])
                owners.add(owner)
        theirs = set[int]()
        for owner in owners - {source.id}:
            with suppress(CopyDamaged):
                theirs |= {
                    line_hash for line, line_hash in self.hashes(self._store.sources.load(owner)) if stays(owner, line)
                }
        with_record, first = set(records.values()), dict[int, int]()
        for line, line_hash in self.hashes(source):
            earlier = first.setdefault(line_hash, line)
            if (line not in with_record and line_hash in theirs) or (
                earlier != line and stays(source.id or 0, earlier)
            ):
                found.add(line)
        return found

    def records(self, source: Source) -> dict[str, int]:
        """Return the line numbers of a copy's records by record ID, if the copy repeats other copies.

        Return an empty dictionary for any other copy.
        """
        if not repeats_others(source):
            return {}
        with self.reading(source) as file:
            return parse_copy(file, source.agent, source.path, self._key).records

    def extracted_records(self, source: Source) -> dict[str, int]:
        """Return the line numbers of the records of sub-agents in a copy, by record ID. Raises `CopyDamaged`."""
        if not has_subagents(source):
            return {}
        with self.reading(source) as file:
            return extracted_records(file, source.agent)

    def exchanges(self, source: Source) -> list[Exchange]:
        """Return the exchanges of a copy, including lines that repeat other copies. Raises `CopyDamaged`."""
        with self.reading(source) as file:
            return parse_copy(file, source.agent, source.path, self._key).with_rewinds()

    def hashes(self, source: Source, *, everywhere: bool = False) -> Iterator[tuple[int, int]]:
        """Yield pairs of a line number of a copy and a keyed hash of that line. A line can have several hashes.

        A line without an ID or a time is identified by its number in the agent's file. If `everywhere` is true, such a
        line also gets a hash for its number in the copy.

        Raises:
            CopyDamaged: The copy cannot be read.
        """
        paths = [source.path, self._raw.root / source.archived] if everywhere else [source.path]
        with self.reading(source) as file:
            for line in split(file):
                for line_hash in self._suppression.hashes(paths, line):
                    yield from ((number, line_hash) for number in line.numbers)

    def salvaged_hashes(self, source: Source) -> set[int]:
        """Return the keyed hashes of the readable lines of a damaged or missing copy.

        The result is empty if the copy repeats other copies, because ownership of its lines cannot be determined.
        """
        copy, found = Copy(self._raw.root, source.archived), set[int]()
        for form in (copy.path, copy.compressed_path, *copy.damaged_files()) if not repeats_others(source) else ():
            with suppress(OSError, CopyDamaged):
                if COMPRESSED_SUFFIX in form.name:
                    with CompressedFile(form) as compressed:
                        data = compressed.intact_lines()
                else:
                    data = form.read_bytes()
                for line in split(io.BytesIO(data)):
                    found |= self._suppression.hashes([source.path], line)
        return found

    def deleted(self, source: Source) -> set[int]:
        """Return the lines of a copy that are already deleted. Raises `CopyDamaged`."""
        if not repeats_others(source):
            return set()
        with self.reading(source) as file:
            return self._suppression.lines(source.path, split(file)) | self._suppression.records(self.records(source))

    @contextmanager
    def reading(self, source: Source) -> Generator[BinaryIO]:
        """Open the content of a copy, or of the agent's own file. Opening or reading it can raise `CopyDamaged`."""
        with reading_original(source) if self._originals else reading_copy(self._raw, source.archived) as file:
            yield file


def repeats_others(source: Source) -> bool:
    """Return whether a copy has lines that repeat other copies, or deleted lines that may have repeated them."""
    return not source.coverage.keys().isdisjoint(_SHARED)


def has_subagents(source: Source) -> bool:
    """Return whether a copy contains messages of sub-agents, which may have a transcript of their own as well."""
    return SkipReason.SUBAGENT in source.coverage


def has_files(raw: RawArchive, archived: str) -> bool:
    """Return whether any file of a copy exists, even a damaged file."""
    copy = Copy(raw.root, archived)
    return copy.exists() or bool(copy.damaged_files())


@contextmanager
def reading_copy(raw: RawArchive, archived: str) -> Generator[BinaryIO]:
    """Open the content of a copy. Opening or reading raises `CopyDamaged` if the copy is damaged or missing."""
    try:
        file = raw.open(archived)
    except FileNotFoundError:
        copy = Copy(raw.root, archived)
        left = ", ".join(path.name for path in copy.damaged_files())
        reason = f"the copy is missing, and only {left} exists" if left else "the copy is missing"
        hint = "Restore it from a backup, or delete the whole session, which needs no copy."
        raise CopyDamaged(copy.path, reason, hint=hint) from None
    with file:
        yield file


@contextmanager
def reading_original(source: Source) -> Generator[BinaryIO]:
    """Open the archived part of an agent's own file. Raises `CopyDamaged` if the file is missing or has changed."""
    lines = list[bytes]()
    with suppress(OSError), source.path.open("rb") as file:
        if matches(source, file):
            with opened(source.path) as content:
                lines = [
                    line.data + b"\n" for line in takewhile(lambda line: line.last <= source.lines, split(content))
                ]
    if not lines:
        raise CopyDamaged(source.path, "the file differs from the archived copy")
    yield io.BytesIO(b"".join(lines))


def parse_copy(file: BinaryIO, agent: str, path: Path, key: bytes) -> ParsedLines:
    """Parse the content of a copy of the file at `path`, including lines that repeat other copies."""
    known = by_agent(agent)
    session = known.identify(path, head(file))
    return parse(known, session, ResumePoint(), file, Redactor(key))


def extracted_records(file: BinaryIO, agent: str) -> dict[str, int]:
    """Return the line numbers of the records of sub-agents in the content of a copy, by record ID."""
    known = by_agent(agent)
    return known.extracted_records(split(file)) if isinstance(known, ExtractingFormat) else {}
