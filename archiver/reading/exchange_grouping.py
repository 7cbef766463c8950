"""Grouping of a transcript's events into exchanges, each of which begins with a prompt of the user."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from msgspec import Struct, field
from msgspec.structs import replace

from ...core.conversation import Exchange, Fact, Kind, Milliseconds, Note, Skipped, Span, Turn
from ..files.lines import Line, opens_blanked
from ..formats import FormatReader


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
