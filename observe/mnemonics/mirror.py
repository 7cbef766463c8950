"""Mirror: the memory core is made to say what the files say, and files what was edited in the core."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import PurePosixPath
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.redaction import Redactor
from ...archiver.store import Mirrored, Store
from ...core.amount import many
from ...core.clock import show_millisecond
from ...core.errors import InvalidInput, LeaseHeld, MnemonicsUnusable
from ...core.memory import Memory, MemoryRevision, MemoryState, StoredMemory
from ...core.origin import Origin
from ..memory import MemoryCore
from .folder import Folder, digest_of, reason_of
from .front_matter import Mnemonic, YamlInvalid
from .kinds import FALLBACK, OWN, Kinds, described
from .names import kebab, titled

LEASE: Final = "mnemonics"
PATIENCE: Final = 30.0
"""Seconds to wait for another process that is reading the same files."""
_AT_A_TIME: Final = 15.0
"""Seconds after which a call answers and the next one goes on: a client waits a minute, and a file takes 0.1 s."""
_RECENT: Final = 2_000_000_000
"""Nanoseconds within which a second edit may leave no other time than the first."""
SOURCE: Final = "historian"


class Problem(Struct, frozen=True):
    """A file that could not be taken up, by its absolute path, and why. It is untouched."""

    path: str
    reason: str


class Found(Struct, frozen=True):
    """A file that can be read: its path below the folder and as stored, its bytes' digest, and what it says."""

    place: str
    path: str
    digest: str
    mnemonic: Mnemonic

    @property
    def folder(self) -> str:
        """The type whose folder it lies in."""
        return folder_of(self.place)


def folder_of(path: str) -> str:
    """Return the type of the folder that a path below `.mnemonics` begins with; the fallback for a file in none."""
    first, *below = PurePosixPath(path).parts
    return kebab(first) if below else FALLBACK


class Mirror:
    """What the files of one project say, beside what the core holds of them. Files win where both were edited.

    What Palaver did not write itself may have come with a cloned repository. Until the user allows the folder it is
    `external`: found and recalled, but no rule, and no session starts with it.

    `kinds`, `files` and `problems` are as the last `sync` found them.
    """

    def __init__(self, store: Store, core: MemoryCore, redactor: Redactor, folder: Folder) -> None:
        self._store, self._core, self._redactor, self.folder = store, core, redactor, folder
        self.namespace = store.projects.namespace(folder.project)
        self.kinds = Kinds({}, ())
        self.files: dict[str, Found] = {}
        self.problems: tuple[Problem, ...] = ()
        self._read: dict[str, tuple[tuple[int, ...], Found | str]] = {}

    def sync(self) -> None:
        """Take up what was edited, moved, added or deleted by hand since the last time, here or in any process."""
        if self._steps():
            # Who has the lease for so long is taking up the same files.
            with suppress(LeaseHeld), self._store.leases.hold(LEASE, PATIENCE):
                self.sync_leased()

    def sync_leased(self) -> None:
        """The same, for who holds the lease."""
        self.namespace = self._store.projects.claim(self.folder.project)
        failed: dict[str, str] = {}
        steps, enough = self._steps(), time.monotonic() + _AT_A_TIME
        for number, (path, step) in enumerate(steps):
            if time.monotonic() > enough:
                left = many(len(steps) - number, "file is", "files are")
                failed[str(self.folder.path)] = f"{left} still to be taken up; call again"
                break
            try:
                step()
            except (InvalidInput, MnemonicsUnusable, YamlInvalid) as error:
                failed[path] = getattr(error, "reason", str(error))
        self.problems += tuple(Problem(path, reason) for path, reason in failed.items())

    def note(self, place: str, held: StoredMemory) -> None:
        """Note that this file, as it is now, and this memory say the same."""
        found = self._found(place, self.folder.read(place))
        self.files[found.path] = found
        self._put(found, held)

    def forgotten(self, path: str) -> None:
        """Note that a file was deleted with its memory, so that one that is restored is written again."""
        self.files.pop(path, None)
        row = self._store.mnemonics.below(str(self.folder.path))[path]
        self._store.mnemonics.put(replace(row, gone=True))

    @property
    def is_allowed(self) -> bool:
        """Return whether the user trusts the files of this folder that Palaver did not write."""
        return str(self.folder.path) in self._store.mnemonics.allowed()

    def redacted(self, text: str) -> str:
        """Text as it may be stored."""
        return self._redactor.redact(text).text

    def _steps(self) -> list[tuple[str, Callable[[], None]]]:
        """What is to do, each with the path it is about."""
        unread = self._look()
        rows = self._store.mnemonics.below(str(self.folder.path))
        held = self._store.memories.load([row.memory for row in rows.values() if row.memory is not None])
        lost = {path: row for path, row in rows.items() if path not in self.files and not _within(path, unread)}
        moved = self._moved(rows, {path: row for path, row in lost.items() if not row.gone})
        steps = [
            (path, step)
            for path, found in self.files.items()
            for step in self._of_file(found, rows.get(path) or moved.get(path), held)
        ]
        kept = {row.path for row in moved.values()}
        steps += [(path, step) for path, row in lost.items() if path not in kept for step in self._of_lost(row, held)]
        return steps

    def _look(self) -> set[str]:
        """Read what is new or edited; the paths at which there is something that cannot be read."""
        seen = self.folder.look()
        problems, self.files = dict(seen.problems), {}
        for place, stamp in seen.files.items():
            known = self._read.get(place)
            if known is None or known[0] != stamp:
                # What was edited just now may be edited again without another stamp, so it is read again.
                settled = time.time_ns() - stamp[0] > _RECENT
                known = (stamp if settled else ()), self._taken(place)
                self._read[place] = known
            if isinstance(known[1], str):
                problems[place] = known[1]
            else:
                self.files[known[1].path] = known[1]
        own, reason = self._own()
        if not self.is_allowed:
            own = dict.fromkeys(own, "")
        self.kinds = Kinds(own, seen.folders)
        told = problems | ({OWN: reason} if reason else {})
        self.problems = tuple(Problem(self.folder.whole(place), reason) for place, reason in told.items())
        return {self.folder.whole(place) for place in problems}

    def _taken(self, place: str) -> Found | str:
        """A file, or why it cannot be read."""
        try:
            return self._found(place, self.folder.read(place))
        except OSError as error:
            return reason_of(error)
        except UnicodeDecodeError:
            return "it is not UTF-8"
        except YamlInvalid as error:
            return str(error)

    def _found(self, place: str, data: bytes) -> Found:
        return Found(place, self.folder.whole(place), digest_of(data), Mnemonic.parse(data.decode()))

    def _own(self) -> tuple[dict[str, str], str]:
        """The types that the project describes, or why they cannot be read."""
        try:
            return described(self.folder.read(OWN).decode()), ""
        except FileNotFoundError:
            return {}, ""
        except OSError as error:
            return {}, reason_of(error)
        except UnicodeDecodeError:
            return {}, "it is not UTF-8"
        except YamlInvalid as error:
            return {}, str(error)

    def _moved(self, rows: Mapping[str, Mirrored], lost: Mapping[str, Mirrored]) -> dict[str, Mirrored]:
        """New files that are lost ones under another name, by path: of the same bytes, or made at the same instant."""
        left, moved = dict(lost), dict[str, Mirrored]()
        for same in (_same_bytes, _same_birth):
            for path, found in self.files.items():
                was = next((row for row in left.values() if same(found, row)), None)
                if was is not None and path not in rows and path not in moved:
                    moved[path] = left.pop(was.path)
        return moved

    def _of_file(
        self, found: Found, row: Mirrored | None, held: Mapping[int, StoredMemory]
    ) -> Iterator[Callable[[], None]]:
        memory = held.get(row.memory) if row is not None and row.memory is not None else None
        active = memory is not None and memory.state is MemoryState.ACTIVE
        strayed = active and memory is not None and memory.memory.namespace != self.namespace
        if row is None or row.gone or row.digest != found.digest or strayed:
            yield partial(self._hold, found, row, memory)
        elif row.path != found.path:
            yield partial(self._hold, found, row, memory) if active else partial(self._rename, found, row)
        elif memory is not None and active and memory.memory.content_hash != row.content_hash:
            yield partial(self._write_back, found, memory)

    def _of_lost(self, row: Mirrored, held: Mapping[int, StoredMemory]) -> Iterator[Callable[[], None]]:
        memory = held.get(row.memory) if row.memory is not None else None
        if memory is None or memory.state is MemoryState.ARCHIVED:
            return
        if not row.gone:
            yield partial(self._lose, row, memory)
        elif not memory.protected:
            yield partial(self._write_out, row, memory)

    def _hold(self, found: Found, row: Mirrored | None, memory: StoredMemory | None) -> None:
        """Make the core say what a file says that is new, was edited or moved, or came back."""
        content = self.redacted(found.mnemonic.body)
        kind = self._kind(found, row)
        memory = memory or self._core.at_path(found.path)
        if memory is not None and row is not None and row.gone and memory.state is MemoryState.ARCHIVED:
            memory = self._core.restore(memory.id)
        if memory is None or memory.state is not MemoryState.ACTIVE:
            remembered = self._core.remember(self._memory(found, kind or found.folder, content))
            after = remembered.stored
        else:
            stem, was = PurePosixPath(found.path).stem, PurePosixPath(memory.memory.path).stem
            title = titled(stem) if stem != was else None
            tags, namespace = found.mnemonic.tags, self.namespace
            said = MemoryRevision(content, kind, title, namespace, tags=tags, path=found.path, origin=self._origin)
            after = self._core.revise(memory.id, said, force=True)
        if row is not None:
            self._rename(found, row)
        self._put(found, after)

    @property
    def _origin(self) -> Origin:
        """Return whose word a file is that Palaver did not write."""
        return Origin.DOCUMENT if self.is_allowed else Origin.EXTERNAL

    def _kind(self, found: Found, row: Mirrored | None) -> str | None:
        """The type that a hand gave a file: by its folder, or by its front matter; None where neither changed."""
        declared = kebab(found.mnemonic.declared)
        named = declared if declared in self.kinds else found.folder
        if row is None:
            return named
        if found.folder != folder_of(row.path.removeprefix(f"{self.folder.path}/")):
            return found.folder
        return named if declared != row.declared else None

    def _memory(self, found: Found, kind: str, content: str) -> Memory:
        return Memory(
            content,
            kind,
            titled(PurePosixPath(found.path).stem),
            self.namespace,
            tags=found.mnemonic.tags,
            source=SOURCE,
            origin=self._origin,
            path=found.path,
        )

    def _rename(self, found: Found, row: Mirrored) -> None:
        if row.path != found.path:
            with self._store.transaction():
                self._store.mnemonics.drop(row.path)
                self._store.mnemonics.put(replace(row, path=found.path))

    def _write_back(self, found: Found, memory: StoredMemory) -> None:
        """Write into a file what was edited in the core."""
        told = found.mnemonic.changed(memory.memory.content, show_millisecond(memory.updated))
        self.folder.replace(found.place, told.text.encode(), found.digest)
        if memory.memory.path != found.path:
            memory = self._core.revise(memory.id, MemoryRevision(path=found.path))
        self.note(found.place, memory)

    def _write_out(self, row: Mirrored, memory: StoredMemory) -> None:
        """Write the file of a memory again that was forgotten with it and restored."""
        said, place = memory.memory, row.path.removeprefix(f"{self.folder.path}/")
        told = Mnemonic.new(said.content, said.type, said.tags, show_millisecond(memory.updated))
        self.folder.create(place, told.text.encode())
        self.note(place, memory)

    def _lose(self, row: Mirrored, memory: StoredMemory) -> None:
        """Forget what was in a file that was deleted by hand; a golden rule is held without it."""
        self._core.forget([memory.id], reason=f"deleted by hand: {row.path}")
        self._store.mnemonics.put(replace(row, gone=True))

    def _put(self, found: Found, held: StoredMemory) -> None:
        told, hashed = found.mnemonic, held.memory.content_hash
        self._store.mnemonics.put(
            Mirrored(found.path, held.key, found.digest, hashed, kebab(told.declared), told.created)
        )


def _within(path: str, unread: set[str]) -> bool:
    """Whether a path is, or lies below, something that is there and cannot be read."""
    place = PurePosixPath(path)
    return path in unread or any(str(parent) in unread for parent in place.parents)


def _same_bytes(found: Found, row: Mirrored) -> bool:
    return found.digest == row.digest


def _same_birth(found: Found, row: Mirrored) -> bool:
    return found.mnemonic.created != "" and found.mnemonic.created == row.created
