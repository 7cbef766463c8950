"""Locations and recognition of the sessions of Kimi Code."""

from pathlib import Path

from ....core.conversation import Session, SessionKind
from ...files.lines import Record
from ..folder_format import FolderFormat
from ..json_values import string
from ..kimi_shared import session_folder
from ..transcript_format import TranscriptFormat
from .kimi_code_reader import KimiCodeReader

_WIRE = "wire.jsonl"
_AGENTS, _MAIN = "agents", "main"
_OWN = {"context.append_message", "context.append_loop_event", "context.apply_compaction", "context.undo"}


class KimiCode(FolderFormat):
    """Sessions in `~/.kimi-code/sessions/<folder>/session_<id>/agents/<agent>/wire.jsonl`, one journal per agent."""

    agent = "kimi-code"
    reader_class = KimiCodeReader
    home_variable, home_folder, root_folders = "KIMI_CODE_HOME", ".kimi-code", ("sessions",)

    def identify(self, path: Path, head: bytes) -> Session:  # noqa: ARG002 - no record names the session
        """Return the session, identified by the folders of the session and the agent."""
        folder = path.parent
        if path.name != _WIRE or folder.parent.name != _AGENTS:
            return Session(self.agent, folder.name if path.name == _WIRE else path.stem)
        session = folder.parent.parent
        native_id, cwd = session.name.removeprefix("session_"), session_folder(session / "state.json")
        if folder.name == _MAIN:
            return Session(self.agent, native_id, cwd=cwd)
        return Session(self.agent, f"{native_id}-{folder.name}", SessionKind.SUBAGENT, native_id, cwd=cwd)

    def _is_own(self, record: Record) -> bool:
        kind = string(record.get("type"))
        # Kimi CLI writes the same first line, but without the creation time.
        return kind in _OWN or (kind == "metadata" and "protocol_version" in record and "created_at" in record)

    def _has_transcript_name(self, name: str) -> bool:
        return name.endswith(".jsonl") and name != "session_index.jsonl"

    def _is_in_place(self, path: Path) -> bool:
        return path.name == _WIRE


FORMAT: TranscriptFormat = KimiCode()
