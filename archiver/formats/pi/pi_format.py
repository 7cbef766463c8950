"""Locations and recognition of the sessions of pi."""

import re
from pathlib import Path

from ....core.conversation import Session
from ...files.lines import Record, head_records
from ..folder_format import FolderFormat
from ..json_values import string
from ..transcript_format import TranscriptFormat
from .pi_reader import PiReader


class Pi(FolderFormat):
    """Sessions in `~/.pi/agent/sessions/<project>/<time>_<session>.jsonl`."""

    agent = "pi"
    reader_class = PiReader
    home_variable, home_folder, root_folders = "PI_CODING_AGENT_DIR", ".pi/agent", ("sessions",)
    name_pattern = re.compile(r"\d{4}-\d\d-\d\dT[^_]+_[^_]+\.jsonl")

    def identify(self, path: Path, head: bytes) -> Session:
        """Return the session, identified by the header or, without a header, by the file name."""
        header = next(filter(self._is_own, head_records(head)), Record())
        return Session(self.agent, string(header.get("id")) or path.stem.rpartition("_")[2])

    def _is_own(self, record: Record) -> bool:
        return record.get("type") == "session" and isinstance(record.get("id"), str) and "cwd" in record


FORMAT: TranscriptFormat = Pi()
