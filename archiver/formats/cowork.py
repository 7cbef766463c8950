"""Support for Cowork, the agent of the Claude desktop app.

The app runs Claude Code for each task, with a private configuration folder in `local-agent-mode-sessions`. Sessions of
the app's Code tab are sessions of `claude-code`. `docs/formats/cowork.md` names the sources.

- Supported: what is supported for Claude Code, and the title of the task.
- Not supported: `audit.jsonl`, which repeats the conversation, and the files of a task.
- Tested with: descriptions of versions with Claude Code 2.1.5 to 2.1.234, and lines that other readers use as fixtures.
- Test data: `examples/cowork.jsonl`.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from ...core.conversation import Session
from ..lines import Line, Record
from .claude_code import ClaudeCode, ClaudeCodeReader, is_cowork
from .json_values import json_file, listing, string
from .transcript_format import RecordEvents, TranscriptFormat

_SESSIONS = "local-agent-mode-sessions"


class CoworkReader(ClaudeCodeReader):
    """Reader of one transcript."""

    def _record(self, record: Record, line: Line) -> RecordEvents:
        """Return the events of a record. Its working folder is one of the virtual machine, if the task has another."""
        if self._session.cwd and "cwd" in record:
            record = {**record, "cwd": self._session.cwd}
        return super()._record(record, line)


class Cowork(ClaudeCode):
    """Transcripts in `local-agent-mode-sessions/<organisation>/<account>/local_<task>/.claude/projects`."""

    agent = "cowork"
    reader_class = CoworkReader
    home_variable = ""
    other_files = ClaudeCode.other_files | {"audit.jsonl"}
    other_folders = ClaudeCode.other_folders | {"skills-plugin", "uploads", "outputs", "debug", "backups"}

    def roots(self) -> list[Path]:
        """Return the existing folders of tasks of this user."""
        home = Path.home()
        configuration = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config").expanduser()
        folders = [home / "Library" / "Application Support", configuration, home / "AppData" / "Roaming"]
        return [root for folder in folders if (root := folder / "Claude" / _SESSIONS).is_dir()]

    def matches_name(self, name: str) -> bool:  # noqa: ARG002 - the names are those of Claude Code
        """Return False, because no name is used by this agent only."""
        return False

    def identify(self, path: Path, head: bytes) -> Session:
        """Return the session of a transcript. The app describes its task in a file beside the task's folder."""
        session = super().identify(path, head)
        folders = [folder for folder in path.parents if folder.name.startswith("local_")]
        about = json_file(folders[-1].with_name(f"{folders[-1].name}.json")) if folders else Record()
        if not session.parent_id:
            session.title = string(about.get("title"))
        selected = (string(folder) for folder in listing(about.get("userSelectedFolders")))
        session.cwd = next((folder for folder in selected if folder), session.cwd)
        return session

    def recognises(self, records: Sequence[Record]) -> bool:
        """Return whether Cowork ran Claude Code to write at least one of these records."""
        return any(map(is_cowork, records))

    def _has_transcript_path(self, path: Path) -> bool:
        return "projects" in path.parts


FORMAT: TranscriptFormat = Cowork()
