"""The format of Codex."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ....core.conversation import Session, SessionKind
from ....core.report import Unsearched
from ...files.lines import Record, head_records
from .. import folders
from ..json_values import mapping, string
from .codex_envelopes import headers, parent_of
from .codex_reader import CodexReader

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_ENVELOPES = {"session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state"}
_OTHER_FILES = {"history.jsonl", "session_index.jsonl"}


class Codex:
    """Rollouts under `~/.codex`, one JSON record per line, the older ones compressed."""

    agent = "codex"

    def roots(self) -> list[Path]:
        """The existing folders of current and of archived sessions of this user."""
        home = Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex").expanduser()
        return [folder for folder in (home / "sessions", home / "archived_sessions") if folder.is_dir()]

    def transcripts(self, root: Path, skipped: Unsearched | None = None) -> Iterator[Path]:
        """Rollouts in a folder, sorted; of a rollout that is there twice, the one that is not compressed."""
        return (path for path in folders.files(root, _is_rollout, skipped=skipped) if self.keeps(path, root))

    def keeps(self, path: Path, root: Path) -> bool:  # noqa: ARG002 - its folders have no others within
        """Whether a file is a rollout by its name, and not the compressed twin of another."""
        return _is_rollout(path.name) and (path.suffix != ".zst" or not path.with_suffix("").exists())

    def names(self, name: str) -> bool:
        """Whether it begins as those of rollouts do."""
        return _is_rollout(name) and name.startswith("rollout-")

    def archive_name(self, path: Path, root: Path) -> str:
        """`<year>/<month>/<day>/<rollout>`, as it lies below its root."""
        return folders.archive_name(path, root)

    def claims(self, records: Sequence[Record]) -> bool:
        """Whether any of the records is in one of Codex's envelopes, or is a header from before there were any."""
        return any(map(_is_own, records))

    def identify(self, path: Path, head: bytes) -> Session:
        """The first header tells; a fork's file repeats those of its ancestors after its own."""
        header = next(headers(head_records(head)), Record())
        in_name = _UUID.findall(path.name)
        native_id = string(header.get("id")) or (in_name[-1].lower() if in_name else path.name.partition(".")[0])
        source = mapping(header.get("source"))
        if "subagent" in source or header.get("thread_source") == "subagent" or header.get("parent_thread_id"):
            return Session(self.agent, native_id, SessionKind.SUBAGENT, parent_of(header))
        return Session(self.agent, native_id)

    def reader(self, session: Session, *, shorten: bool = True) -> CodexReader:
        """A reader for one file of that session."""
        return CodexReader(session, shorten=shorten)


def _is_rollout(name: str) -> bool:
    return name.endswith((".jsonl", ".jsonl.zst")) and name not in _OTHER_FILES


def _is_own(record: Record) -> bool:
    if "type" not in record:
        return record.get("record_type") == "state" or {"id", "timestamp", "instructions"} <= record.keys()
    return string(record["type"]) in _ENVELOPES and isinstance(record.get("payload"), dict)
