"""The format of Antigravity, the successor of Gemini CLI."""

import os
import re
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from ....core.conversation import Kind, Session, Speaker, Turn
from ....core.report import Unsearched
from ...files.clipping import clean
from ...files.lines import Line, Record
from .. import folders
from ..given import BOOKKEEPING, EMPTY, Given, unknown
from ..json_values import instant, listing, mapping, string
from ..marks import Mark, identity
from ..unrolled import RowReader

_TRANSCRIPT = "transcript.jsonl"
_REQUEST = re.compile(r"<USER_REQUEST>\s*(.*?)\s*</USER_REQUEST>", re.DOTALL)
_NAMES = {"TargetFile": "path", "AbsolutePath": "path", "CommandLine": "command"}


class Antigravity:
    """Sessions under `~/.gemini/antigravity*/brain`: a folder each, with one JSON record per step."""

    agent = "antigravity"

    def roots(self) -> list[Path]:
        """The folders of this user's sessions, of each edition; those that are closed may be there."""
        home = Path(os.environ.get("GEMINI_CLI_HOME") or Path.home()).expanduser()
        kept = [edition / "brain" for edition in folders.matching([(home / ".gemini", "antigravity*")])]
        return [folder for folder in kept if folders.is_closed(folder) or folder.is_dir()]

    def transcripts(self, root: Path, skipped: Unsearched | None = None) -> Iterator[Path]:
        """`<session>/.system_generated/logs/transcript.jsonl`, sorted."""
        return folders.files(root, lambda name: name == _TRANSCRIPT, skipped=skipped)

    def keeps(self, path: Path, root: Path) -> bool:  # noqa: ARG002 - its folders have no others within
        """Whether a file may be a transcript by its name."""
        return path.suffix == ".jsonl"

    def names(self, name: str) -> bool:
        """Whether it is that of every transcript."""
        return name == _TRANSCRIPT

    def archive_name(self, path: Path, root: Path) -> str:
        """`<session>/.system_generated/logs/transcript.jsonl`, as it lies below its root."""
        return folders.archive_name(path, root)

    def claims(self, records: Sequence[Record]) -> bool:
        """Whether any of the records is a numbered step."""
        return any("step_index" in record and "source" in record for record in records)

    def identify(self, path: Path, head: bytes) -> Session:  # noqa: ARG002 - no record tells
        """The folder is named after the session."""
        named = path.name == _TRANSCRIPT and len(path.parents) > 2
        return Session(self.agent, (path.parents[2].name if named else "") or path.stem)

    def reader(self, session: Session, *, shorten: bool = True) -> "AntigravityReader":
        """A reader for one file of that session."""
        return AntigravityReader(session, shorten=shorten)


class AntigravityReader(RowReader):
    """Reads one file. Results name no call, but come in the order of the calls."""

    def __init__(self, session: Session, *, shorten: bool) -> None:
        super().__init__(session, shorten=shorten)
        self._open: deque[str] = deque()

    def _record(self, record: Record, line: Line) -> Given:
        source, kind = string(record.get("source")), string(record.get("type"))
        text = clean(string(record.get("content")))
        mark = Mark(line.number, instant(record.get("created_at")), identity("", line.data))
        if kind == "USER_INPUT":
            return self._typed(text, mark)
        if kind == "PLANNER_RESPONSE":
            return self._said(record, text, mark) or EMPTY
        if source == "MODEL" and kind:
            call, failed = self._open.popleft() if self._open else "", record.get("status") == "ERROR"
            return [self._calls.result(mark, call, text, failed=failed, tool=kind.lower())]
        if kind == "CHECKPOINT":
            return [mark.turn(Speaker.HOST, Kind.COMPACTION, text or "Conversation compacted")]
        if source == "SYSTEM":
            return [mark.injected(text, shorten=self._shorten)] if text else BOOKKEEPING
        return unknown(f"{source}/{kind}")

    def _typed(self, text: str, mark: Mark) -> Given:
        asked = clean("\n\n".join(_REQUEST.findall(text)) or text)
        if not asked:
            return EMPTY
        self._calls.clear()
        self._open.clear()
        return [mark.turn(Speaker.HUMAN, Kind.PROMPT, asked), *self._facts.place(mark.line)]

    def _said(self, record: Record, text: str, mark: Mark) -> Sequence[Turn]:
        said = ((Kind.THINKING, clean(string(record.get("thinking")))), (Kind.PROSE, text))
        turns = [mark.turn(Speaker.ASSISTANT, kind, words, group=mark.record) for kind, words in said if words]
        for number, call in enumerate(map(mapping, listing(record.get("tool_calls")))):
            named = f"{mark.record}:{number}"
            self._open.append(named)
            given = {_NAMES.get(name, name): _plain(value) for name, value in mapping(call.get("args")).items()}
            turns.append(self._calls.call(mark, named, string(call.get("name")), given, group=mark.record))
        return turns


def _plain(value: Any) -> Any:
    """An argument, which may be written as JSON within JSON."""
    if not isinstance(value, str) or not value.startswith('"'):
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return value
