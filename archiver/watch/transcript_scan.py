"""Scan for transcripts that changed since they were last ingested, with one `stat` call per transcript."""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

from ..copies.raw import Stat
from ..formats.registry import all_formats
from ..ingest.transcripts import Transcript, of_this_user, roots, within

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
        nearby = {found.path: found for folder in searched for found in within(folder)}
        new = {path: found for path, found in nearby.items() if path not in self._found}
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
        found = {path: each.root for path, each in self._found.items() if path != each.root}
        around = {root.resolve() for known in all_formats() for root in roots(known)}
        around |= {root.resolve() for root in found.values()}
        # A link can point outside its root. Events of the root do not cover its target.
        linked = {path.parent for path in found if not around.intersection(path.parents)}
        folders = map(watched_folder, around | linked)
        return frozenset(folder for folder in folders if folder is not None)

    def _changed(self, transcripts: Iterable[Transcript]) -> list[ScannedTranscript]:
        scanned = [ScannedTranscript(each, state) for each in transcripts if (state := _state(each)) is not None]
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
        found = path.stat()
    except OSError:
        return None
    return WatchedFolder(path, found.st_dev, found.st_ino)
