"""Support for Aider.

Aider appends the conversations of a project to one Markdown file, `.aider.chat.history.md`. Each start of the program
begins a session.

- Supported: prompts, replies, reasoning, applied edits, shell commands that the user allowed, notices of the program,
  commands of the user, models, versions, token usage.
- Not supported: output of shell commands, which the file does not contain. Only the start of a session has a time.
- Tested with: 8 published files of versions 0.83 to 0.86, with 58 sessions.
- Test data: `examples/aider.jsonl`.
"""

import os
import re
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

from ...core.conversation import Fact, Kind, Note, Session, Turn
from ...core.errors import SourceUnreadable
from ..lines import Line, Record, clean
from .container_formats import ContainedFormat, message_of
from .containers import file_name, fingerprint, header_of, message_line
from .json_values import local_instant, string
from .record_reader import RecordReader
from .transcript_format import (
    ContainedSession,
    ContainerFormat,
    RecordEvents,
    RecordStamp,
    SkipReason,
    unknown_type,
    usage,
)

_NAME = ".aider.chat.history.md"
_START = b"# aider chat started at "
_HEADING = re.compile(rb"^" + _START, re.MULTILINE)
_HEAD = 1 << 16
# Aider ends each line of a prompt, and each line of its own, with two spaces. Models write headings and quotations too.
_LINE = re.compile(rb"(?:(?P<user>####)|>)(?: .*)?  \r?\n?|(?:> Tokens: .* received\.|Cost: \$[\d.]+ message, .*)\s*")
"""Lines of users and of the program."""
_PREFIX = re.compile(r"^(?:#### ?|> ?)", re.MULTILINE)
_THOUGHT = re.compile(r"<(think(?:ing)?(?:-content-\w+)?)>(.*?)(?:</\1>|\Z)", re.DOTALL)
_QUESTION = re.compile(r"\(Y\)es/\(N\)o[^\n]*\[\w+\]: ?\S*\Z")
_COMMAND = re.compile(r"[/!](\S+)\s*(.*)", re.DOTALL)
_ASKING = {"ask", "code", "architect", "context", "help"}
_EDITED = re.compile(r"(?:Applied edit to|Creating empty file) (.+)")
_RAN = re.compile(r"Running (.+)")
_TOKENS = re.compile(r"Tokens: ([\d.,]+[kM]?) sent.*?([\d.,]+[kM]?) received")
_UNITS = {"k": 1_000, "M": 1_000_000}
_FACTS = (
    (Fact.VERSION, re.compile(r"Aider v(\S+)")),
    (Fact.MODEL, re.compile(r"(?:Main model|Model|Models): (\S+) with .* edit format")),
)


class AiderReader(RecordReader):
    """Reader of one session. Each record is a block of lines with the same author."""

    def __init__(self, session: Session, *, shorten: bool) -> None:
        super().__init__(session, shorten=shorten)
        self._asked, self._reply = "", ""
        """Words of the last command that asks the model, and of the last reply."""

    def _record(self, record: Record, line: Line) -> RecordEvents:
        if "conversation" in record:
            return self._header_facts(record, line, {Fact.CWD: ("folder",)})
        message = message_of(record)
        text = string(message.get("text")).replace("\r\n", "\n")
        stamp = RecordStamp(line.number, self._session.started)
        match string(message.get("author")):
            case "user":
                return self._user(clean(_unquoted(text)), stamp) or SkipReason.EMPTY
            case "program":
                return self._program(_unquoted(text), stamp) or SkipReason.EMPTY
            case "model":
                return self._model(text, stamp) or SkipReason.EMPTY
            case author:
                return unknown_type(author)

    def _user(self, text: str, stamp: RecordStamp) -> list[Turn | Note] | SkipReason:
        """Return the events of a prompt, a command, or the answer to a question of the program.

        The program repeats the words after a command such as `/ask`, and passes the reply of an architect to the editor
        as a prompt.
        """
        words = " ".join(text.split())
        if text and words in {self._asked, self._reply}:
            return SkipReason.REPEATED
        command = _COMMAND.fullmatch(text)
        if _QUESTION.search(text) or (command and not (command[1] in _ASKING and command[2])):
            return [*self._injected(text, stamp)]
        self._asked, self._reply = " ".join(command[2].split()) if command else "", ""
        return self._prompt(text, stamp) if text and text != "<blank>" else []

    def _model(self, text: str, stamp: RecordStamp) -> list[Turn]:
        self._reply = " ".join(text.split())
        group = f"line-{stamp.line}"
        thoughts = [turn for found in _THOUGHT.finditer(text) for turn in stamp.reply(Kind.THINKING, found[2], group)]
        return [*thoughts, *stamp.reply(Kind.PROSE, _THOUGHT.sub("", text), group)]

    def _program(self, text: str, stamp: RecordStamp) -> list[Turn | Note]:
        events: list[Turn | Note] = []
        notices: list[str] = []
        for number, notice in enumerate(map(str.strip, text.splitlines())):
            call = f"{stamp.line}-{number}"
            if edited := _EDITED.fullmatch(notice):
                events.append(self._calls.call(stamp, call, "edit", {"path": edited[1]}))
                events.append(self._calls.result(stamp, call, notice, failed=False))
            elif ran := _RAN.fullmatch(notice):
                events.append(self._calls.call(stamp, call, "shell", {"command": ran[1]}))
            else:
                notices.append(notice)
            if tokens := _TOKENS.match(notice):
                used = usage(call, *map(_count, tokens.groups()))
                events += self._facts.note(stamp.line, Fact.USAGE, used)
            found = ((fact, pattern.match(notice)) for fact, pattern in _FACTS)
            events += self._facts.notes(stamp.line, {fact: match[1] for fact, match in found if match})
        return [*events, *self._injected("\n".join(notices), stamp)]


def _unquoted(text: str) -> str:
    """Return a block without the characters that mark its author."""
    return "\n".join(line.removesuffix("  ") for line in _PREFIX.sub("", text).split("\n"))


def _count(number: str) -> int:
    """Return a count such as `3.2k` as an integer."""
    digits, unit = (number[:-1], number[-1]) if number[-1] in _UNITS else (number, "")
    return round(float(digits.replace(",", "")) * _UNITS.get(unit, 1)) if digits.strip(".,") else 0


class Aider(ContainedFormat):
    """Sessions in `.aider.chat.history.md`, in the folder of a project or of the user."""

    agent = "aider"
    reader_class = AiderReader
    folder_fields = ("folder",)

    def identify(self, path: Path, head: bytes) -> Session:
        """Return the session, with the time at which the program was started. All blocks have this time."""
        session = super().identify(path, head)
        session.started = session.ended = local_instant(header_of(head).get("started"))
        return session

    def locations(self) -> Iterable[tuple[Path, str]]:
        """Return the place of the user's own file, and of the configured file. Files of projects are not searched."""
        configured = Path(os.environ.get("AIDER_CHAT_HISTORY_FILE") or _NAME).expanduser()
        places = {Path.home() / _NAME, Path.home() / configured}
        return [(path.parent, path.name) for path in sorted(places)]

    def is_container(self, path: Path) -> bool:
        """Return whether a file is a history. Raises `OSError`."""
        if path.suffix != ".md" or not path.is_file():
            return False
        with path.open("rb") as file:
            return _HEADING.search(file.read(_HEAD)) is not None

    def sessions(self, path: Path) -> Iterator[ContainedSession]:
        """Yield every session in which something was recorded. Raises `SourceUnreadable`."""
        try:
            data = path.read_bytes()
        except OSError as error:
            raise SourceUnreadable(path, error.strerror or str(error)) from None
        starts = [match.start() for match in _HEADING.finditer(data)]
        for start, end in pairwise([*starts, len(data)]):
            yield from self._session(path, data[start:end])

    def _session(self, path: Path, data: bytes) -> Iterator[ContainedSession]:
        heading, *lines = data.splitlines(keepends=True)
        first = next((line for line in lines if line.strip() and line.endswith(b"\n")), b"")
        if not first:
            return
        started = heading.removeprefix(_START).decode("utf-8", "replace").strip()
        # The first line is written together with the heading, and later lines do not change it.
        session_id = f"{re.sub(r'[^0-9]+', '-', started).strip('-')}-{fingerprint(started, first):016x}"
        header = {"id": session_id, "started": started, "folder": str(path.parent)}
        name = file_name(session_id)
        at = local_instant(started) or 0
        made = partial(_session_lines, header, lines)
        yield ContainedSession(path / name, f"{path.parent.name or 'root'}/{name}", fingerprint(header, data), at, made)


def _session_lines(header: dict[str, str], lines: list[bytes]) -> Iterator[bytes]:
    yield message_line(header["id"], conversation=header)
    for number, (author, text) in enumerate(_blocks(lines)):
        message = {"author": author, "text": text.decode("utf-8", "replace")}
        yield message_line(f"{header['id']}/{number}", message=message)


def _blocks(lines: list[bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield the author and the text of each block. Blank lines belong to the block before them, and end a prompt."""
    author, block = "", list[bytes]()
    for line in lines:
        found = _LINE.fullmatch(line)
        own = "model" if found is None else "user" if found["user"] else "program"
        is_blank = not line.strip()
        if is_blank:
            own = author
        ends = own != author or (own == "user" and not block[-1].strip() and not is_blank)
        if block and author and ends:
            yield author, b"".join(block)
            block = []
        author = own
        block.append(line)
    if block:
        yield author, b"".join(block)


FORMAT: ContainerFormat = Aider()
