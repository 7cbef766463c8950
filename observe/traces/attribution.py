"""Attribution: which of an agent's edits wrote a line, and how sure that is."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import cached_property

from msgspec import Struct

from ...archiver.copies.raw import RawArchive
from ...archiver.reading.recorded_edits import written_lines
from ...archiver.store import Edit, Store
from ...core.conversation import Kind, Milliseconds, Turn
from ...core.errors import PalaverError
from .blame import BlamedLine, Commit

_SLACK = 60_000
"""Milliseconds that a commit may lie before the edit that it holds: clocks of machines differ."""
_TELLING = 3
"""Letters and digits from which on a line says something by itself; a bracket is anybody's."""


class Certainty(StrEnum):
    """How sure it is that an agent wrote a line.

    `certain`: the very line stands in what the agent wrote into this file, before it was committed. `likely`: it stands
    there but for blanks and signs, or in a copy of the file elsewhere, or is a mere bracket beside such a line, or is
    short and one of a commit of which agents wrote every line.
    `possible`: the agent changed this file while the commit was made, but the line does not stand in what it wrote.
    """

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"
    NONE = "none"


SURE = (Certainty.CERTAIN, Certainty.LIKELY)
"""From these on a line counts as an agent's."""


class Written(Struct, frozen=True):
    """A file that one exchange wrote: when, which lines, and whether it is this very file (or a copy elsewhere)."""

    edit: Edit
    at: Milliseconds | None
    lines: frozenset[str]
    here: bool

    @property
    def bare(self) -> frozenset[str]:
        """The lines without blanks and signs, as formatters leave them alike."""
        return frozenset(map(_bare, self.lines))


class Attribution:
    """Knows what agents wrote into one file."""

    def __init__(self, writings: Sequence[Written]) -> None:
        """`writings` are given oldest first."""
        self._writings = writings

    @cached_property
    def _by_line(self) -> dict[str, list[Written]]:
        return _index((line, each) for each in self._writings for line in each.lines)

    @cached_property
    def _by_bare(self) -> dict[str, list[Written]]:
        return _index((line, each) for each in self._writings for line in each.bare if line)

    def of(self, line: BlamedLine) -> tuple[Certainty, Written | None]:
        """How sure it is that an agent wrote this line, and the edit that did it: the last one before the commit."""
        text = line.text.strip()
        telling = len(_bare(text)) >= _TELLING
        if telling and (exact := _author(self._by_line.get(text, ()), line)):
            return (Certainty.CERTAIN if exact.here else Certainty.LIKELY), exact
        if telling and (near := _author(self._by_bare.get(_bare(text), ()), line)):
            return Certainty.LIKELY, near
        meanwhile = self._meanwhile(line)
        if meanwhile is not None:
            return Certainty.POSSIBLE, meanwhile
        return Certainty.NONE, None

    def _meanwhile(self, line: BlamedLine) -> Written | None:
        """Return the last edit of this very file between the previous commit and this one, if there is one."""
        edits = (each for each in reversed(self._writings) if each.here and _is_between(each, line.commit))
        return next(edits, None)

    def of_all(self, lines: Sequence[BlamedLine]) -> list[tuple[Certainty, Written | None]]:
        """Return the certainty and the edit of each line.

        A line of fewer than `_TELLING` letters goes with the line before or after it. In a commit of which agents wrote
        every line, it also counts as theirs if an edit of the file has that line.
        """
        found = [self.of(line) for line in lines]
        written = [self._short(line) if found[place][0] not in SURE else None for place, line in enumerate(lines)]
        mixed = {
            line.commit
            for line, (certainty, _), own in zip(lines, found, written, strict=True)
            if certainty not in SURE and own is None and line.text.strip()
        }
        for place, own in enumerate(written):
            if own is not None and lines[place].commit not in mixed:
                found[place] = Certainty.LIKELY, own
        last = len(lines) - 1
        for place, beside in [
            *((n, n - 1) for n in range(1, last + 1)),
            *((n, n + 1) for n in range(last - 1, -1, -1)),
        ]:
            certainty, author = found[beside]
            mute = len(_bare(lines[place].text)) < _TELLING and found[place][0] not in SURE
            if mute and certainty in SURE and lines[beside].commit == lines[place].commit:
                found[place] = Certainty.LIKELY, author
        return found

    def _short(self, line: BlamedLine) -> Written | None:
        """Return the edit of this very file that wrote a short line between the previous commit and this one."""
        edits = self._by_line.get(line.text.strip(), ())
        return next((each for each in edits if each.here and _is_between(each, line.commit)), None)


class Writings:
    """Reads what was written from the archived lines themselves."""

    def __init__(self, store: Store, raw: RawArchive) -> None:
        self._store, self._raw = store, raw

    def of(self, edit: Edit, *, here: bool) -> Written:
        """What an exchange wrote into a file; no lines where its copy cannot be read."""
        stored = self._store.exchanges.load([edit.exchange]).get(edit.exchange)
        if stored is None:
            return Written(edit, edit.started, frozenset(), here)
        turns, span = stored.exchange.turns, stored.exchange.span
        wrote = [turn for turn in turns if edit.path in turn.writes and not turn.failed]
        calls = {turn.call: turn for turn in turns if turn.kind is Kind.CALL and turn.call}
        near, lines = (span.start_line, span.start_byte), frozenset[str]()
        for turn in wrote:
            call = self._line(edit, calls.get(turn.call, turn), near)
            lines |= written_lines(call, edit.path, self._line(edit, turn, near))
        return Written(edit, min((turn.at for turn in wrote if turn.at is not None), default=edit.started), lines, here)

    def _line(self, edit: Edit, turn: Turn, near: tuple[int, int]) -> bytes:
        try:
            return b"".join(self._raw.lines(edit.archived, turn.line, turn.line, near))
        except (PalaverError, OSError):
            return b""


def _index(pairs: Iterable[tuple[str, Written]]) -> dict[str, list[Written]]:
    found: dict[str, list[Written]] = {}
    for line, each in pairs:
        found.setdefault(line, []).append(each)
    return found


def _is_between(edit: Written, commit: Commit) -> bool:
    """Return whether an edit was made after the previous commit and not after this one, give or take `_SLACK`."""
    if edit.at is None:
        return False
    after = commit.since is None or edit.at > commit.since - _SLACK
    return after and (commit.at is None or edit.at <= commit.at + _SLACK)


def _author(writings: Sequence[Written], line: BlamedLine) -> Written | None:
    """Which of these wrote the line: the first after the commit before, else the last before this one.

    Who writes a whole file anew repeats what others wrote. This very file counts before a copy of it.
    """
    since, until = line.commit.since, line.commit.at
    before = [each for each in writings if until is None or each.at is None or each.at <= until + _SLACK]
    before = [each for each in before if each.here] or before
    meanwhile = (each for each in before if each.at is not None and (since is None or each.at > since - _SLACK))
    return next(meanwhile, before[-1] if before else None)


def _bare(line: str) -> str:
    return "".join(sign for sign in line if sign.isalnum())
