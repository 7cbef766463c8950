"""Locations and recognition of the sessions of GitHub Copilot CLI."""

import re
from pathlib import Path

from ....core.conversation import Session
from ...files.lines import Record, head_records
from ..folder_format import FolderFormat
from ..json_values import mapping, string
from ..transcript_format import TranscriptFormat
from .copilot_reader import CopilotReader

_EVENTS = "events.jsonl"


class Copilot(FolderFormat):
    """Sessions in `~/.copilot/session-state/<session>/events.jsonl`; older versions used `<session>.jsonl`."""

    agent = "copilot"
    reader_class = CopilotReader
    home_variable, home_folder, root_folders = "COPILOT_HOME", ".copilot", ("session-state",)
    other_folders = frozenset({"files", "checkpoints", "research", "rewind-snapshots"})
    name_pattern = re.compile(re.escape(_EVENTS))

    def identify(self, path: Path, head: bytes) -> Session:
        """Return the session, identified by its first event or, without an ID there, by the folder or file name."""
        started = (string(mapping(record.get("data")).get("sessionId")) for record in head_records(head))
        named = next(filter(None, started), "")
        return Session(self.agent, named or (path.parent.name if path.name == _EVENTS else path.stem))

    def _is_own(self, record: Record) -> bool:
        return "." in string(record.get("type")) and isinstance(record.get("data"), dict) and "parentId" in record


FORMAT: TranscriptFormat = Copilot()
