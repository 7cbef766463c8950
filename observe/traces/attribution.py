"""Attribution of lines to the edits of agents, with a level of certainty."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct

from ...archiver.copies.raw import RawArchive
from ...archiver.reading.written_edit import read_written_lines
from ...archiver.store import Edit, Store
from ...core.conversation import Milliseconds
from .blame import BlamedLine, Commit

_SLACK = 60_000
"""Tolerated difference between the clocks of commits and transcripts, in milliseconds."""
_DISTINCTIVE_MIN = 3
"""Minimum number of letters and digits of a line whose text alone identifies the edit. The line `})` has none."""


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
    """Lines that one exchange wrote into a file. `same_file` is False if it wrote them into a copy of the file."""

    edit: Edit
    at: Milliseconds | None
    lines: frozenset[str]
    same_file: bool


LineAuthor: TypeAlias = tuple[Certainty, WrittenFile | None]
"""Certainty that an agent wrote a line, and the edit that wrote it."""


class Attribution:
    """Edits of one file by agents, indexed by line."""

    def __init__(self, writings: Sequence[WrittenFile]) -> None:
        """Index `writings`, which are sorted from the oldest to the newest."""
        self._writings = writings
        self._by_line = _index((line, each) for each in writings for line in each.lines)
        self._by_alphanumeric = _index((_alphanumeric(line), each) for each in writings for line in each.lines)

    def of(self, line: BlamedLine) -> LineAuthor:
        """Return the author of a line, regardless of other lines."""
        text = line.text.strip()
        distinctive = len(_alphanumeric(text)) >= _DISTINCTIVE_MIN
        if distinctive and (exact := _author(self._by_line.get(text, ()), line)):
            return (Certainty.CERTAIN if exact.same_file else Certainty.LIKELY), exact
        if distinctive and (near := _author(self._by_alphanumeric.get(_alphanumeric(text), ()), line)):
            return Certainty.LIKELY, near
        latest = _first_between(reversed(self._writings), line.commit)
        return (Certainty.POSSIBLE, latest) if latest is not None else (Certainty.NONE, None)

    def of_all(self, lines: Sequence[BlamedLine]) -> list[LineAuthor]:
        """Return the author of each line.

        Two rules attribute short lines such as `})`, which occur in many edits. If agents wrote all other lines of the
        commit, the author is the edit that contains the line. Otherwise it is the author of a neighbouring line of the
        same commit.
        """
        found = [self.of(line) for line in lines]
        short = [
            _first_between(self._by_line.get(line.text.strip(), ()), line.commit) if certainty not in SURE else None
            for line, (certainty, _) in zip(lines, found, strict=True)
        ]
        mixed = {
            line.commit
            for line, (certainty, _), own in zip(lines, found, short, strict=True)
            if certainty not in SURE and own is None and line.text.strip()
        }
        for index, own in enumerate(short):
            if own is not None and lines[index].commit not in mixed:
                found[index] = Certainty.LIKELY, own
        last = len(lines) - 1
        for index, neighbour in [
            *((n, n - 1) for n in range(1, last + 1)),
            *((n, n + 1) for n in range(last - 1, -1, -1)),
        ]:
            certainty, author = found[neighbour]
            undecided = len(_alphanumeric(lines[index].text)) < _DISTINCTIVE_MIN and found[index][0] not in SURE
            if undecided and certainty in SURE and lines[neighbour].commit == lines[index].commit:
                found[index] = Certainty.LIKELY, author
        return found


def read_edit(store: Store, raw: RawArchive, edit: Edit, *, same_file: bool) -> WrittenFile:
    """Return the lines that an exchange wrote into a file, or no lines if its raw copy is unreadable."""
    stored = store.exchanges.load([edit.exchange]).get(edit.exchange)
    if stored is None:
        return WrittenFile(edit, edit.started, frozenset(), same_file)
    at, lines = read_written_lines(stored.exchange, edit, raw)
    return WrittenFile(edit, at, lines, same_file)


def _index(pairs: Iterable[tuple[str, WrittenFile]]) -> dict[str, list[WrittenFile]]:
    found = defaultdict[str, list[WrittenFile]](list)
    for line, each in pairs:
        found[line].append(each)
    return found


def _first_between(edits: Iterable[WrittenFile], commit: Commit) -> WrittenFile | None:
    """Return the first edit of this file between the previous commit and this one. Edits of copies do not count."""
    return next((each for each in edits if each.same_file and _is_between(each, commit)), None)


def _is_between(edit: WrittenFile, commit: Commit) -> bool:
    """Return whether an edit was made between the previous commit and this one, with a tolerance of `_SLACK`."""
    if edit.at is None:
        return False
    after = commit.since is None or edit.at > commit.since - _SLACK
    return after and (commit.at is None or edit.at <= commit.at + _SLACK)


def _author(writings: Sequence[WrittenFile], line: BlamedLine) -> WrittenFile | None:
    """Return the edit that wrote the line.

    It is the first edit since the previous commit, because later edits of the whole file repeat its lines. Without such
    an edit, it is the newest earlier edit. Edits of the file itself are preferred to edits of a copy.
    """
    since, until = line.commit.since, line.commit.at
    before = [each for each in writings if until is None or each.at is None or each.at <= until + _SLACK]
    before = [each for each in before if each.same_file] or before
    meanwhile = (each for each in before if each.at is not None and (since is None or each.at > since - _SLACK))
    return next(meanwhile, before[-1] if before else None)


def _alphanumeric(line: str) -> str:
    """Return a line without whitespace and punctuation, which formatters change."""
    return "".join(char for char in line if char.isalnum())
