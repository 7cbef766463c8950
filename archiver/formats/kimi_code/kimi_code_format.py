"""The format of Kimi Code."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from ....core.conversation import Session, SessionKind
from ....core.report import Unsearched
from ...files.lines import Record
from .. import folders
from ..json_values import string
from ..kimi_folders import place_of
from .kimi_code_reader import KimiCodeReader

_WIRE = "wire.jsonl"
_AGENTS, _MAIN = "agents", "main"
_OWN = {"context.append_message", "context.append_loop_event", "context.apply_compaction", "context.undo"}


class KimiCode:
    """Sessions under `~/.kimi-code/sessions`: a folder each, with a journal for every agent that took part."""

    agent = "kimi-code"

    def roots(self) -> list[Path]:
        """The existing folder of this user's sessions."""
        home = Path(os.environ.get("KIMI_CODE_HOME") or Path.home() / ".kimi-code").expanduser()
        folder = home / "sessions"
        return [folder] if folder.is_dir() else []

    def transcripts(self, root: Path, skipped: Unsearched | None = None) -> Iterator[Path]:
        """`<folder>/session_<id>/agents/<agent>/wire.jsonl`, sorted."""
        return folders.files(root, lambda name: name == _WIRE, skipped=skipped)

    def keeps(self, path: Path, root: Path) -> bool:  # noqa: ARG002 - its folders have no others within
        """Whether a file may be a journal by its name."""
        return path.suffix == ".jsonl" and path.name != "session_index.jsonl"

    def names(self, name: str) -> bool:  # noqa: ARG002 - the older product names its journals alike
        """Never: the name alone does not tell."""
        return False

    def archive_name(self, path: Path, root: Path) -> str:
        """`<folder>/session_<id>/agents/<agent>/wire.jsonl`, as it lies below its root."""
        return folders.archive_name(path, root)

    def claims(self, records: Sequence[Record]) -> bool:
        """Whether any of the records is of a kind that only Kimi Code writes."""
        return any(_is_own(record) for record in records)

    def identify(self, path: Path, head: bytes) -> Session:  # noqa: ARG002 - no record tells
        """The folders tell: that of the session, and within it that of the agent."""
        folder = path.parent
        if path.name != _WIRE or folder.parent.name != _AGENTS:
            return Session(self.agent, folder.name if path.name == _WIRE else path.stem)
        session = folder.parent.parent
        native_id, place = session.name.removeprefix("session_"), place_of(session / "state.json")
        if folder.name == _MAIN:
            return Session(self.agent, native_id, cwd=place)
        return Session(self.agent, f"{native_id}-{folder.name}", SessionKind.SUBAGENT, native_id, cwd=place)

    def reader(self, session: Session, *, shorten: bool = True) -> KimiCodeReader:
        """A reader for one file of that session."""
        return KimiCodeReader(session, shorten=shorten)


def _is_own(record: Record) -> bool:
    kind = string(record.get("type"))
    # The older product writes the same first line, without the time at which it was made.
    return kind in _OWN or (kind == "metadata" and "protocol_version" in record and "created_at" in record)
