"""The format of GitHub Copilot CLI."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from ....core.conversation import Session
from ....core.report import Unsearched
from ...files.lines import Record, head_records
from .. import folders
from ..json_values import mapping, string
from .copilot_reader import CopilotReader

_EVENTS = "events.jsonl"
# What the agent made in a session, and earlier states of it, lie beside its events.
_OTHER_FOLDERS = {"files", "checkpoints", "research", "rewind-snapshots"}


class Copilot:
    """Events under `~/.copilot/session-state`, one JSON record per line."""

    agent = "copilot"

    def roots(self) -> list[Path]:
        """The existing folder of this user's sessions."""
        home = Path(os.environ.get("COPILOT_HOME") or Path.home() / ".copilot").expanduser()
        folder = home / "session-state"
        return [folder] if folder.is_dir() else []

    def transcripts(self, root: Path, skipped: Unsearched | None = None) -> Iterator[Path]:
        """`<session>/events.jsonl`, and `<session>.jsonl` as older versions wrote it; sorted."""
        return folders.files(root, _is_jsonl, without=_OTHER_FOLDERS, skipped=skipped)

    def keeps(self, path: Path, root: Path) -> bool:
        """Whether a file is not one of those that lie beside the events."""
        return _is_jsonl(path.name) and _OTHER_FOLDERS.isdisjoint(path.relative_to(root).parts[:-1])

    def names(self, name: str) -> bool:
        """Whether it is that of a session's events."""
        return name == _EVENTS

    def archive_name(self, path: Path, root: Path) -> str:
        """`<session>/events.jsonl`, as it lies below its root."""
        return folders.archive_name(path, root)

    def claims(self, records: Sequence[Record]) -> bool:
        """Whether any of the records is an event of a session, as only Copilot writes them."""
        return any(
            "." in string(record.get("type")) and isinstance(record.get("data"), dict) and "parentId" in record
            for record in records
        )

    def identify(self, path: Path, head: bytes) -> Session:
        """The event that starts the session tells its id, else its folder or its name does."""
        started = (mapping(record.get("data")).get("sessionId") for record in head_records(head))
        named = next((string(each) for each in started if each), "")
        return Session(self.agent, named or (path.parent.name if path.name == _EVENTS else path.stem))

    def reader(self, session: Session, *, shorten: bool = True) -> CopilotReader:
        """A reader for one file of that session."""
        return CopilotReader(session, shorten=shorten)


def _is_jsonl(name: str) -> bool:
    return name.endswith(".jsonl")
