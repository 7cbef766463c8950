"""Lines that an archived exchange wrote into a file."""

from ...core.conversation import Exchange, Kind, Milliseconds, Turn
from ...core.errors import PalaverError
from ..copies.raw import RawArchive
from ..store import Edit
from .recorded_edits import written_lines


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
