"""Copies of the files in which Claude Code stores large results of tools, beside the raw copy of the transcript.

Claude Code writes such a file to the folder `tool-results` of a session, and its path into the transcript. The copies
have no rows in the database: a file belongs to each raw copy that mentions it, and is removed with the last mention.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

from ...core.runtime import replacing
from .raw_copy import Copy

FOLDER: Final = "tool-results"
_SUBAGENTS: Final = "subagents"
_SUFFIX: Final = ".jsonl"
_LARGEST: Final = 64 << 20
"""Maximum bytes of a file that is copied."""
_BLOCK: Final = 4 << 20
_LONGEST: Final = 255
"""Maximum bytes of the name of a file."""


class ResultFiles:
    """Result files of one transcript, by the path of the agent's file and its raw copy."""

    def __init__(self, path: Path, copy: Copy) -> None:
        self._copy = copy
        is_transcript = path.suffix == _SUFFIX and copy.archived.startswith("claude-code/")
        self._copies = copy.path.with_suffix("") / FOLDER if is_transcript else None
        # The results of sub-agents are in the folder of the session that started them.
        owner = next((folder.parent for folder in path.parents if folder.name == _SUBAGENTS), path.with_suffix(""))
        self.folder = owner / FOLDER
        """Folder of the agent's files."""

    def names(self) -> list[str]:
        """Return the names of the copied files."""
        return [entry.name for entry in _files(self._copies)]

    def missing(self) -> list[str]:
        """Return the names of the copied files that the agent does not have."""
        return [name for name in self.names() if not os.path.lexists(self.folder / name)]

    def open(self, name: str) -> BinaryIO:
        """Open a copied file. Raises `OSError`."""
        return ((self._copies or Path()) / name).open("rb")

    def update(self) -> None:
        """Copy the new and changed files that the raw copy mentions. Raises `OSError`."""
        if self._copies is None:
            return
        changed = [entry for entry in _files(self.folder) if self._is_changed(entry)]
        for name in self._mentioned([entry.name for entry in changed]):
            self._copies.mkdir(mode=0o700, parents=True, exist_ok=True)
            with (self.folder / name).open("rb") as source, replacing(self._copies / name) as target:
                shutil.copyfileobj(source, target, _BLOCK)

    def prune(self) -> None:
        """Remove the copied files that the raw copy no longer mentions. Raises `OSError`, or `CopyDamaged`."""
        names = self.names()
        kept = self._mentioned(names) if self._copy.exists() else set[str]()
        for name in set(names) - kept:
            ((self._copies or Path()) / name).unlink(missing_ok=True)
        for folder in (self._copies, self._copies.parent) if names and self._copies is not None else ():
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()

    def _is_changed(self, entry: os.DirEntry[str]) -> bool:
        size = entry.stat(follow_symlinks=False).st_size
        try:
            return size <= _LARGEST and ((self._copies or Path()) / entry.name).stat().st_size != size
        except FileNotFoundError:
            return True

    def _mentioned(self, names: Sequence[str]) -> set[str]:
        """Return those of the names that occur in the raw copy."""
        waiting, tail = {name: name.encode(errors="surrogateescape") for name in names}, b""
        if not waiting:
            return set()
        with self._copy.open() as file:
            while waiting and (block := file.read(_BLOCK)):
                data = tail + block
                waiting = {name: encoded for name, encoded in waiting.items() if encoded not in data}
                tail = data[-_LONGEST:]
        return set(names) - waiting.keys()


def is_result_file(name: str) -> bool:
    """Return whether an archive path is that of a copied result file."""
    return name.startswith("claude-code/") and name.split("/")[-2:-1] == [FOLDER]


def _files(folder: Path | None) -> Iterator[os.DirEntry[str]]:
    """Yield the regular files in a folder. A missing folder has none, and links are ignored."""
    if folder is None:
        return
    try:
        with os.scandir(folder) as entries:
            yield from (entry for entry in entries if entry.is_file(follow_symlinks=False))
    except (FileNotFoundError, NotADirectoryError):
        return
