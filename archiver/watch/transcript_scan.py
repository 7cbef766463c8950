"""Scan for transcripts that changed since they were last ingested. One `stat` a transcript tells."""

from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

from ..copies.raw import Stat
from ..formats.registry import all_formats
from ..ingest.transcripts import Transcript, near, of_this_user, roots

_FOLDERS: Final = 8
"""Unknown folders that are searched one by one; searching more of them costs as much as a full scan."""

State: TypeAlias = Stat | int
"""A value that differs whenever the transcript changed."""


class WatchedFolder(NamedTuple):
    """A folder with transcripts; a folder that was deleted and made again is another."""

    path: Path
    device: int
    inode: int


class ScannedTranscript(Struct, frozen=True):
    """A transcript and its state at the time of the scan."""

    transcript: Transcript
    state: State


class TranscriptScan:
    """Remembers the state of each ingested transcript. A transcript counts as changed until it is kept."""

    def __init__(
        self,
        find: Callable[[], Iterable[Transcript]] = of_this_user,
        near: Callable[[Path], Iterable[Transcript]] = near,
    ) -> None:
        self._find, self._near = find, near
        self._ingested: dict[Path, State] = {}
        self._found: dict[Path, Transcript] = {}

    def all(self) -> list[ScannedTranscript]:
        """Return every transcript that changed."""
        self._found = {transcript.path: transcript for transcript in self._find()}
        self._ingested = {path: state for path, state in self._ingested.items() if path in self._found}
        return self._changed(self._found.values())

    def some(self, paths: Collection[Path]) -> tuple[list[ScannedTranscript], bool]:
        """Return what changed of these files, and of new files beside unknown ones.

        The second value is whether every path was a transcript. Otherwise a full scan is needed, for example after a
        folder was created.
        """
        unknown = [path for path in paths if path not in self._found]
        folders = {path if path.is_dir() else path.parent for path in unknown}
        searched = folders if len(folders) <= _FOLDERS else ()
        beside = {found.path: found for folder in searched for found in self._near(folder)}
        new = {path: found for path, found in beside.items() if path not in self._found}
        self._found |= new
        known = [path for path in paths if path in self._found]
        return self._changed(self._found[path] for path in {*known, *new}), len(known) == len(paths)

    def keep(self, scanned: Iterable[ScannedTranscript]) -> None:
        """Remember that these were ingested in this state."""
        self._ingested.update({each.transcript.path: each.state for each in scanned})

    def forget(self, paths: Iterable[Path] | None = None) -> None:
        """Treat these transcripts as changed; all of them if none are named."""
        for path in list(self._ingested) if paths is None else paths:
            self._ingested.pop(path, None)

    def folders(self) -> frozenset[WatchedFolder]:
        """Return every folder in which a transcript may appear or change."""
        found = {path: each.root for path, each in self._found.items() if path != each.root}  # no closed folders
        around = {root.resolve() for known in all_formats() for root in roots(known)}
        around |= {root.resolve() for root in found.values()}
        # A link leads out of its root, where no event of the root comes from.
        linked = {path.parent for path in found if not around.intersection(path.parents)}
        folders = map(_watched_folder, around | linked)
        return frozenset(folder for folder in folders if folder is not None)

    def _changed(self, transcripts: Iterable[Transcript]) -> list[ScannedTranscript]:
        scanned = [ScannedTranscript(each, state) for each in transcripts if (state := _state(each)) is not None]
        return [each for each in scanned if self._ingested.get(each.transcript.path) != each.state]


def _state(transcript: Transcript) -> State | None:
    """Return the state of a transcript; None if it vanished or cannot be read, which its folder then logs."""
    try:
        held_by = transcript.held_by
        return Stat.of(transcript.path) if held_by is None else held_by.container_state(transcript.path)
    except OSError:
        return None


def _watched_folder(path: Path) -> WatchedFolder | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return WatchedFolder(path, found.st_dev, found.st_ino)
