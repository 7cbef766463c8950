"""Format of Gemini CLI conversations: finds and recognises them."""

import re
from pathlib import Path

from ....core.conversation import Session, SessionKind
from ...files.lines import Record, head_records
from ..folder_format import FolderFormat
from ..json_values import string
from ..transcript_format import TranscriptFormat
from .gemini_reader import GeminiReader

_CHATS = "chats"
_PROJECT_ROOT, _PROJECT_ROOT_MAX = ".project_root", 4096


class Gemini(FolderFormat):
    """Conversations in `~/.gemini/tmp/<project>/chats`.

    Conversations of sub-agents are in a folder named after the parent.
    """

    agent = "gemini"
    reader_class = GeminiReader
    home_variable, root_folders = "GEMINI_CLI_HOME", (".gemini/tmp",)
    suffixes = (".json", ".jsonl")
    other_files = frozenset({"logs.json"})
    other_folders = frozenset({"checkpoints", "tool-outputs"})
    name_pattern = re.compile(r"session-\d{4}-\d\d-\d\dT\d\d-\d\d-[0-9a-f]{8}\.jsonl?")

    def may_be_transcript(self, path: Path, root: Path) -> bool:
        """Return whether a file can be a conversation. Documents that were migrated to JSON lines are excluded."""
        migrated = path.suffix == ".json" and path.with_suffix(".jsonl").exists()
        return super().may_be_transcript(path, root) and not migrated

    def identify(self, path: Path, head: bytes) -> Session:
        """Return the session, identified by the header or, without a header, by the file name.

        The working folder comes from the file `.project_root`, which is beside the folder `chats`.
        """
        header = next(filter(self._is_from_agent, head_records(head)), Record())
        native_id = string(header.get("sessionId")) or path.name.partition(".")[0]
        if header.get("kind") != "subagent":
            return Session(self.agent, native_id, cwd=_project_root(path.parent))
        nested = path.parent.parent.name == _CHATS
        parent, chats = (path.parent.name, path.parent.parent) if nested else ("", path.parent)
        return Session(self.agent, native_id, SessionKind.SUBAGENT, parent, cwd=_project_root(chats))

    def _is_from_agent(self, record: Record) -> bool:
        return "projectHash" in record and isinstance(record.get("sessionId"), str)

    def _has_transcript_path(self, path: Path) -> bool:
        return _CHATS in path.parts


def _project_root(chats: Path) -> str:
    """Return the path of a project, or an empty string if the agent did not record the path."""
    try:
        with (chats.parent / _PROJECT_ROOT).open(encoding="utf-8", errors="replace") as file:
            return file.read(_PROJECT_ROOT_MAX).strip()
    except OSError:
        return ""


FORMAT: TranscriptFormat = Gemini()
