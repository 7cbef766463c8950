"""Format of Gemini CLI conversations: finds and recognises them."""

import re
from pathlib import Path

from ....core.conversation import Session, SessionKind
from ...files.lines import Record, head_records
from ..folder_format import FolderFormat
from ..json_values import string
from ..transcript_format import TranscriptFormat
from .gemini_projects import project_folder
from .gemini_reader import GeminiReader

_CHATS = "chats"


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

        The working folder comes from the files in which Gemini CLI records the folders of its projects.
        """
        header = next(filter(_is_header, head_records(head)), Record())
        native_id = string(header.get("sessionId")) or path.name.partition(".")[0]
        nested = header.get("kind") == "subagent" and path.parent.parent.name == _CHATS
        parent, chats = (path.parent.name, path.parent.parent) if nested else ("", path.parent)
        cwd = project_folder(chats.parent, string(header.get("projectHash")))
        kind = SessionKind.SUBAGENT if header.get("kind") == "subagent" else SessionKind.MAIN
        return Session(self.agent, native_id, kind, parent, cwd=cwd)

    def _is_from_agent(self, record: Record) -> bool:
        is_reply = record.get("type") == "gemini" and not {"content", "toolCalls"}.isdisjoint(record)
        return _is_header(record) or is_reply or "$rewindTo" in record

    def _has_transcript_path(self, path: Path) -> bool:
        return _CHATS in path.parts


def _is_header(record: Record) -> bool:
    named = isinstance(record.get("sessionId"), str) and "type" not in record
    return named and ("projectHash" in record or {"startTime", "lastUpdated"} <= record.keys())


FORMAT: TranscriptFormat = Gemini()
