"""Unrolling: a conversation of a container, brought up to date in a copy of its own.

The copy is a log. A message that was not there is appended. One that changed takes the place of what it was when it
says all that that said, as one does that was still being written; else both stand. So nothing is lost that was said,
and what is updated fifty times stands there once.
"""

import hashlib
import io
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from msgspec import Struct, field
from msgspec.structs import replace

from ...core.clock import now
from ...core.conversation import Session
from ...core.durability import sync, sync_path
from ...core.errors import CopyDamaged, SourceUnreadable
from ..copies.blanking import remove
from ..copies.checksums import continued, verify
from ..copies.forms import Copy
from ..copies.raw import Copied, RawArchive, Stat
from ..copies.renewal import before_rewrite, rewritten
from ..deletion.suppression import SuppressionList
from ..formats import ContainedSession, ContainerFormat, TranscriptFormat
from ..redaction import Redactor
from ..store import Source, Store
from .rewrites import loses_nothing
from .transcripts import Transcript

_Place = tuple[int, int]
"""The bytes of a line, half-open."""
_ID = re.compile(rb'\{"id":("(?:[^"\\]|\\.)*")')
_PIECE = 1 << 20
_log = logging.getLogger(__name__)


class Unrolled(Struct, frozen=True):
    """A copy that holds all that a conversation says now. `grown` when what it held stands where it stood.

    `path` is where the conversation stands, `continued` the source that this is, where it is not new.
    """

    path: Path
    format: TranscriptFormat
    copied: Copied
    archived: str
    continued: Source | None
    grown: bool


class _Held(Struct):
    """What a copy holds: the digest of each of its lines, and where the last version of each message stands, with its.

    `end` is where its last whole line ends; what follows is of a pass that was killed.
    """

    lines: set[bytes] = field(default_factory=set[bytes])
    places: dict[bytes, tuple[_Place, bytes]] = field(default_factory=dict[bytes, "tuple[_Place, bytes]"])
    end: int = 0


class Unroller:
    """Takes containers apart into copies that can be read as any other."""

    def __init__(
        self,
        store: Store,
        root: Path,
        taken: set[str],
        redactor: Redactor,
        complete: Callable[[Path], None],
        erased: SuppressionList | None = None,
    ) -> None:
        """`root` is the folder of the copies, `taken` holds their names, and `erased` knows what is not copied again.

        `complete` stores a source of this path that was read and not stored yet.
        """
        self._store, self._root, self._erased = store, root, erased
        self._taken, self._redactor, self._complete = taken, redactor, complete

    def changed(self, container: Transcript, known: ContainerFormat) -> int | None:
        """The state of a container that is not as it was taken up; None where it is. Raises `SourceUnreadable`."""
        try:
            state = known.state(container.path)
        except OSError as error:
            raise SourceUnreadable(container.path, error.strerror or str(error)) from None
        return None if self._store.containers.state(container.path) == state else state

    def run(self, container: Transcript, known: ContainerFormat) -> Iterator[Unrolled | None]:
        """Each conversation whose copy was brought up to date, and None for each that did not change.

        Raises `SourceUnreadable` after all that could be read.
        """
        problem: SourceUnreadable | None = None
        for conversation in known.conversations(container.path):
            try:
                yield self._unrolled(conversation, known)
            except SourceUnreadable as found:
                _log.warning("%s", found)
                problem = SourceUnreadable(container.path, found.reason, hint=found.hint)
            except OSError as error:
                raise SourceUnreadable(container.path, error.strerror or str(error)) from None
        if problem is not None:
            raise problem

    def _unrolled(self, conversation: ContainedSession, known: ContainerFormat) -> Unrolled | None:
        self._complete(conversation.path)
        source = self._store.sources.at(conversation.path)
        archived = source.archived if source is not None else self._new_name(f"{known.agent}/{conversation.archived}")
        copy = Copy(self._root, archived)
        if source is not None and source.inode == conversation.mark and copy.size() >= source.size:
            return None
        if self._erased:
            told, erased = conversation.rows, self._erased
            conversation = replace(conversation, rows=lambda: erased.without(conversation.path, told()))
        before = partial(before_rewrite, self._store, (source,))
        size, grown, sums, compared = unroll(conversation, known, copy, source, before)
        if source is None and not size:
            remove(copy)  # all of it was erased
            return None
        copied = Copied(
            Stat(0, conversation.mark, (conversation.at or now()) * 1_000_000, size), b"", b"", sums, compared
        )
        return Unrolled(conversation.path, known, copied, archived, source, grown)

    def _new_name(self, wanted: str) -> str:
        """Return a name without secrets that no copy has, and take it."""
        name = self._redactor.redact_name(wanted)
        path, number = PurePosixPath(name), 1
        while name in self._taken:
            number += 1
            name = str(path.with_name(f"{path.stem}~{number}{path.suffix}"))
        self._taken.add(name)
        return name


_Made = tuple[int, bool, bytes, bool]
"""The size of a copy, whether its earlier lines kept their places, and its checksums as `Source` has them."""


def unroll(
    conversation: ContainedSession,
    known: TranscriptFormat,
    copy: Copy,
    source: Source | None = None,
    before: Callable[[], None] = lambda: None,
) -> _Made:
    """Bring the copy of `source`, or a new one, up to date, durably.

    `before` is called after everything was read, before anything is written. Raises `SourceUnreadable`, or `OSError`
    where there is no room.
    """
    return RawArchive(copy.root).replaced(copy.archived, partial(_unroll, conversation, known, source, before))


def _unroll(
    conversation: ContainedSession,
    known: TranscriptFormat,
    source: Source | None,
    before: Callable[[], None],
    copy: Copy,
) -> _Made:
    held = _held(copy)
    said, fresh = set[bytes](), list[bytes]()
    for line in conversation.rows():
        digest = _digest(line)
        if digest not in said and digest not in held.lines:
            fresh.append(line)
        said.add(digest)
    if fresh:
        before()
    # Two messages may have one id; what is still said is not what another message was before.
    left = {name: place for name, (place, digest) in held.places.items() if digest not in said}
    changed = {left[name]: line for line in fresh if (name := _name(line)) in left}
    # A damaged copy is only added to: the damage would count as content once it is rewritten.
    replaced = _replaced(copy, known, changed) if changed and _is_whole(copy, source) else {}
    taken = set(replaced.values())
    added = [line for line in fresh if line not in taken]
    if not replaced:
        size, sums, compared = _append(copy, held, added, source)
        return size, True, sums, compared
    size = _rewrite(copy, held, replaced, added)
    sums, compared = (copy.sums(), source is None or source.compared) if source is None or source.sums else (b"", False)
    return size, False, sums, compared


def _is_whole(copy: Copy, source: Source | None) -> bool:
    try:
        if source is not None and source.sums:
            with copy.open() as file:
                verify(file, source.sums, copy.plain)
    except CopyDamaged:
        return False
    return True


def _held(copy: Copy) -> _Held:
    held = _Held()
    try:
        with copy.open() as file:
            for line in file:
                if line.endswith(b"\n"):
                    digest = _digest(line)
                    held.lines.add(digest)
                    held.places[_name(line)] = (held.end, held.end + len(line)), digest
                    held.end += len(line)
    except FileNotFoundError:
        pass
    return held


def _replaced(copy: Copy, known: TranscriptFormat, changed: Mapping[_Place, bytes]) -> dict[_Place, bytes]:
    """Of the messages that changed, by place, those that say all that they said before."""
    session = Session(known.agent, "")
    found: dict[_Place, bytes] = {}
    with copy.open() as file:
        for (start, end), line in changed.items():
            file.seek(start)
            if loses_nothing(known, session, io.BytesIO(file.read(end - start)), io.BytesIO(line)):
                found[start, end] = line
    return found


def _append(copy: Copy, held: _Held, added: Iterable[bytes], source: Source | None) -> tuple[int, bytes, bool]:
    copy.plain.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    copy.unseal()
    descriptor = os.open(copy.plain, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "r+b") as file:
        sums = continued(source, copy.plain, held.end)
        sums.extend(file, held.end)
        file.truncate(held.end)
        file.seek(held.end)
        for line in added:
            file.write(line)
            sums.add(line)
        size = file.tell()
        sync(file)
    for folder in copy.plain.parents:
        sync_path(folder)
        if folder == copy.root:
            break
    return size, *sums.recorded()


def _rewrite(copy: Copy, held: _Held, replaced: Mapping[_Place, bytes], added: Iterable[bytes]) -> int:
    with copy.open() as before, rewritten(copy) as file:
        for (start, end), line in sorted(replaced.items()):
            _pass_on(before, start, file)
            file.write(line)
            before.seek(end)
        _pass_on(before, held.end, file)
        file.writelines(added)
        return file.tell()


def _pass_on(source: BinaryIO, end: int, target: BinaryIO) -> None:
    while source.tell() < end:
        target.write(source.read(min(_PIECE, end - source.tell())))


def _name(line: bytes) -> bytes:
    """The id of the message that a line brings, in its JSON."""
    found = _ID.match(line)
    return found[1] if found else b""


def _digest(line: bytes) -> bytes:
    return hashlib.blake2b(line, digest_size=16).digest()
