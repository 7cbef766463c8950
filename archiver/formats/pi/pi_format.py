"""The format of pi."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ....core.conversation import Session
from ....core.report import Unsearched
from ...files.lines import Record, head_records
from .. import folders
from ..json_values import string
from .pi_reader import PiReader

_NAME = re.compile(r"\d{4}-\d\d-\d\dT[^_]+_[^_]+\.jsonl")


class Pi:
    """Sessions under `~/.pi/agent/sessions`, one JSON record per line, in which every entry names the one before it."""

    agent = "pi"

    def roots(self) -> list[Path]:
        """The existing folder of this user's sessions."""
        home = Path(os.environ.get("PI_CODING_AGENT_DIR") or Path.home() / ".pi" / "agent").expanduser()
        folder = home / "sessions"
        return [folder] if folder.is_dir() else []

    def transcripts(self, root: Path, skipped: Unsearched | None = None) -> Iterator[Path]:
        """`<project folder>/<time>_<session>.jsonl`, sorted."""
        return folders.files(root, _is_jsonl, skipped=skipped)

    def keeps(self, path: Path, root: Path) -> bool:  # noqa: ARG002 - its folders have no others within
        """Whether a file may be a session by its name."""
        return _is_jsonl(path.name)

    def names(self, name: str) -> bool:
        """Whether it is a time and a session's id."""
        return _NAME.fullmatch(name) is not None

    def archive_name(self, path: Path, root: Path) -> str:
        """`<project folder>/<time>_<session>.jsonl`, as it lies below its root."""
        return folders.archive_name(path, root)

    def claims(self, records: Sequence[Record]) -> bool:
        """Whether any of the records is the header of a session."""
        return any(map(_is_header, records))

    def identify(self, path: Path, head: bytes) -> Session:
        """The header tells the session's id, else the file's name does."""
        header = next(filter(_is_header, head_records(head)), Record())
        return Session(self.agent, string(header.get("id")) or path.stem.rpartition("_")[2])

    def reader(self, session: Session, *, shorten: bool = True) -> PiReader:
        """A reader for one file of that session."""
        return PiReader(session, shorten=shorten)


def _is_jsonl(name: str) -> bool:
    return name.endswith(".jsonl")


def _is_header(record: Record) -> bool:
    return record.get("type") == "session" and isinstance(record.get("id"), str) and "cwd" in record
