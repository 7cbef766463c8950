"""The format of Kimi CLI."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from ....core.conversation import Session, SessionKind
from ....core.report import Unsearched
from ...files.lines import Record
from .. import folders
from ..json_values import mapping, string
from ..kimi_folders import place_of
from .kimi_cli_reader import KimiCliReader

_WIRE, _CONTEXT = "wire.jsonl", "context.jsonl"
_SUBAGENTS = "subagents"
_ROLES = {"_system_prompt", "_checkpoint", "_usage"}


class KimiCli:
    """Sessions under `~/.kimi/sessions`: a folder each, with a journal of what happened, or with the context alone."""

    agent = "kimi-cli"

    def roots(self) -> list[Path]:
        """The existing folder of this user's sessions."""
        home = Path(os.environ.get("KIMI_SHARE_DIR") or Path.home() / ".kimi").expanduser()
        folder = home / "sessions"
        return [folder] if folder.is_dir() else []

    def transcripts(self, root: Path, skipped: Unsearched | None = None) -> Iterator[Path]:
        """`<folder>/<session>/wire.jsonl`, or `context.jsonl` as versions without a journal wrote it; sorted."""
        return (
            path
            for path in folders.files(root, lambda name: name in {_WIRE, _CONTEXT}, skipped=skipped)
            if self.keeps(path, root)
        )

    def keeps(self, path: Path, root: Path) -> bool:  # noqa: ARG002 - its folders have no others within
        """Whether a file may be a session's, and not the context of one that has a journal: that tells more."""
        return path.suffix == ".jsonl" and (path.name != _CONTEXT or not path.with_name(_WIRE).exists())

    def names(self, name: str) -> bool:
        """Whether it is that of a session's context; its journal shares its name with others."""
        return name == _CONTEXT

    def archive_name(self, path: Path, root: Path) -> str:
        """`<folder>/<session>/<file>`, as it lies below its root."""
        return folders.archive_name(path, root)

    def claims(self, records: Sequence[Record]) -> bool:
        """Whether any of the records is an event in its envelope, or is of a role that only Kimi CLI has."""
        return any(map(_is_own, records))

    def identify(self, path: Path, head: bytes) -> Session:  # noqa: ARG002 - no record tells
        """The folder is named after the session, and below it one after each sub-agent."""
        folder = path.parent
        if path.name not in {_WIRE, _CONTEXT}:
            return Session(self.agent, path.stem)
        if folder.parent.name == _SUBAGENTS:
            session = folder.parent.parent
            native_id = f"{session.name}-{folder.name}"
            return Session(self.agent, native_id, SessionKind.SUBAGENT, session.name, cwd=_place(session))
        return Session(self.agent, folder.name, cwd=_place(folder))

    def reader(self, session: Session, *, shorten: bool = True) -> KimiCliReader:
        """A reader for one file of that session."""
        return KimiCliReader(session, shorten=shorten)


def _place(session: Path) -> str:
    return place_of(session / "state.json")


def _is_own(record: Record) -> bool:
    message = mapping(record.get("message"))
    return string(record.get("role")) in _ROLES or ("timestamp" in record and {"type", "payload"} <= message.keys())
