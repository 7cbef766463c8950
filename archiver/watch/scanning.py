"""Scanning: which transcripts are not as they were when they were last taken up. A `stat` for each tells."""

from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

from ..copies.raw import Stat
from ..formats.registry import all_formats
from ..ingest.transcripts import Transcript, near, of_this_user, roots

_FEW: Final = 8
"""Folders that are looked into one by one: a look into more of them costs as much as one at everything."""

State: TypeAlias = Stat | int
"""What is another whenever a transcript changed."""


class Folder(NamedTuple):
    """A folder in which transcripts are; one that was deleted and made again is another."""

    path: Path
    device: int
    inode: int


class Seen(Struct, frozen=True):
    """A transcript as it was at one moment."""

    transcript: Transcript
    state: State


class Scan:
    """Remembers the state of each transcript. What was seen counts as new until it is kept."""

    def __init__(
        self,
        find: Callable[[], Iterable[Transcript]] = of_this_user,
        near: Callable[[Path], Iterable[Transcript]] = near,
    ) -> None:
        self._find, self._near = find, near
        self._known: dict[Path, State] = {}
        self._found: dict[Path, Transcript] = {}

    def look(self) -> list[Seen]:
        """Everything that changed, wherever it lies."""
        self._found = {transcript.path: transcript for transcript in self._find()}
        self._known = {path: state for path, state in self._known.items() if path in self._found}
        return self._changed(self._found.values())

    def look_at(self, paths: Collection[Path]) -> tuple[list[Seen], bool]:
        """What changed of these files, and is new around those that are unknown; and whether that explains them all.

        Otherwise only a whole look can tell, as where a folder was made: more may have come into it since.
        """
        unknown = [path for path in paths if path not in self._found]
        folders = {path if path.is_dir() else path.parent for path in unknown}
        looked_into = folders if len(folders) <= _FEW else ()
        around = {found.path: found for folder in looked_into for found in self._near(folder)}
        fresh = {path: found for path, found in around.items() if path not in self._found}
        self._found |= fresh
        told = [path for path in paths if path in self._found]
        return self._changed(self._found[path] for path in {*told, *fresh}), len(told) == len(paths)

    def keep(self, seen: Iterable[Seen]) -> None:
        """These were taken up as they were seen."""
        self._known.update({each.transcript.path: each.state for each in seen})

    def forget(self, paths: Iterable[Path] | None = None) -> None:
        """Whatever these are, they are looked at anew; all of them where none is named."""
        for path in list(self._known) if paths is None else paths:
            self._known.pop(path, None)

    def roots(self) -> frozenset[Folder]:
        """The folders where the agents of this user keep their transcripts, with all links followed."""
        return _folders({root.resolve() for known in all_formats() for root in roots(known)})

    def folders(self) -> frozenset[Folder]:
        """Every folder in which a transcript may appear or change."""
        found = {path: each.root for path, each in self._found.items() if path != each.root}  # no closed folders
        around = {folder.path for folder in self.roots()} | {root.resolve() for root in found.values()}
        # A link leads out of its root, and whoever listens at the root hears nothing of what lies there.
        away = {path.parent for path in found if not around.intersection(path.parents)}
        return _folders(around | away)

    def _changed(self, transcripts: Iterable[Transcript]) -> list[Seen]:
        seen = [Seen(each, state) for each in transcripts if (state := _state(each)) is not None]
        return [each for each in seen if self._known.get(each.transcript.path) != each.state]


def _state(transcript: Transcript) -> State | None:
    """None for what vanished meanwhile, or cannot be looked at: then its folder says so in the log."""
    try:
        held_by = transcript.held_by
        return Stat.of(transcript.path) if held_by is None else held_by.container_state(transcript.path)
    except OSError:
        return None


def _folders(paths: Iterable[Path]) -> frozenset[Folder]:
    return frozenset(folder for path in paths if (folder := _folder(path)) is not None)


def _folder(path: Path) -> Folder | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return Folder(path, found.st_dev, found.st_ino)
