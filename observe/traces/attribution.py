"""Attribution of lines to the edits of agents, with a certainty."""

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
"""Tolerated difference between the clocks of commits and transcripts, in milliseconds."""
_DISTINCTIVE_MIN = 3
"""Minimum letters and digits of a line that can be attributed by itself, unlike a single bracket."""


class Certainty(StrEnum):
    """Certainty that an agent wrote a line.

    - `certain`: the agent wrote exactly this line into this file before the commit.
    - `likely`: the line differs in whitespace or punctuation, or was written to a copy of the file. It also applies to
      a bracket next to such a line, and to a short line in a commit that agents wrote completely.
    - `possible`: the agent changed this file before the commit, but did not write this line.
    """

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"
    NONE = "none"


SURE = (Certainty.CERTAIN, Certainty.LIKELY)
"""Certainties that count as written by an agent."""


class WrittenFile(Struct, frozen=True):
    """Lines that one exchange wrote into a file. `here` is False for a copy of the file elsewhere."""

    edit: Edit
    at: Milliseconds | None
    lines: frozenset[str]
    here: bool

    @property
    def bare(self) -> frozenset[str]:
        """Lines without whitespace and punctuation, which formatters change."""
        return frozenset(map(_bare, self.lines))


class Attribution:
    """Edits of one file by agents, indexed by line."""

    def __init__(self, writings: Sequence[WrittenFile]) -> None:
        """Index `writings`, oldest first."""
        self._writings = writings

    @cached_property
    def _by_line(self) -> dict[str, list[WrittenFile]]:
        return _index((line, each) for each in self._writings for line in each.lines)

    @cached_property
    def _by_bare(self) -> dict[str, list[WrittenFile]]:
        return _index((line, each) for each in self._writings for line in each.bare if line)

    def of(self, line: BlamedLine) -> tuple[Certainty, WrittenFile | None]:
        """Return the certainty that an agent wrote this line, and the edit."""
        text = line.text.strip()
        distinctive = len(_bare(text)) >= _DISTINCTIVE_MIN
        if distinctive and (exact := _author(self._by_line.get(text, ()), line)):
            return (Certainty.CERTAIN if exact.here else Certainty.LIKELY), exact
        if distinctive and (near := _author(self._by_bare.get(_bare(text), ()), line)):
            return Certainty.LIKELY, near
        meanwhile = self._meanwhile(line)
        if meanwhile is not None:
            return Certainty.POSSIBLE, meanwhile
        return Certainty.NONE, None

    def _meanwhile(self, line: BlamedLine) -> WrittenFile | None:
        """Return the last edit of this file between the previous commit and this one, or None."""
        edits = (each for each in reversed(self._writings) if each.here and _is_between(each, line.commit))
        return next(edits, None)

    def of_all(self, lines: Sequence[BlamedLine]) -> list[tuple[Certainty, WrittenFile | None]]:
        """Return the certainty and the edit of each line.

        A short line is attributed like a neighbouring line. In a commit that agents wrote completely, it also counts as
        theirs if an edit of the file contains it.
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
            mute = len(_bare(lines[place].text)) < _DISTINCTIVE_MIN and found[place][0] not in SURE
            if mute and certainty in SURE and lines[beside].commit == lines[place].commit:
                found[place] = Certainty.LIKELY, author
        return found

    def _short(self, line: BlamedLine) -> WrittenFile | None:
        """Return the edit of this file that wrote a short line between the previous commit and this one, or None."""
        edits = self._by_line.get(line.text.strip(), ())
        return next((each for each in edits if each.here and _is_between(each, line.commit)), None)


class EditReader:
    """Reader of the edits in the raw archive."""

    def __init__(self, store: Store, raw: RawArchive) -> None:
        self._store, self._raw = store, raw

    def of(self, edit: Edit, *, here: bool) -> WrittenFile:
        """Return the lines that an exchange wrote into a file; an empty result if its raw copy is unreadable."""
        stored = self._store.exchanges.load([edit.exchange]).get(edit.exchange)
        if stored is None:
            return WrittenFile(edit, edit.started, frozenset(), here)
        turns, span = stored.exchange.turns, stored.exchange.span
        wrote = [turn for turn in turns if edit.path in turn.writes and not turn.failed]
        calls = {turn.call: turn for turn in turns if turn.kind is Kind.CALL and turn.call}
        near, lines = (span.start_line, span.start_byte), frozenset[str]()
        for turn in wrote:
            call = self._line(edit, calls.get(turn.call, turn), near)
            lines |= written_lines(call, edit.path, self._line(edit, turn, near))
        return WrittenFile(
            edit, min((turn.at for turn in wrote if turn.at is not None), default=edit.started), lines, here
        )

    def _line(self, edit: Edit, turn: Turn, near: tuple[int, int]) -> bytes:
        try:
            return b"".join(self._raw.lines(edit.archived, turn.line, turn.line, near))
        except (PalaverError, OSError):
            return b""


def _index(pairs: Iterable[tuple[str, WrittenFile]]) -> dict[str, list[WrittenFile]]:
    found: dict[str, list[WrittenFile]] = {}
    for line, each in pairs:
        found.setdefault(line, []).append(each)
    return found


def _is_between(edit: WrittenFile, commit: Commit) -> bool:
    """Return whether an edit was made between the previous commit and this one, within `_SLACK`."""
    if edit.at is None:
        return False
    after = commit.since is None or edit.at > commit.since - _SLACK
    return after and (commit.at is None or edit.at <= commit.at + _SLACK)


def _author(writings: Sequence[WrittenFile], line: BlamedLine) -> WrittenFile | None:
    """Return the edit that wrote the line: the first after the previous commit, else the last before this one.

    A later edit of a whole file repeats lines of earlier ones. Edits of the file itself precede those of a copy.
    """
    since, until = line.commit.since, line.commit.at
    before = [each for each in writings if until is None or each.at is None or each.at <= until + _SLACK]
    before = [each for each in before if each.here] or before
    meanwhile = (each for each in before if each.at is not None and (since is None or each.at > since - _SLACK))
    return next(meanwhile, before[-1] if before else None)


def _bare(line: str) -> str:
    return "".join(char for char in line if char.isalnum())
