"""Locations and recognition of the sessions of Kimi CLI."""

import re
from pathlib import Path

from ....core.conversation import Session, SessionKind
from ...files.lines import Record
from ..folder_format import FolderFormat
from ..json_values import mapping, string
from ..kimi_shared import session_folder
from ..transcript_format import TranscriptFormat
from .kimi_cli_reader import KimiCliReader

_WIRE, _CONTEXT = "wire.jsonl", "context.jsonl"
_SUBAGENTS = "subagents"
_ROLES = {"_system_prompt", "_checkpoint", "_usage"}


class KimiCli(FolderFormat):
    """Sessions in `~/.kimi/sessions/<folder>/<session>`.

    The file is `wire.jsonl`, or `context.jsonl` in older versions.
    """

    agent = "kimi-cli"
    reader_class = KimiCliReader
    home_variable, home_folder, root_folders = "KIMI_SHARE_DIR", ".kimi", ("sessions",)
    name_pattern = re.compile(re.escape(_CONTEXT))

    def may_be_transcript(self, path: Path, root: Path) -> bool:
        """Return whether a file may be a session, excluding contexts of sessions that have a journal."""
        return super().may_be_transcript(path, root) and (path.name != _CONTEXT or not path.with_name(_WIRE).exists())

    def identify(self, path: Path, head: bytes) -> Session:  # noqa: ARG002 - no record names the session
        """Return the session, identified by its folder; the folder of a sub-agent is below its parent's folder."""
        folder = path.parent
        if path.name not in {_WIRE, _CONTEXT}:
            return Session(self.agent, path.stem)
        if folder.parent.name != _SUBAGENTS:
            return Session(self.agent, folder.name, cwd=session_folder(folder / "state.json"))
        session = folder.parent.parent
        native_id, cwd = f"{session.name}-{folder.name}", session_folder(session / "state.json")
        return Session(self.agent, native_id, SessionKind.SUBAGENT, session.name, cwd=cwd)

    def _is_own(self, record: Record) -> bool:
        message = mapping(record.get("message"))
        event = "timestamp" in record and {"type", "payload"} <= message.keys()
        return event or string(record.get("role")) in _ROLES

    def _is_in_place(self, path: Path) -> bool:
        return path.name in {_WIRE, _CONTEXT}


FORMAT: TranscriptFormat = KimiCli()
