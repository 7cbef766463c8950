"""Grouping of a transcript's events into exchanges, late tool results, and the lines that an edit wrote.

An exchange begins with a prompt of the user. A result that an agent recorded after the next prompt is late: its call
is in an earlier exchange.

Tool names differ between agents. All agents record the file's path. They also record one of these: the whole new
text, the old and new text, or a patch. The original transcript line is searched for the lines that a call added,
because the store shortens calls.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

import orjson
from msgspec import Struct, field
from msgspec.structs import replace

from ...core.conversation import Exchange, Fact, Kind, Milliseconds, Note, Skipped, Span, Turn
from ...core.errors import PalaverError
from ..copies.raw_copy import RawArchive
from ..formats import FormatReader
from ..lines import Line, decode, opens_blanked
from ..store import Edit


def group_exchanges(
    reader: FormatReader, lines: Iterable[Line], *, first_ordinal: int = 0
) -> Iterator[Exchange | Note | Skipped]:
    """Yield the exchanges of a transcript, with its notes and skipped lines in between.

    A prompt starts an exchange, unless other turns precede it on the same line. An exchange ends where the next
    exchange begins. It is yielded after the notes and skipped lines between its first and last line.

    Turns before the first prompt form a separate exchange. If the agent's program added all of these turns, they belong
    to the first exchange instead. Erased exchanges are counted, so that later exchanges keep their ordinals.

    The last exchange may grow. A later run can start at its first line, with its ordinal as `first_ordinal`.
    """
    tracker, draft, ordinal = _LineTracker(lines), _Draft(), first_ordinal
    for event in reader.read(tracker):
        if isinstance(event, Note):
            draft.note(event)
            yield event
        elif isinstance(event, Skipped):
            if event.line in tracker.blanked:
                if draft.has_conversation:
                    yield draft.close(ordinal, event.line - 1, tracker.starts[event.line])
                ordinal, draft = ordinal + draft.has_ordinal, _Draft(erased=True)
            yield event
        elif tracker.opens(event) and not draft.has_turn_on(event.line):
            if draft.has_conversation:
                yield draft.close(ordinal, event.line - 1, tracker.starts[event.line])
            if draft.has_ordinal:
                ordinal, draft = ordinal + 1, _Draft()
                tracker.drop_before(event.line)
            draft.open(event, tracker.starts[event.line])
        else:
            draft.add(event, tracker.starts[event.line])
    if draft.has_conversation:
        yield draft.close(ordinal, tracker.last_line, tracker.end_byte)


def mark_rewound(exchange: Exchange, first: int, end: int) -> Exchange:
    """Return the exchange with its turns on the lines `first` to `end` (exclusive) marked as rewound."""
    turns = tuple(turn._replace(active=turn.active and not first <= turn.line < end) for turn in exchange.turns)
    return replace(exchange, turns=turns)


class _LineTracker:
    """Iterator over the lines of a file that records the start of each line in bytes."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self._lines = lines
        self._current = 0
        self.starts: dict[int, int] = {}
        self.blanked: set[int] = set()
        """Line numbers at which erased exchanges began."""
        self.last_line = self.end_byte = 0

    def __iter__(self) -> Iterator[Line]:
        for line in self._lines:
            self._current, self.last_line = line.number, line.last
            self.starts[line.number] = line.start
            if opens_blanked(line.data):
                self.blanked.add(line.number)
            self.end_byte = line.end
            yield line
        self._current = 0

    def opens(self, turn: Turn) -> bool:
        """Return whether a turn opens an exchange. A prompt that was delayed from an earlier line does not open one."""
        return turn.kind is Kind.PROMPT and turn.line == self._current

    def drop_before(self, line: int) -> None:
        self.starts = {number: start for number, start in self.starts.items() if number >= line}


class _Draft(Struct):
    """Exchange that is being read."""

    opened: bool = False
    erased: bool = False
    start_line: int = 0
    start_byte: int = 0
    turns: list[Turn] = field(default_factory=list[Turn])
    cwd: str = ""
    branch: str = ""
    usage: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])

    @property
    def has_conversation(self) -> bool:
        """True if the exchange contains more than text that the agent's program added."""
        return self.opened or any(turn.kind is not Kind.INJECTED for turn in self.turns)

    @property
    def has_ordinal(self) -> bool:
        """True if the exchange uses an ordinal: it contains conversation, or it was erased."""
        return self.has_conversation or self.erased

    def add(self, turn: Turn, start_byte: int) -> None:
        if not self.turns or turn.line < self.start_line:
            self.start_line, self.start_byte = turn.line, start_byte
        self.turns.append(turn)

    def note(self, note: Note) -> None:
        """Store the folder, the branch or the token usage from a note.

        Only the first folder and branch are stored. A later token count of the same reply replaces the earlier count.
        """
        if note.fact is Fact.CWD:
            self.cwd = self.cwd or note.value
        elif note.fact is Fact.BRANCH:
            self.branch = self.branch or note.value
        elif note.fact is Fact.USAGE:
            reply, tokens_in, tokens_out = note.value.rsplit(" ", 2)
            self.usage[reply] = int(tokens_in), int(tokens_out)

    def has_turn_on(self, line: int) -> bool:
        """Return whether the exchange has a turn on this line. Two exchanges never share a line."""
        return any(turn.line == line for turn in self.turns)

    def open(self, prompt: Turn, start_byte: int) -> None:
        self.opened, self.cwd, self.branch, self.usage = True, "", "", {}
        self.add(prompt, start_byte)

    def close(self, ordinal: int, end_line: int, end_byte: int) -> Exchange:
        turns = _with_distinct_calls(sorted(self.turns, key=lambda turn: turn.line))
        times: list[Milliseconds] = [turn.at for turn in turns if turn.at is not None]
        span = Span(self.start_line, end_line, self.start_byte, end_byte)
        first, last = (times[0], max(times)) if times else (None, None)
        tokens_in, tokens_out = (
            (sum(counts) for counts in zip(*self.usage.values(), strict=True)) if self.usage else (0, 0)
        )
        return Exchange(ordinal, span, tuple(turns), first, last, self.cwd, self.branch, tokens_in, tokens_out)


def _with_distinct_calls(turns: list[Turn]) -> list[Turn]:
    """Return the turns with a distinct ID for each call. A repeated ID gets a number: `call_0`, `call_0#2`.

    Some models count their calls anew in every reply. The results of calls with the same ID are in the order of these
    calls.
    """
    calls = [turn.call for turn in turns if turn.kind is Kind.CALL and turn.call]
    if len(set(calls)) == len(calls):
        return turns
    made, waiting = Counter[str](), defaultdict[str, list[str]](list)
    distinct: list[Turn] = []
    for turn in turns:
        call = turn.call
        if turn.kind is Kind.CALL and call:
            made[call] += 1
            call = f"{call}#{made[call]}" if made[call] > 1 else call
            waiting[turn.call].append(call)
        elif turn.kind is Kind.RESULT and waiting[call]:
            call = waiting[call].pop(0)
        distinct.append(turn._replace(call=call))
    return distinct


_PATHS = (
    "file_path",
    "notebook_path",
    "path",
    "filePath",
    "absolute_path",
    "target_file",
    "TargetFile",
    "relative_path",
)
_NEW = (
    *("new_string", "new_str", "newString", "newText", "new_text", "new_source", "file_text", "content", "contents"),
    *("insert_text", "text", "CodeContent", "ReplacementContent", "replacement"),
)
_OLD = ("old_string", "old_str", "oldString", "oldText", "old_text", "TargetContent")
_BEGIN = "*** Begin Patch"
_FILES = ("*** Add File: ", "*** Update File: ", "*** Move to: ")
_IDS = ("id", "call_id", "callID", "toolCallId")
_ARGUMENTS = ("input", "arguments", "args", "rawArgs", "params", "state")
_DEPTH = 12
"""Maximum nesting depth of a record that is searched."""


class TextChange(NamedTuple):
    """Change of a file in a tool call: the replaced text and the new text.

    With `signed`, `new` is a part of a patch, whose lines begin with `+`, `-` or a space, and `old` is empty.
    """

    path: str
    old: str
    new: str
    signed: bool = False


def changes_in(call: bytes, call_id: str) -> list[TextChange]:
    """Return the changes of files in a tool call, in order. `call` is the record, and `call_id` the ID of the call.

    The result is empty for a call that changes no file, or whose arguments are not recorded.
    """
    # A repeated ID has a number that the transcript does not contain.
    name = call_id.partition("#")[0]
    return [change for arguments in _calls(_record(call), name, _DEPTH) for change in _changes_of(arguments)]


def written_lines(call: bytes, path: str, result: bytes = b"") -> frozenset[str]:
    """Return the lines that a call added to the file `path`, without surrounding whitespace.

    `call` and `result` are the transcript records of the call and of its result. If the result contains a diff, only
    the diff is used. Unlike the call, it has complete lines and takes into account the earlier content of a replaced
    file.
    """
    texts = [*_diffs(_record(result), path, _DEPTH)] or [
        text for new, old in _changes(_record(call), path, _DEPTH) for text in _added(new, old)
    ]
    return frozenset(text.strip() for text in texts if text.strip())


def _record(line: bytes) -> object:
    records = decode(line)
    return records[0] if isinstance(records, list) else None


def _diffs(value: object, path: str, depth: int) -> Iterator[str]:
    """Yield the lines that diffs of the file add. The diffs can be at any depth of a record."""
    if depth == 0 or not isinstance(value, dict):
        return
    fields = cast("dict[str, Any]", value)
    hunks = fields.get("structuredPatch")
    if isinstance(hunks, list) and any(fields.get(name) == path for name in _PATHS):
        for hunk in cast("list[object]", hunks):
            rows = cast("dict[str, Any]", hunk).get("lines") if isinstance(hunk, dict) else None
            added = cast("list[object]", rows) if isinstance(rows, list) else []
            yield from (row[1:] for row in added if isinstance(row, str) and row.startswith("+"))
    for below in fields.values():
        yield from _diffs(below, path, depth - 1)


def _added(new: str, old: str) -> Iterator[str]:
    before = {line.strip() for line in old.splitlines()}
    return (line for line in new.splitlines() if line.strip() not in before)


def _changes(value: object, path: str, depth: int) -> Iterator[tuple[str, str]]:
    """Yield pairs of a new text and the text that it replaced, found at any depth of a record."""
    if depth == 0:
        return
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        if any(fields.get(name) == path for name in _PATHS):
            yield from _edits(fields)
        for below in fields.values():
            yield from _changes(below, path, depth - 1)
    elif isinstance(value, list):
        for below in cast("list[object]", value):
            yield from _changes(below, path, depth - 1)
    elif isinstance(value, str):
        if value.lstrip().startswith("{") and path.rpartition("/")[2] in value:
            try:
                yield from _changes(orjson.loads(value), path, depth - 1)
            except orjson.JSONDecodeError:
                return
        elif _BEGIN in value:
            yield from _patched(value, path)


def _edits(fields: dict[str, Any]) -> Iterator[tuple[str, str]]:
    edits = fields.get("edits")
    for edit in [fields, *(cast("list[object]", edits) if isinstance(edits, list) else [])]:
        if isinstance(edit, dict):
            fields_of_edit = cast("dict[str, Any]", edit)
            old = "\n".join(text for name in _OLD if isinstance(text := fields_of_edit.get(name), str))
            yield from ((text, old) for name in _NEW if isinstance(text := fields_of_edit.get(name), str))


def _patched(patch: str, path: str) -> Iterator[tuple[str, str]]:
    """Yield each line that a patch adds to this file, paired with an empty text in place of the replaced text."""
    inside = False
    for row in patch.splitlines():
        if row.startswith("*** "):
            if row.startswith(_FILES):
                inside = row.partition(": ")[2].strip() == path
            continue
        if inside and row.startswith("+"):
            yield row[1:], ""


def _calls(value: object, call_id: str, depth: int) -> Iterator[object]:
    """Yield the arguments of the call with this ID, at any depth of a record."""
    if depth == 0:
        return
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        if any(fields.get(name) == call_id for name in _IDS):
            yield from (fields[name] for name in _ARGUMENTS if name in fields)
            return
        for below in fields.values():
            yield from _calls(below, call_id, depth - 1)
    elif isinstance(value, list):
        for below in cast("list[object]", value):
            yield from _calls(below, call_id, depth - 1)


def _changes_of(arguments: object) -> Iterator[TextChange]:
    """Yield the changes in the arguments of a call: an object, JSON text, or text with a patch."""
    if isinstance(arguments, str):
        if arguments.lstrip().startswith("{"):
            try:
                yield from _changes_of(orjson.loads(arguments))
            except orjson.JSONDecodeError:
                return
        elif _BEGIN in arguments:
            yield from _of_patch(arguments)
    elif isinstance(arguments, dict):
        fields = cast("dict[str, Any]", arguments)
        path = next(iter(_texts(fields, _PATHS)), "")
        edits = fields.get("edits")
        for edit in [fields, *(cast("list[object]", edits) if isinstance(edits, list) else [])] if path else []:
            if isinstance(edit, dict):
                values = cast("dict[str, Any]", edit)
                old = "\n".join(_texts(values, _OLD))
                yield from (TextChange(path, old, new) for new in _texts(values, _NEW))
        if not path:
            yield from (change for text in _patches(fields) for change in _of_patch(text))
            if isinstance(fields.get("input"), dict):
                yield from _changes_of(fields["input"])


def _texts(fields: dict[str, Any], names: tuple[str, ...]) -> list[str]:
    """Return the texts in the fields with these names."""
    values: list[object] = [fields.get(name) for name in names]
    return [value for value in values if isinstance(value, str)]


def _patches(fields: dict[str, Any]) -> Iterator[str]:
    """Yield the patches in the fields, or in a list of a field, such as the words of a command."""
    for value in cast("dict[str, object]", fields).values():
        items = cast("list[object]", value) if isinstance(value, list) else [value]
        yield from (item for item in items if isinstance(item, str) and _BEGIN in item)


def _of_patch(patch: str) -> Iterator[TextChange]:
    """Yield the part of a patch for each of its files."""
    path, lines = "", list[str]()
    for row in [*patch.splitlines(), "*** End Patch"]:
        if row.startswith("*** "):
            if lines and path:
                yield TextChange(path, "", "\n".join(lines), signed=True)
                lines = []
            if row.startswith(_FILES):
                path = row.partition(": ")[2].strip()
        else:
            lines.append(row)


def read_written_lines(exchange: Exchange, edit: Edit, raw: RawArchive) -> tuple[Milliseconds | None, frozenset[str]]:
    """Return the time of an edit and the lines that it wrote, without surrounding whitespace.

    If the raw copy is unreadable, the set of lines is empty.
    """
    turns, span = exchange.turns, exchange.span

    def record_of(turn: Turn) -> bytes:
        try:
            return raw.record(edit.archived, turn.line, (span.start_line, span.start_byte))
        except (PalaverError, OSError):
            return b""

    wrote = [turn for turn in turns if edit.path in turn.writes and not turn.failed]
    calls = {turn.call: turn for turn in turns if turn.kind is Kind.CALL and turn.call}
    lines = frozenset[str]()
    for turn in wrote:
        lines |= written_lines(record_of(calls.get(turn.call, turn)), edit.path, record_of(turn))
    return min((turn.at for turn in wrote if turn.at is not None), default=edit.started), lines


StoredCalls: TypeAlias = "Callable[[Collection[str]], Mapping[str, Turn]]"


def link_late_results(exchanges: Sequence[Exchange], stored: StoredCalls) -> list[Exchange]:
    """Return consecutive exchanges, in which each late result has the name of its tool.

    `stored` returns the calls with these IDs in the stored exchanges before the first of the given exchanges.
    """
    late = {turn.call for exchange in exchanges for turn in late_results(exchange) if not turn.tool}
    if not late:
        return list(exchanges)
    calls = dict(stored(late))
    linked: list[Exchange] = []
    for exchange in exchanges:
        of_earlier = {turn for turn in late_results(exchange) if not turn.tool and turn.call in calls}
        turns = tuple(
            turn._replace(tool=calls[turn.call].tool) if turn in of_earlier else turn for turn in exchange.turns
        )
        linked.append(replace(exchange, turns=turns) if of_earlier else exchange)
        calls |= {turn.call: turn for turn in exchange.turns if turn.kind is Kind.CALL and turn.call in late}
    return linked


def late_results(exchange: Exchange) -> list[Turn]:
    """Return the results whose calls are not in the same exchange."""
    calls = {turn.call for turn in exchange.turns if turn.kind is Kind.CALL}
    return [turn for turn in exchange.turns if turn.kind is Kind.RESULT and turn.call and turn.call not in calls]
