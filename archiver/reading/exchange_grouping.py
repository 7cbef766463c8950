"""Exchanges: the stream of events cut where a person asks the next thing."""

from collections.abc import Iterable, Iterator

from msgspec import Struct, field
from msgspec.structs import replace

from ...core.conversation import Exchange, Fact, Kind, Milliseconds, Note, Skipped, Span, Turn
from ..files.lines import Line, opens_blanked
from ..formats import TranscriptReader


def group(
    reader: TranscriptReader, lines: Iterable[Line], *, first_ordinal: int = 0
) -> Iterator[Exchange | Note | Skipped]:
    """The exchanges of a transcript, with its notes and skipped lines in between.

    An exchange comes once the next one opens or the lines end, after the notes and skipped lines of its own lines.
    A prompt opens one, unless it is glued to something said on the same line; an exchange ends where the next one
    starts. What was said before the first prompt is an exchange without a prompt or, when it is only injected text,
    the beginning of the first. One that was erased keeps its ordinal and its lines. The last exchange may grow: reading
    again from its first line, with its ordinal, gives what reading everything would have given.
    """
    ruler, draft, ordinal = _Ruler(lines), _Draft(), first_ordinal
    for event in reader.read(ruler):
        if isinstance(event, Note):
            draft.note(event)
            yield event
        elif isinstance(event, Skipped):
            if event.line in ruler.blanked:
                if draft.speaks:
                    yield draft.close(ordinal, event.line - 1, ruler.starts[event.line])
                ordinal, draft = ordinal + draft.counts, _Draft(erased=True)
            yield event
        elif ruler.opens(event) and not draft.holds(event.line):
            if draft.speaks:
                yield draft.close(ordinal, event.line - 1, ruler.starts[event.line])
            if draft.counts:
                ordinal, draft = ordinal + 1, _Draft()
                ruler.forget_before(event.line)
            draft.open(event, ruler.starts[event.line])
        else:
            draft.add(event, ruler.starts[event.line])
    if draft.speaks:
        yield draft.close(ordinal, ruler.last_line, ruler.end_byte)


def left_behind(exchange: Exchange, first: int, end: int) -> Exchange:
    """The exchange with its turns on lines `first` up to but without `end` marked as left behind by a rewind."""
    turns = tuple(turn._replace(active=turn.active and not first <= turn.line < end) for turn in exchange.turns)
    return replace(exchange, turns=turns)


class _Ruler:
    """Lines on their way to the reader, with the places where they start."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self._lines = lines
        self._reading = 0
        self.starts: dict[int, int] = {}
        self.blanked: set[int] = set()
        """Lines on which an exchange began that was erased."""
        self.last_line = self.end_byte = 0

    def __iter__(self) -> Iterator[Line]:
        for line in self._lines:
            self._reading = self.last_line = line.number
            self.starts[line.number] = line.start
            if opens_blanked(line.data):
                self.blanked.add(line.number)
            self.end_byte = line.end
            yield line
        self._reading = 0

    def opens(self, turn: Turn) -> bool:
        """Whether a turn starts an exchange: a prompt, unless the reader held it back and its line is long past."""
        return turn.kind is Kind.PROMPT and turn.line == self._reading

    def forget_before(self, line: int) -> None:
        self.starts = {number: start for number, start in self.starts.items() if number >= line}


class _Draft(Struct):
    """The exchange being read."""

    opened: bool = False
    erased: bool = False
    start_line: int = 0
    start_byte: int = 0
    turns: list[Turn] = field(default_factory=list[Turn])
    cwd: str = ""
    branch: str = ""
    usage: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])

    @property
    def speaks(self) -> bool:
        """Whether there is conversation in it, and not only injected text."""
        return self.opened or any(turn.kind is not Kind.INJECTED for turn in self.turns)

    @property
    def counts(self) -> bool:
        """Whether it has an ordinal of its own: what was erased keeps it."""
        return self.speaks or self.erased

    def add(self, turn: Turn, start_byte: int) -> None:
        if not self.turns or turn.line < self.start_line:
            self.start_line, self.start_byte = turn.line, start_byte
        self.turns.append(turn)

    def note(self, note: Note) -> None:
        """The first place named is where the exchange began; the last count of a reply's tokens is the whole."""
        if note.fact is Fact.CWD:
            self.cwd = self.cwd or note.value
        elif note.fact is Fact.BRANCH:
            self.branch = self.branch or note.value
        elif note.fact is Fact.USAGE:
            reply, given, made = note.value.rsplit(" ", 2)
            self.usage[reply] = int(given), int(made)

    def holds(self, line: int) -> bool:
        """Whether something on this line is in it already: a line is never shared by two exchanges."""
        return any(turn.line == line for turn in self.turns)

    def open(self, prompt: Turn, start_byte: int) -> None:
        self.opened, self.cwd, self.branch, self.usage = True, "", "", {}
        self.add(prompt, start_byte)

    def close(self, ordinal: int, end_line: int, end_byte: int) -> Exchange:
        turns = sorted(self.turns, key=lambda turn: turn.line)
        times: list[Milliseconds] = [turn.at for turn in turns if turn.at is not None]
        span = Span(self.start_line, end_line, self.start_byte, end_byte)
        first, last = (times[0], max(times)) if times else (None, None)
        given, made = (sum(counts) for counts in zip(*self.usage.values(), strict=True)) if self.usage else (0, 0)
        return Exchange(ordinal, span, tuple(turns), first, last, self.cwd, self.branch, given, made)
