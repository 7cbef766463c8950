"""Detection of changed files: events of the operating system, scans for changed transcripts, and network mounts.

Some changes cause no event, such as changes by other machines on some file systems. A regular scan finds these
changes, with one `stat` call per transcript.
"""

import os
import sys
import time
from collections.abc import Callable, Collection, Generator, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from msgspec import Struct

from ..copies.raw_copy import Stat
from ..formats.registry import all_formats
from ..ingest.transcripts import Transcript, of_this_user, roots, within

if TYPE_CHECKING:
    from watchfiles.main import FileChange

_MOUNTS: Final = Path("/proc/self/mountinfo")
_NETWORK: Final = frozenset(
    "9p afs beegfs ceph cifs fuse glusterfs gpfs lustre ncpfs nfs nfs4 prl_fs smb3 smbfs vboxsf virtiofs vmhgfs".split()
)
"""Types of file systems on which another machine may change files. With `fuse`, another program may do so."""


def is_network_mount(path: Path) -> bool:
    """Return whether files below a folder can change without an event.

    Only Linux reports the type of each file system. On other systems, the regular scan finds these changes.
    """
    if sys.platform != "linux":
        return False
    try:
        real, lines = os.fsencode(path.resolve()), _MOUNTS.read_bytes().splitlines()
    except (OSError, RuntimeError):
        return False
    kind, longest = "", -1
    for line in lines:
        mount, _, system = line.partition(b" - ")  # The number of fields before the dash varies (see proc(5)).
        fields = mount.split(b" ")
        if len(fields) < 5:
            continue
        point = fields[4].decode("unicode_escape").encode("latin-1").rstrip(b"/")  # Spaces are octal escapes.
        # If a folder has several mounts, the last mount counts.
        if (real + b"/").startswith(point + b"/") and len(point) >= longest:
            kind, longest = system.split(b" ")[0].decode("ascii", "replace"), len(point)
    return kind.partition(".")[0] in _NETWORK


_FOLDERS: Final = 8
"""Maximum number of folders to search separately for new transcripts. For more folders, a full scan is as fast."""

State: TypeAlias = Stat | int
"""State of a file (`Stat`) or fingerprint of a container. Every change of the content changes this value."""


class WatchedFolder(NamedTuple):
    """Folder with transcripts. A folder that was deleted and created again is a different folder."""

    path: Path
    device: int
    inode: int


class ScannedTranscript(Struct, frozen=True):
    """Transcript and its state at the time of the scan."""

    transcript: Transcript
    state: State


class TranscriptScan:
    """Scan for changed transcripts, which remembers the state of each ingested transcript.

    A transcript counts as changed until `mark_ingested` records its state.
    """

    def __init__(self) -> None:
        self._ingested: dict[Path, State] = {}
        self._found: dict[Path, Transcript] = {}

    def all_changed(self) -> list[ScannedTranscript]:
        """Return every transcript that changed."""
        self._found = {transcript.path: transcript for transcript in of_this_user()}
        self._ingested = {path: state for path, state in self._ingested.items() if path in self._found}
        return self._changed(self._found.values())

    def changed_among(self, paths: Collection[Path]) -> tuple[list[ScannedTranscript], bool]:
        """Return the changed transcripts among these paths, and new transcripts in the folders of unknown paths.

        The second value is true if every path is a transcript. If it is false, a full scan is needed. For example, a
        path can be a new folder.
        """
        unknown = [path for path in paths if path not in self._found]
        folders = {path if path.is_dir() else path.parent for path in unknown}
        searched = folders if len(folders) <= _FOLDERS else ()
        nearby = {transcript.path: transcript for folder in searched for transcript in within(folder)}
        new = {path: transcript for path, transcript in nearby.items() if path not in self._found}
        self._found |= new
        known = [path for path in paths if path in self._found]
        return self._changed(self._found[path] for path in {*known, *new}), len(known) == len(paths)

    def mark_ingested(self, scanned: Iterable[ScannedTranscript]) -> None:
        """Record the states in which these transcripts were ingested."""
        self._ingested.update({each.transcript.path: each.state for each in scanned})

    def mark_changed(self, paths: Iterable[Path] | None = None) -> None:
        """Treat these transcripts as changed. Without arguments, treat all transcripts as changed."""
        for path in list(self._ingested) if paths is None else paths:
            self._ingested.pop(path, None)

    def folders(self) -> frozenset[WatchedFolder]:
        """Return every folder in which a transcript may appear or change."""
        # An unreadable folder is its own root.
        root_of = {path: transcript.root for path, transcript in self._found.items() if path != transcript.root}
        around = {root.resolve() for known in all_formats() for root in roots(known)}
        around |= {root.resolve() for root in root_of.values()}
        # A link can point outside its root. Events of the root do not cover its target.
        linked = {path.parent for path in root_of if not around.intersection(path.parents)}
        folders = map(watched_folder, around | linked)
        return frozenset(folder for folder in folders if folder is not None)

    def _changed(self, transcripts: Iterable[Transcript]) -> list[ScannedTranscript]:
        scanned = [
            ScannedTranscript(transcript, state)
            for transcript in transcripts
            if (state := _state(transcript)) is not None
        ]
        return [each for each in scanned if self._ingested.get(each.transcript.path) != each.state]


def _state(transcript: Transcript) -> State | None:
    """Return the state of a transcript, or None if it was deleted or cannot be read.

    Unreadable folders have transcript entries of their own.
    """
    try:
        container_format = transcript.container_format
        return (
            Stat.of(transcript.path) if container_format is None else container_format.container_state(transcript.path)
        )
    except OSError:
        return None


def watched_folder(path: Path) -> WatchedFolder | None:
    """Return the current identity of a folder to watch, or None if the folder does not exist."""
    try:
        state = path.stat()
    except OSError:
        return None
    return WatchedFolder(path, state.st_dev, state.st_ino)


_WAIT: Final = 1.0
"""Maximum seconds of one wait."""
_DEBOUNCE_MS: Final = 250
_STEP_MS: Final = 100
_RETRY: Final = 60.0
"""Seconds between attempts to listen after a failure."""


class Changes(Struct, frozen=True):
    """Changed files and folders. `lost` is true if other paths may have changed too."""

    paths: frozenset[Path] = frozenset()
    lost: bool = False


class FileEvents:
    """Listener for file events of the operating system.

    Some folders, for example on network file systems, send no events. If a folder is of this kind, `may_miss_changes`
    is true.
    """

    def __init__(
        self, *, poll: bool = False, clock: Callable[[], float] = time.monotonic, seconds: float = _WAIT
    ) -> None:
        """Prepare to listen for events, unless `poll` is true. `seconds` is the maximum time of one wait."""
        self._poll, self._clock, self._seconds = poll, clock, seconds
        self._folders: frozenset[WatchedFolder] = frozenset()
        self._events: Generator[set[FileChange]] | None = None
        self._on_network = self._failed = False
        self._retry_at = 0.0

    @property
    def may_miss_changes(self) -> bool:
        """True if changes may happen without an event: while polling, after a failure, or on a network file system."""
        return self._poll or self._failed or self._on_network

    def follow(self, folders: Collection[WatchedFolder]) -> None:
        """Listen for events in these folders, and stop listening in all other folders."""
        if frozenset(folders) != self._folders:
            self.close()
            self._folders, self._retry_at = frozenset(folders), 0.0

    def wait(self) -> Changes:
        """Wait for changes, by default for up to one second."""
        if self._events is None and not self._poll and self._clock() >= self._retry_at:
            self._listen()
        if self._events is None:
            time.sleep(self._seconds)
            return Changes()
        try:
            changes = next(self._events)
        # The library also raises these errors for names that are not UTF-8. Its thread has then ended.
        except (RuntimeError, OSError):
            self.close()
            self._failed, self._retry_at = True, self._clock() + _RETRY
            return Changes(lost=True)
        self._failed = False
        return Changes(frozenset(Path(path) for _, path in changes))

    def close(self) -> None:
        """Stop listening."""
        if self._events is not None:
            self._events.close()
        self._events = None

    def _listen(self) -> None:
        from watchfiles import watch

        local = [folder.path for folder in self._folders if not is_network_mount(folder.path)]
        self._on_network = len(local) < len(self._folders)
        if not local:
            self._retry_at = self._clock() + _RETRY
            return
        self._events = watch(
            *local,
            watch_filter=None,
            debounce=_DEBOUNCE_MS,
            step=_STEP_MS,
            rust_timeout=round(self._seconds * 1000),
            yield_on_timeout=True,
            force_polling=False,
            # Without this setting, the library silently skips every folder that it cannot listen to.
            ignore_permission_denied=False,
        )
