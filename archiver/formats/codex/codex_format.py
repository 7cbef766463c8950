"""Format of Codex rollouts: finds and recognises them."""

import re
from pathlib import Path

from ....core.conversation import Session, SessionKind
from ...files.lines import Record, head_records
from ..folder_format import FolderFormat
from ..json_values import mapping, string
from ..record_events import UUID
from ..transcript_format import TranscriptFormat
from .codex_envelopes import headers, parent_of
from .codex_reader import CodexReader

_ENVELOPES = {"session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state"}


class Codex(FolderFormat):
    """Rollouts in `~/.codex/sessions/<year>/<month>/<day>` and `~/.codex/archived_sessions`.

    Codex compresses old rollouts.
    """

    agent = "codex"
    reader_class = CodexReader
    home_variable, home_folder, root_folders = "CODEX_HOME", ".codex", ("sessions", "archived_sessions")
    suffixes = (".jsonl", ".jsonl.zst")
    other_files = frozenset({"history.jsonl", "session_index.jsonl"})
    name_pattern = re.compile(r"rollout-.*\.jsonl(\.zst)?", re.DOTALL)

    def may_be_transcript(self, path: Path, root: Path) -> bool:
        """Return whether a file can be a rollout. Compressed duplicates of uncompressed rollouts are excluded."""
        duplicate = path.suffix == ".zst" and path.with_suffix("").exists()
        return super().may_be_transcript(path, root) and not duplicate

    def identify(self, path: Path, head: bytes) -> Session:
        """Return the session, identified by the first header.

        A fork repeats the headers of its ancestors after its own header.
        """
        header = next(headers(head_records(head)), Record())
        in_name = re.findall(UUID, path.name)
        native_id = string(header.get("id")) or (in_name[-1].lower() if in_name else path.name.partition(".")[0])
        source = mapping(header.get("source"))
        if "subagent" in source or header.get("thread_source") == "subagent" or header.get("parent_thread_id"):
            return Session(self.agent, native_id, SessionKind.SUBAGENT, parent_of(header))
        return Session(self.agent, native_id)

    def _is_from_agent(self, record: Record) -> bool:
        if "type" not in record:
            return record.get("record_type") == "state" or {"id", "timestamp", "instructions"} <= record.keys()
        return string(record["type"]) in _ENVELOPES and isinstance(record.get("payload"), dict)


FORMAT: TranscriptFormat = Codex()
