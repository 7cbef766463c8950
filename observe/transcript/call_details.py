"""Opened parts of a session: a tool call with its result, a whole text, a raw record, or a picture.

Texts come from the reader of the third layer of search, which omits deleted lines and redacts secrets. Values that the
reader does not return, such as the two sides of an edit, are redacted by the same `TranscriptRedactor`.
"""

import base64
import binascii
import shlex
from collections.abc import Iterator
from typing import Any, Final, cast

import orjson
from msgspec.structs import replace

from ...archiver.lines import Record, clean, decode
from ...archiver.reading.exchanges import TextChange, changes_in
from ...archiver.redaction import Redactor
from ...archiver.redaction.redactor import TranscriptRedactor, normal_form, redact_typed
from ...archiver.store import Store
from ...core.conversation import Exchange, Kind, Span, Speaker, Turn
from ...core.errors import InvalidInput
from ...core.transcript_page import Call, CallDetail, ClippedText, Outcome, Picture, Step
from ...search.present.transcript_reader import TranscriptReader
from .changes import count_lines, file_diffs
from .clipping import clip_block, clip_line, clip_text
from .steps import PlacedTurn, placed
from .tool_calls import EDIT, relative
from .transcript_pages import SessionFile, TranscriptPages

_MAGIC: Final = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
_PICTURE_MAX: Final = 8 << 20
"""Maximum bytes of a picture."""
_DEPTH: Final = 12
"""Maximum depth at which a record is searched for pictures."""
_RECORD_DEPTH: Final = 48
"""Maximum depth to which a record is shown."""
_NOT_HERE: Final = "Go back to the session."


class CallDetails:
    """Opened parts of sessions, by the number of the session in the store."""

    def __init__(self, store: Store, pages: TranscriptPages, reader: TranscriptReader, redactor: Redactor) -> None:
        self._store, self._pages, self._reader = store, pages, reader
        self._redactor, self._transcript_redactor = redactor, TranscriptRedactor(redactor)

    def call(self, number: int, part: int, step: Step, number_in_step: int) -> CallDetail:
        """Return a call of a step, with its whole input and result.

        Raises:
            InvalidInput: The step has no such call, or its lines were deleted.
        """
        if not 0 <= number_in_step < len(step.calls):
            raise InvalidInput("This step has no such call", hint=_NOT_HERE)
        file, call = self._pages.file(number, part), step.calls[number_in_step]
        own = self._turn(file, call.line, call.position)
        result = self._result(file, call, own)
        line = call.line if own.kind is Kind.RESULT else call.result_line
        pictures = self._pictures(file, line) if line else ()
        record = b"".join(self._reader.raw(file.source.archived, call.line, call.line)) if call.kind == EDIT else b""
        detail = replace(self.detail(call, own, result, record, file.session.cwd), pictures=pictures)
        stored = self._pages.stored_result(file, detail.output.text)
        return replace(detail, output=self._result_text(stored)) if stored else detail

    def detail(self, call: Call, own: Turn, result: PlacedTurn | None, record: bytes, cwd: str) -> CallDetail:
        """Return a call with its input and result, without pictures.

        Args:
            call: The call in one line.
            own: Its turn, or that of a result whose call is in an earlier exchange.
            result: Its result.
            record: The line of the raw copy with the call, which contains both sides of an edit.
            cwd: Folder to which paths are relative.
        """
        if own.kind is Kind.RESULT:
            return CallDetail(call, ClippedText(""), clip_block(own.text))
        body = own.text.removeprefix(own.tool).removeprefix(": ")
        output = clip_block(result.turn.text if result else "")
        position = result.position if result else 0
        changes = self._changes(record, own.call) if call.kind == EDIT else []
        if not changes:
            return CallDetail(call, clip_block(body), output, result_position=position)
        diffs = file_diffs(changes, lambda path: relative(path, cwd))
        if call.outcome is Outcome.DONE:
            added, removed = count_lines(changes)
            call = replace(call, added=added, removed=removed)
        return CallDetail(call, ClippedText(""), output, diffs, result_position=position)

    def _result_text(self, data: bytes) -> ClippedText:
        """Return the redacted beginning of a result file, with a note if it is longer."""
        text = self._redacted_texts([clean(data.decode(errors="replace"))])[0]
        clipped = clip_block(text)
        note = f"\n[… {clipped.hidden:,} characters; `palaver resume` restores the file]" if clipped.hidden else ""
        return ClippedText(clipped.text + note)

    def text(self, number: int, part: int, line: int, position: int, start: int = 0) -> ClippedText:
        """Return the text of a turn from a character on. Raises `InvalidInput` if there is none."""
        turn = self._turn(self._pages.file(number, part), line, position)
        return (clip_block if turn.kind in {Kind.CALL, Kind.RESULT} else clip_text)(turn.text, start)

    def record(self, number: int, part: int, line: int) -> ClippedText:
        """Return the record on a line as indented JSON, without secrets.

        Raises:
            InvalidInput: The line does not exist or was deleted, or the user left a private span open on it. Such a
                span extends to the end of the message, whose parts a record does not distinguish.
        """
        file = self._pages.file(number, part)
        turns = self._turns(file, line)
        if not turns:
            raise InvalidInput(f"Line {line} contains no conversation", hint=_NOT_HERE)
        records = self._records(file, line)
        is_typed = any(turn.speaker is Speaker.HUMAN for turn in turns)
        texts = _texts_in(records, _RECORD_DEPTH + 2)  # The list of records and a text itself count.
        if is_typed and any(redact_typed(normal_form(text))[1] for text in texts):
            command = shlex.join(["palaver", "read", "--raw", file.source.archived, str(line)])
            hint = f"To print it in a terminal: {command}"
            raise InvalidInput(f"The record on line {line} contains private text", hint=hint)
        redacted = [orjson.dumps(self._redacted(record), option=orjson.OPT_INDENT_2).decode() for record in records]
        return clip_block(self._redactor.redact("\n".join(redacted)).text)

    def picture(self, number: int, part: int, line: int, position: int) -> tuple[str, bytes]:
        """Return the media type and the content of a picture on a line. Raises `InvalidInput` if there is none."""
        file = self._pages.file(number, part)
        pictures = self._contents(file, line)
        if not 0 <= position < len(pictures):
            raise InvalidInput(f"Line {line} has no such picture", hint=_NOT_HERE)
        return pictures[position]

    def pictures(self, number: int, part: int, line: int) -> tuple[Picture, ...]:
        """Return the pictures on a line."""
        return self._pictures(self._pages.file(number, part), line)

    def _turns(self, file: SessionFile, line: int) -> list[Turn]:
        """Return the turns on a line, without shortening. The list is empty for a deleted line."""
        if not 1 <= line <= file.source.lines:
            return []
        exchanges = self._reader.whole(file.source.archived, line, line)
        if not exchanges:
            # Text of the agent's program is no exchange until other turns are read.
            exchanges = self._reader.whole(file.source.archived, line, max(line, self._first_said(file)))
        return [turn for exchange in exchanges for turn in exchange.turns if turn.line == line]

    def _first_said(self, file: SessionFile) -> int:
        """Return the first line of a file that the agent's program did not add, or 0 if it has none."""
        spans = self._store.exchanges.spans(file.source.id or 0)[:1]
        first = self._store.exchanges.load([span.key for span in spans]).values()
        turns = (turn for stored in first for turn in stored.exchange.turns)
        return next((turn.line for turn in turns if turn.kind is not Kind.INJECTED), 0)

    def _turn(self, file: SessionFile, line: int, position: int) -> Turn:
        turns = (entry.turn for entry in placed(self._turns(file, line)) if entry.position == position)
        turn = next(turns, None)
        if turn is None:
            raise InvalidInput(f"Nothing is archived on line {line}", hint=_NOT_HERE)
        return turn

    def _result(self, file: SessionFile, call: Call, own: Turn) -> PlacedTurn | None:
        if call.result_line is None:
            return None
        on_line = placed(self._turns(file, call.result_line))
        results = [entry for entry in on_line if entry.turn.kind is Kind.RESULT]
        named = (entry for entry in results if entry.turn.call.partition("#")[0] == own.call.partition("#")[0])
        return next(named, results[0] if len(results) == 1 else None)

    def _changes(self, record: bytes, call: str) -> list[TextChange]:
        """Return the changes of a call, with both sides redacted."""
        changes = changes_in(record, call)
        texts = [text for change in changes for text in (change.old, change.new)]
        redacted = iter(self._redacted_texts(texts))
        return [
            change._replace(path=self._name(change.path), old=next(redacted), new=next(redacted)) for change in changes
        ]

    def _redacted_texts(self, texts: list[str]) -> list[str]:
        turns = tuple(Turn(1, Speaker.ASSISTANT, Kind.CALL, text) for text in texts)
        [exchange] = self._transcript_redactor.exchanges([Exchange(0, Span(1, 1, 0, 0), turns, None, None)])
        return [turn.text for turn in exchange.turns]

    def _name(self, text: str) -> str:
        return self._transcript_redactor.name(text)

    def _redacted(self, value: object, depth: int = 0) -> object:
        """Return a value of a record without secrets. The strings of a list are redacted together, as one text."""
        if depth > _RECORD_DEPTH:
            return "…"
        if isinstance(value, str):
            return clip_line(self._redacted_texts([value])[0])
        if isinstance(value, list):
            items = cast("list[object]", value)
            if items and all(isinstance(item, str) for item in items):
                joined = "\n".join(cast("list[str]", items))
                redacted = self._redacted_texts([joined])[0]
                if redacted != joined:
                    return [clip_line(line) for line in redacted.split("\n")]
            return [self._redacted(item, depth + 1) for item in items]
        if isinstance(value, dict):
            fields = cast("dict[str, Any]", value)
            return {self._name(key): self._redacted(item, depth + 1) for key, item in fields.items()}
        return value

    def _pictures(self, file: SessionFile, line: int) -> tuple[Picture, ...]:
        contents = self._contents(file, line)
        return tuple(Picture(line, at, media_type, len(data)) for at, (media_type, data) in enumerate(contents))

    def _contents(self, file: SessionFile, line: int) -> list[tuple[str, bytes]]:
        """Return the media type and content of the pictures on a line that is not deleted."""
        if not self._turns(file, line):
            return []
        return pictures_in(self._records(file, line))

    def _records(self, file: SessionFile, line: int) -> list[Record]:
        """Return the records on a line that is not deleted."""
        decoded = decode(b"".join(self._reader.raw(file.source.archived, line, line)))
        return decoded if isinstance(decoded, list) else []


def pictures_in(records: list[Record]) -> list[tuple[str, bytes]]:
    """Return the media type and content of the pictures in the records of a line."""
    texts = filter(None, map(_encoded_picture, _texts_in(records, _DEPTH)))
    pictures = map(_picture, dict.fromkeys(texts))
    return [picture for picture in pictures if picture is not None]


def _texts_in(value: object, depth: int) -> Iterator[str]:
    """Yield the texts in a JSON value, down to the depth."""
    if depth == 0:
        return
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        values = cast("dict[str, object]", value).values() if isinstance(value, dict) else cast("list[object]", value)
        for item in values:
            yield from _texts_in(item, depth - 1)


def _encoded_picture(text: str) -> str:
    """Return a text that can be a picture in Base64, without the beginning of a data URL, or an empty string."""
    encoded = text.partition(";base64,")[2] if text.startswith("data:image/") else text
    is_picture = encoded.startswith(("iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR")) and len(encoded) < 2 * _PICTURE_MAX
    return encoded if is_picture else ""


def _picture(encoded: str) -> tuple[str, bytes] | None:
    """Return the media type and content of a picture, recognised by its first bytes. Other content is no picture."""
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return None
    if len(data) > _PICTURE_MAX:
        return None
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp", data
    return next(((kind, data) for magic, kind in _MAGIC.items() if data.startswith(magic)), None)
