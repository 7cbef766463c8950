"""Traces over one archive: who wrote a file or a line, and what agents wrote lately."""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.copies.raw import RawArchive
from ...archiver.store import Store
from ...core.closing import Closing
from ...core.errors import DocumentNotFound, DocumentUnreadable, InvalidInput
from ...core.home import Home
from .attribution import SURE, Attribution, Certainty, Writings, Written
from .blame import BlamedLine, Commit, blame, unversioned
from .committed import Committed, Group
from .edited import whole_path
from .git import Repository
from .record import Conversation, Trace, TracedFile, ranges

_BESIDE = 20
"""Lines on both sides of the one asked about that are looked at: a bracket is known by its neighbours."""
_EDITS_MAX = 1_000
"""The newest edits of one file that are looked at."""


class CommitShare(Struct, frozen=True):
    """What one commit brought to the lines asked about, and how much of it agents wrote.

    `lines` are all of them, `certainties` how many there are of each. `trace` has those that agents wrote, with the
    ranges of the lines as they are numbered now; None where they wrote none.
    """

    commit: Commit
    lines: tuple[tuple[int, int], ...]
    certainties: dict[Certainty, int]
    trace: Trace | None


class Attributed(Struct, frozen=True):
    """Who wrote a file or a line. `shares` are by commit, the largest first; `versioned` says whether git knows it."""

    path: str
    versioned: bool
    total: int
    shares: tuple[CommitShare, ...]

    def count(self, certainty: Certainty) -> int:
        """How many lines there are of this certainty."""
        return sum(share.certainties.get(certainty, 0) for share in self.shares)

    @property
    def written(self) -> int:
        """Lines that agents wrote, for certain or likely."""
        return sum(map(self.count, SURE))


class Traces(Closing):
    """Asks git and the archive. Writes nothing."""

    def __init__(self, store: Store, raw: RawArchive) -> None:
        self._store, self._writings = store, Writings(store, raw)

    @classmethod
    def open(cls, home: Home) -> Self:
        """The traces of the archive in this home, which is made if there is none."""
        home.prepare()
        return cls(Store.create(home.database), RawArchive(home.archive))

    def of_file(self, path: Path, line: int | None = None) -> Attributed:
        """Who wrote the lines of a file, or one line (from 1).

        Raises `DocumentNotFound`, `DocumentUnreadable` or `InvalidInput`.
        """
        file = _found(path)
        repository, rows = Repository.of(file.parent), _rows(file)
        if line is not None and not 1 <= line <= len(rows):
            raise InvalidInput(f"No such line: {line}", hint="Lines are counted from 1; ask without a line for all.")
        first, last = (1, len(rows)) if line is None else (max(1, line - _BESIDE), min(len(rows), line + _BESIDE))
        lines = blame(repository, file, first, last) if repository and rows else []
        versioned = bool(lines)
        lines = lines or unversioned(rows)
        found = Attribution(self._written(file, repository, lines)).of_all(lines)
        told = [pair for pair in zip(lines, found, strict=True) if line in {None, pair[0].number}]
        name = repository.name_of(file) if repository and versioned else str(file)
        return Attributed(name, versioned, len(told), self._shares(name, told))

    def latest(self, conversation_url: str | None = None, limit: int = 20) -> tuple[list[Trace], int]:
        """Return the newest traces, one for each commit or conversation without one, and how many there are in all.

        `conversation_url` is a session's id, or `session:ID` as in the records, and selects that conversation. Raises
        `InvalidInput`.
        """
        if limit < 1:
            raise InvalidInput(f"Invalid limit: {limit}", hint="Ask for 1 or more.")
        native = conversation_url.removeprefix("session:") if conversation_url is not None else None
        groups = Committed(self._store.edits.newest(native)).groups()
        return [self._trace(group) for group in groups[:limit]], len(groups)

    def _written(self, file: Path, repository: Repository | None, lines: Sequence[BlamedLine]) -> list[Written]:
        """What agents wrote into this file, whatever it was called then, or into its copies; oldest first."""
        tails = {line.commit.name for line in lines if line.commit.name}
        tails |= {repository.name_of(file)} if repository else set()
        found = self._store.edits.of_names(sorted({file.name, *(Path(tail).name for tail in tails)}), _EDITS_MAX)
        here = {str(file), *(str(repository.root / tail) for tail in tails if repository)}
        kept: list[Written] = []
        for edit in reversed(found):
            place = whole_path(edit)
            same = place in here or os.path.realpath(place) in here
            if same or any(place.replace("\\", "/").endswith(f"/{tail}") for tail in tails):
                kept.append(self._writings.of(edit, here=same))
        return kept

    def _shares(
        self, name: str, found: Sequence[tuple[BlamedLine, tuple[Certainty, Written | None]]]
    ) -> tuple[CommitShare, ...]:
        by_commit: dict[Commit, list[tuple[BlamedLine, Certainty, Written | None]]] = {}
        for line, (certainty, written) in found:
            by_commit.setdefault(line.commit, []).append((line, certainty, written))
        shares = [
            CommitShare(
                commit,
                ranges(line.number for line, _, _ in rows),
                dict(Counter(certainty for _, certainty, _ in rows)),
                self._recorded(name, commit, rows),
            )
            for commit, rows in by_commit.items()
        ]
        return tuple(sorted(shares, key=lambda share: -sum(share.certainties.values())))

    def _recorded(
        self, name: str, commit: Commit, rows: Sequence[tuple[BlamedLine, Certainty, Written | None]]
    ) -> Trace | None:
        by_session: dict[int, list[int]] = {}
        at = commit.at
        for line, certainty, written in rows:
            if certainty in SURE and written is not None:
                by_session.setdefault(written.edit.session, []).append(line.number)
                at = at if commit.at is not None else max(at or 0, written.at or 0) or None
        if not by_session:
            return None
        conversations = tuple(self._conversation(number, lines) for number, lines in by_session.items())
        main = self._store.sessions.load(max(by_session, key=lambda number: len(by_session[number])))
        revision = "" if commit.uncommitted else commit.sha
        return Trace(revision, at, main.agent, main.version, (TracedFile(name, conversations),))

    def _conversation(self, number: int, lines: Sequence[int]) -> Conversation:
        session = self._store.sessions.load(number)
        return Conversation(f"session:{session.native_id}", session.models[-1] if session.models else "", ranges(lines))

    def _trace(self, group: Group) -> Trace:
        by_path: dict[str, list[int]] = {}
        for path, edit in group.edits:
            sessions = by_path.setdefault(path, [])
            if edit.session not in sessions:
                sessions.append(edit.session)
        added = group.added()
        files = tuple(
            TracedFile(
                path,
                tuple(replace(self._conversation(number, ()), ranges=added.get(path, ())) for number in sessions),
            )
            for path, sessions in by_path.items()
        )
        newest = self._store.sessions.load(group.edits[0][1].session)
        return Trace(group.revision, group.at, newest.agent, newest.version, files)

    def close(self) -> None:
        """Let go of the store."""
        self._store.close()


def _found(path: Path) -> Path:
    """The file that is meant, whatever it is called."""
    try:
        file = path.expanduser().resolve()
        if file.is_file():
            return file
    except (OSError, ValueError, RuntimeError):
        pass  # longer than a name can be, nobody's home, links in a circle
    raise DocumentNotFound(path)


def _rows(file: Path) -> list[str]:
    try:
        text = file.read_bytes().decode("utf-8", "replace")
    except OSError as error:
        raise DocumentUnreadable(file, error.strerror or str(error)) from None
    return text.removesuffix("\n").split("\n") if text else []
