"""Base class of formats whose transcripts are files in the agent's own folders."""

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from ...core.conversation import Session
from ...core.report import Unsearched
from ..files.lines import Record
from . import folders
from .record_reader import RecordReader


class FolderFormat(ABC):
    """Transcript format that is defined by its folders, its file names and the fields of its records."""

    agent: ClassVar[str]
    reader_class: ClassVar[type[RecordReader]]
    home_variable: ClassVar[str] = ""
    """Environment variable with the agent's data folder, such as `CODEX_HOME`. Empty if there is none."""
    home_folder: ClassVar[str] = ""
    """Default data folder of the agent, relative to the user's home folder, such as `.codex`."""
    root_folders: ClassVar[tuple[str, ...]] = ()
    """Folders that contain transcripts, relative to the agent's data folder, such as `sessions`."""
    other_folders: ClassVar[frozenset[str]] = frozenset()
    """Names of subfolders without transcripts, which are not searched, such as `checkpoints`."""
    suffixes: ClassVar[tuple[str, ...]] = (".jsonl",)
    """Suffixes of transcript files. The tuple is empty if the agent stores all sessions in containers."""
    other_files: ClassVar[frozenset[str]] = frozenset()
    """Names of files without transcripts that have one of the `suffixes`, such as `logs.json`."""
    name_pattern: ClassVar[re.Pattern[str]] = re.compile(r"(?!)")
    """Pattern of file names that only this agent uses for transcripts. The default matches no name."""

    def roots(self) -> list[Path]:
        """Return the existing folders in which the agent stores this user's transcripts."""
        home = Path(os.environ.get(self.home_variable) or Path.home() / self.home_folder).expanduser()
        return [home / name for name in self.root_folders if (home / name).is_dir()]

    def transcripts(self, root: Path, skipped: Unsearched | None = None) -> Iterator[Path]:
        """Yield every transcript below a folder, sorted."""
        found = folders.files(root, self._has_transcript_name, without=self.other_folders, skipped=skipped)
        return (path for path in found if self._has_transcript_path(path) and self.may_be_transcript(path, root))

    def may_be_transcript(self, path: Path, root: Path) -> bool:
        """Return whether a file below a folder can be a transcript, according to its name and path."""
        inside = path.relative_to(root).parts[:-1]
        return self._has_transcript_name(path.name) and self.other_folders.isdisjoint(inside)

    def matches_name(self, name: str) -> bool:
        """Return whether a file name follows a pattern that only this agent uses for transcripts."""
        return self.name_pattern.fullmatch(name) is not None

    def archive_name(self, path: Path, root: Path) -> str:
        """Return the path relative to the root, with unsafe characters percent-encoded."""
        return folders.archive_name(path, root)

    def recognises(self, records: Sequence[Record]) -> bool:
        """Return whether at least one of these records was written by this agent, judged by its fields."""
        return any(map(self._is_from_agent, records))

    @abstractmethod
    def identify(self, path: Path, head: bytes) -> Session:
        """Return the session of a file, determined from its path and its first lines."""

    def reader(self, session: Session, *, shorten: bool = True) -> RecordReader:
        """Return a reader for one file of a session."""
        return self.reader_class(session, shorten=shorten)

    @abstractmethod
    def _is_from_agent(self, record: Record) -> bool:
        """Return whether a record has fields that only this agent writes."""

    def _has_transcript_name(self, name: str) -> bool:
        return name.endswith(self.suffixes) and name not in self.other_files

    def _has_transcript_path(self, path: Path) -> bool:  # noqa: ARG002 - overridden where the path matters
        """Return whether the agent stores transcripts at this path."""
        return True
