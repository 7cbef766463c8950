"""Locations and recognition of the sessions of Antigravity, the successor of Gemini CLI."""

import os
import re
from pathlib import Path

from ....core.conversation import Session
from ...files.lines import Record
from .. import folders
from ..folder_format import FolderFormat
from ..transcript_format import TranscriptFormat
from .antigravity_reader import AntigravityReader

_TRANSCRIPT = "transcript.jsonl"


class Antigravity(FolderFormat):
    """Sessions in `~/.gemini/antigravity*/brain/<session>/.system_generated/logs/transcript.jsonl`."""

    agent = "antigravity"
    reader_class = AntigravityReader
    home_variable = "GEMINI_CLI_HOME"
    name_pattern = re.compile(re.escape(_TRANSCRIPT))

    def roots(self) -> list[Path]:
        """Return the session folders of this user for each edition, including unreadable folders."""
        home = Path(os.environ.get(self.home_variable) or Path.home()).expanduser()
        found = [edition / "brain" for edition in folders.matching([(home / ".gemini", "antigravity*")])]
        return [folder for folder in found if folders.is_closed(folder) or folder.is_dir()]

    def identify(self, path: Path, head: bytes) -> Session:  # noqa: ARG002 - no record names the session
        """Return the session, identified by the name of its folder."""
        named = path.name == _TRANSCRIPT and len(path.parents) > 2
        return Session(self.agent, (path.parents[2].name if named else "") or path.stem)

    def _is_own(self, record: Record) -> bool:
        return "step_index" in record and "source" in record

    def _is_in_place(self, path: Path) -> bool:
        return path.name == _TRANSCRIPT


FORMAT: TranscriptFormat = Antigravity()
