"""Choice of what an ingest run reads: changed transcripts, and changed sessions of containers.

Each session of a container gets its own raw copy. New messages are appended to the copy. A changed message replaces its
earlier version only if it contains all of that version. Otherwise both versions are kept. Therefore, no content is
lost, and a message that grows in fifty updates is stored once.
"""

import hashlib
import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from ...core.conversation import ResumePoint, Session, Turn, now
from ...core.errors import CopyDamaged, SourceUnreadable
from ...core.reports import IngestReport, OmittedFile
from ...core.runtime import sync, sync_path
from .. import lines
from ..copies.checksums import continued, verify
from ..copies.raw_copy import Copied, Copy, RawArchive, Stat, drop_checksums, new_content, remove, unreadable
from ..deletion.suppression import SuppressionList
from ..formats import ContainedSession, ContainerFormat, TranscriptFormat
from ..formats.registry import by_agent
from ..lines import DOCUMENT, opened
from ..reading.parsing import Exclusion, folder_in
from ..redaction import Redactor
from ..store import Source, Store
from ..store.source_table import NO_DEVICE
from .transcripts import Transcript


class IngestJob(Struct, frozen=True):
    """Transcript to ingest: its format, the name of its raw copy, and the source that it continues or replaces."""

    path: Path
    format: TranscriptFormat
    archived: str
    size: int
    continued: Source | None = None
    replaced: Source | None = None
    rewritten: bool = False
    """True if lines that were read before may have other line numbers now, so that the whole file is read again."""

    def source(self, copied: Copied) -> Source:
        """Return the state of the source after copying."""
        before, source = self.continued, copied.source(self.format.agent, self.path, self.archived)
        if before is not None:
            source.id, source.session = before.id, before.session
            source.resume = ResumePoint() if self.rewritten or before.rules != source.rules else before.resume
        return source


class JobPlanner:
    """Planner of one ingest run. It compares transcripts with their stored state to find new and changed ones."""

    def __init__(
        self, store: Store, raw: RawArchive, redactor: Redactor, exclusion: Exclusion, deleted: SuppressionList
    ) -> None:
        self._store, self._raw, self._redactor, self._exclusion = store, raw, redactor, exclusion
        self._deleted = deleted
        self.names = store.sources.archived_names()
        """Names of existing raw copies and of copies to be created."""

    def jobs(self, transcripts: Iterable[Transcript], report: IngestReport) -> list[IngestJob]:
        """Return a job for each new or changed transcript, oldest first, so that originals precede their forks.

        Omitted transcripts are counted in `report`. An unchanged transcript costs one `stat` call.
        """
        sources = self._store.sources.by_path()
        changed: list[tuple[Stat, Transcript]] = []
        for transcript in transcripts:
            report.seen += 1
            try:
                stat = Stat.of(transcript.path)
            except OSError as error:
                report.problems.append(SourceUnreadable(transcript.path, error.strerror or str(error)))
                continue
            if self._is_changed(transcript.path, stat, sources.get(transcript.path)):
                changed.append((stat, transcript))
        changed.sort(key=lambda pair: (pair[0].mtime, pair[1].path))
        jobs = [self._job(transcript, stat.size, sources.get(transcript.path), report) for stat, transcript in changed]
        return [job for job in jobs if job is not None]

    def _is_changed(self, path: Path, stat: Stat, source: Source | None) -> bool:
        if source is not None:
            return not self._raw.is_unchanged(source, stat)
        erased = self._deleted and self._store.tombstones.is_erased_file(
            self._deleted.file(path), stat.mtime, stat.size
        )
        return not erased

    def _job(self, transcript: Transcript, size: int, source: Source | None, report: IngestReport) -> IngestJob | None:
        path = transcript.path
        continued = source if source is not None and self._raw.is_continued(source) else None
        try:
            transcript_format = by_agent(continued.agent) if continued else transcript.recognise()
            excluded = transcript_format is not None and self._is_excluded(transcript, transcript_format)
        except OSError as error:
            report.problems.append(unreadable(path, error))
            return None
        if transcript_format is None or excluded:
            report.excluded += excluded
            report.foreign += not excluded
            reason = "excluded by config.toml" if excluded else "not a transcript of a supported agent"
            report.omitted.append(OmittedFile(path, reason))
            return None
        if continued is not None:
            return IngestJob(path, transcript_format, continued.archived, size, continued=continued)
        if source is not None and self._keeps_everything(source, transcript_format, path):
            return IngestJob(path, transcript_format, source.archived, size, continued=source, rewritten=True)
        name = self._redactor.redact_name(transcript.archived(transcript_format))
        archived = self._raw.free_name(name, self.names, path)
        self.names.add(archived)
        return IngestJob(path, transcript_format, archived, size, replaced=source)

    def _is_excluded(self, transcript: Transcript, transcript_format: TranscriptFormat) -> bool:
        """Return whether the settings exclude the transcript's folder or the working folder in its first lines."""
        if not self._exclusion:
            return False
        if self._exclusion.covers(str(transcript.found.parent)):
            return True
        with opened(transcript.path) as file:
            return self._exclusion.covers(folder_in(transcript_format, transcript.path, lines.head(file)))

    def _keeps_everything(self, source: Source, transcript_format: TranscriptFormat, path: Path) -> bool:
        """Return whether a rewritten document still contains all content of its copy."""
        if path.suffix != DOCUMENT or source.agent != transcript_format.agent:
            return False
        try:
            with self._raw.open(source.archived) as before, opened(path) as after:
                return loses_nothing(transcript_format, Session(source.agent, ""), before, after)
        except (OSError, CopyDamaged):
            return False


def loses_nothing(transcript_format: TranscriptFormat, session: Session, before: BinaryIO, after: BinaryIO) -> bool:
    """Return whether `after` contains every turn of `before` in the same order.

    A turn in `after` may be longer than in `before`, as long as it begins with the earlier text.
    """
    later = _turns(transcript_format, session, after)
    return all(any(_continues(new, old) for new in later) for old in _turns(transcript_format, session, before))


def _turns(transcript_format: TranscriptFormat, session: Session, file: BinaryIO) -> Iterator[Turn]:
    events = transcript_format.reader(session, shorten=False).read(lines.split(file))
    return (event for event in events if isinstance(event, Turn))


def _continues(new: Turn, old: Turn) -> bool:
    return (new.speaker, new.kind) == (old.speaker, old.kind) and new.text.startswith(old.text)


_ByteRange: TypeAlias = tuple[int, int]
_ID: Final = re.compile(rb'\{"id":("(?:[^"\\]|\\.)*")')
_PIECE: Final = 1 << 20


class _CopyLines(Struct):
    """Lines of a copy.

    `digests` contains the digests of all lines. `messages` maps each message ID to the byte range and the digest of the
    message's last version.
    """

    digests: set[bytes] = field(default_factory=set[bytes])
    messages: dict[bytes, tuple[_ByteRange, bytes]] = field(default_factory=dict[bytes, "tuple[_ByteRange, bytes]"])
    end: int = 0
    """Byte offset after the last complete line. An interrupted write may have left bytes after it."""


class ContainerExtractor:
    """Extractor that copies the sessions of containers, so that they can be read like other transcripts."""

    def __init__(
        self, store: Store, root: Path, names: set[str], redactor: Redactor, erased: SuppressionList | None = None
    ) -> None:
        """Prepare extraction into the archive at `root`.

        `names` lists the copies in the archive. `erased` contains the lines to omit.
        """
        self._store, self._root, self._names = store, root, names
        self._redactor, self._erased = redactor, erased

    def changed_state(self, path: Path, transcript_format: ContainerFormat) -> int | None:
        """Return the state of a container, or None if it has not changed since its last ingest. Raises `OSError`."""
        state = transcript_format.container_state(path)
        return None if self._store.containers.state(path) == state else state

    def extract(
        self, session: ContainedSession, transcript_format: TranscriptFormat
    ) -> tuple[IngestJob, Copied] | None:
        """Update the copy of a session. Return None if the copy is current.

        Raises:
            SourceUnreadable: The session cannot be read.
            OSError: The copy cannot be written.
        """
        source = self._store.sources.at(session.path)
        name = f"{transcript_format.agent}/{session.archive_name}"
        archived = source.archived if source is not None else self._new_name(name)
        copy = Copy(self._root, archived)
        if source is not None and source.inode == session.fingerprint and copy.size() >= source.size:
            return None
        if self._erased:
            rows, erased = session.lines, self._erased
            session = replace(session, lines=lambda: erased.without(session.path, rows()))
        drop = partial(drop_checksums, self._store, (source,))
        updated = RawArchive(self._root).update(
            archived, lambda made: update_copy(session, transcript_format, made, source, drop)
        )
        if source is None and not updated.size:
            remove(copy)  # All of the session was erased.
            return None
        stat = Stat(NO_DEVICE, session.fingerprint, (session.changed_at or now()) * 1_000_000, updated.size)
        job = IngestJob(session.path, transcript_format, archived, updated.size, source, rewritten=not updated.appended)
        return job, Copied(stat, b"", b"", updated.sums)

    def _new_name(self, preferred: str) -> str:
        """Return an unused copy name without secrets, and reserve the name."""
        name = self._redactor.redact_name(preferred)
        path, number = PurePosixPath(name), 1
        while name in self._names:
            number += 1
            name = str(path.with_name(f"{path.stem}~{number}{path.suffix}"))
        self._names.add(name)
        return name


class UpdatedCopy(Struct, frozen=True):
    """Updated copy: its size in bytes, its packed checksums, and whether the update only appended lines."""

    size: int
    appended: bool
    sums: bytes


def update_copy(
    session: ContainedSession,
    transcript_format: TranscriptFormat,
    copy: Copy,
    source: Source | None,
    before_write: Callable[[], None],
) -> UpdatedCopy:
    """Update the copy of `source`, or create a copy, and flush it to disk.

    `before_write` is called after all content is read and before anything is written.

    Raises:
        SourceUnreadable: The session cannot be read.
        OSError: The copy cannot be written, for example because the disk is full.
    """
    before = _lines_of(copy)
    current, fresh = set[bytes](), list[bytes]()
    for line in session.lines():
        digest = _digest(line)
        if digest not in current and digest not in before.digests:
            fresh.append(line)
        current.add(digest)
    if fresh:
        before_write()
    # Two messages may have the same ID. A line that is still current is not an earlier version of another line.
    earlier = {
        name: byte_range for name, (byte_range, digest) in before.messages.items() if name and digest not in current
    }
    changed = {earlier[name]: line for line in fresh if (name := _message_id(line)) in earlier}
    # Only append to a damaged copy. A rewrite would store the damage as valid content.
    replaced = _replaceable(copy, transcript_format, changed) if changed and _is_intact(copy, source) else {}
    used = set(replaced.values())
    added = [line for line in fresh if line not in used]
    if not replaced:
        size, sums = _append(copy, before, added, source)
        return UpdatedCopy(size, True, sums)
    return UpdatedCopy(_rewrite(copy, before, replaced, added), False, copy.checksums())


def _is_intact(copy: Copy, source: Source | None) -> bool:
    try:
        if source is not None and source.sums:
            with copy.open() as file:
                verify(file, source.sums, copy.path)
    except CopyDamaged:
        return False
    return True


def _lines_of(copy: Copy) -> _CopyLines:
    copy_lines = _CopyLines()
    try:
        with copy.open() as file:
            for line in file:
                if line.endswith(b"\n"):
                    digest = _digest(line)
                    copy_lines.digests.add(digest)
                    copy_lines.messages[_message_id(line)] = (copy_lines.end, copy_lines.end + len(line)), digest
                    copy_lines.end += len(line)
    except FileNotFoundError:
        pass
    return copy_lines


def _replaceable(
    copy: Copy, transcript_format: TranscriptFormat, changed: Mapping[_ByteRange, bytes]
) -> dict[_ByteRange, bytes]:
    """Return the new versions that contain the whole earlier version of their line, by the byte range of that line."""
    session = Session(transcript_format.agent, "")
    newer: dict[_ByteRange, bytes] = {}
    with copy.open() as file:
        for (start, end), line in changed.items():
            file.seek(start)
            if loses_nothing(transcript_format, session, io.BytesIO(file.read(end - start)), io.BytesIO(line)):
                newer[start, end] = line
    return newer


def _append(copy: Copy, before: _CopyLines, added: Iterable[bytes], source: Source | None) -> tuple[int, bytes]:
    copy.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    copy.decompress()
    descriptor = os.open(copy.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "r+b") as file:
        sums = continued(source, copy.path, before.end)
        sums.extend(file, before.end)
        file.truncate(before.end)
        file.seek(before.end)
        for line in added:
            file.write(line)
            sums.add(line)
        size = file.tell()
        sync(file)
    for folder in copy.path.parents:
        sync_path(folder)
        if folder == copy.root:
            break
    return size, sums.pack()


def _rewrite(copy: Copy, before: _CopyLines, replaced: Mapping[_ByteRange, bytes], added: Iterable[bytes]) -> int:
    with copy.open() as old, new_content(copy) as file:
        for (start, end), line in sorted(replaced.items()):
            _copy_until(old, start, file)
            file.write(line)
            old.seek(end)
        _copy_until(old, before.end, file)
        file.writelines(added)
        return file.tell()


def _copy_until(source: BinaryIO, end: int, target: BinaryIO) -> None:
    while source.tell() < end:
        target.write(source.read(min(_PIECE, end - source.tell())))


def _message_id(line: bytes) -> bytes:
    """Return the message ID of a line, as JSON, or empty bytes if the line has no ID."""
    match = _ID.match(line)
    return match[1] if match else b""


def _digest(line: bytes) -> bytes:
    return hashlib.blake2b(line, digest_size=16).digest()
