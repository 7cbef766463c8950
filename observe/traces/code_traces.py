"""Code traces of an archive: the authors of a file or a line, and the newest traces."""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Self, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.copies.raw import RawArchive
from ...archiver.store import Store
from ...core.closing import Closing
from ...core.errors import DocumentNotFound, DocumentUnreadable, InvalidInput
from ...core.home import Home
from .attribution import SURE, Attribution, Certainty, LineAuthor, WrittenFile, read_edit
from .blame import BlamedLine, Commit, blame, unversioned
from .commit_lookup import CommitGroup, CommitLookup
from .git_repository import Repository
from .trace_record import Trace, TracedConversation, TracedFile, ranges

_CONTEXT_LINES = 20
"""Number of neighbouring lines on both sides that determine the author of a line without words, such as a bracket."""
_EDITS_MAX = 1_000
"""Maximum number of edits that are read for a file. Older edits are ignored."""


_AttributedLine: TypeAlias = tuple[BlamedLine, LineAuthor]


class CommitShare(Struct, frozen=True):
    """Lines of a file that one commit last changed.

    `lines` are inclusive ranges. `certainties` maps each level of certainty to its number of lines. `trace` contains
    the lines that agents wrote, in current line numbers, or None if agents wrote no lines.
    """

    commit: Commit
    lines: tuple[tuple[int, int], ...]
    certainties: dict[Certainty, int]
    trace: Trace | None


class Attributed(Struct, frozen=True):
    """Authors of a file or a line.

    `total` is the number of lines, and `shares` are the lines of each commit, largest first. `versioned` is True if git
    tracks the file.
    """

    path: str
    versioned: bool
    total: int
    shares: tuple[CommitShare, ...]

    def count(self, certainty: Certainty) -> int:
        """Return the number of lines with this level of certainty."""
        return sum(share.certainties.get(certainty, 0) for share in self.shares)

    @property
    def written(self) -> int:
        """Number of lines that agents certainly or likely wrote."""
        return sum(map(self.count, SURE))


class CodeTraces(Closing):
    """Traces of the code that agents wrote, read from git and the archive."""

    def __init__(self, store: Store, raw: RawArchive) -> None:
        self._store, self._raw = store, raw

    @classmethod
    def open(cls, home: Home) -> Self:
        """Open the traces of a home, and create the home if it is missing."""
        home.prepare()
        return cls(Store.create(home.database, read_only=home.read_only), RawArchive(home.archive))

    def of_file(self, path: Path, line: int | None = None) -> Attributed:
        """Return the authors of all lines of a file, or of one line (1-based).

        Raises:
            DocumentNotFound, DocumentUnreadable: The file is missing or unreadable.
            InvalidInput: The file has no such line.
        """
        file = _resolve(path)
        repository, rows = Repository.of(file.parent), _rows(file)
        if line is not None and not 1 <= line <= len(rows):
            raise InvalidInput(f"No such line: {line}", hint=f"The file has the lines 1 to {len(rows)}.")
        first, last = (
            (1, len(rows)) if line is None else (max(1, line - _CONTEXT_LINES), min(len(rows), line + _CONTEXT_LINES))
        )
        lines = blame(repository, file, first, last) if repository and rows else []
        versioned = bool(lines)
        lines = lines or unversioned(rows)
        found = Attribution(self._written_files(file, repository, lines)).of_all(lines)
        output = [pair for pair in zip(lines, found, strict=True) if line in {None, pair[0].number}]
        name = repository.relative_path(file) if repository and versioned else str(file)
        return Attributed(name, versioned, len(output), self._shares(name, output))

    def latest(self, conversation_url: str | None = None, limit: int = 20) -> tuple[list[Trace], int]:
        """Return the newest traces and the number of all traces.

        Each trace belongs to a commit, or to the edits of one conversation that have no known commit.
        `conversation_url`, a session ID or `session:ID`, selects one conversation.

        Raises:
            InvalidInput: The limit is below 1.
        """
        if limit < 1:
            raise InvalidInput(f"Invalid limit: {limit}", hint="Ask for 1 or more.")
        native = conversation_url.removeprefix("session:") if conversation_url is not None else None
        groups = CommitLookup(self._store.edits.newest(native)).groups()
        return [self._trace(group) for group in groups[:limit]], len(groups)

    def _written_files(
        self, file: Path, repository: Repository | None, lines: Sequence[BlamedLine]
    ) -> list[WrittenFile]:
        """Return the edits of this file under all its names, and the edits of its copies, oldest first."""
        tails = {line.commit.name for line in lines if line.commit.name}
        tails |= {repository.relative_path(file)} if repository else set()
        found = self._store.edits.of_names(sorted({file.name, *(Path(tail).name for tail in tails)}), _EDITS_MAX)
        paths = {str(file), *(str(repository.root / tail) for tail in tails if repository)}
        written: list[WrittenFile] = []
        for edit in reversed(found):
            path = edit.absolute_path
            same_file = path in paths or os.path.realpath(path) in paths
            if same_file or any(path.replace("\\", "/").endswith(f"/{tail}") for tail in tails):
                written.append(read_edit(self._store, self._raw, edit, same_file=same_file))
        return written

    def _shares(self, name: str, found: Sequence[_AttributedLine]) -> tuple[CommitShare, ...]:
        by_commit: dict[Commit, list[_AttributedLine]] = {}
        for line, author in found:
            by_commit.setdefault(line.commit, []).append((line, author))
        shares = [
            CommitShare(
                commit,
                ranges(line.number for line, _ in lines),
                dict(Counter(certainty for _, (certainty, _) in lines)),
                self._trace_of(name, commit, lines),
            )
            for commit, lines in by_commit.items()
        ]
        return tuple(sorted(shares, key=lambda share: -sum(share.certainties.values())))

    def _trace_of(self, name: str, commit: Commit, lines: Sequence[_AttributedLine]) -> Trace | None:
        by_session: dict[int, list[int]] = {}
        at = commit.at
        for line, (certainty, written) in lines:
            if certainty in SURE and written is not None:
                by_session.setdefault(written.edit.session, []).append(line.number)
                at = at if commit.at is not None else max(at or 0, written.at or 0) or None
        if not by_session:
            return None
        conversations = tuple(self._conversation(number, lines_of) for number, lines_of in by_session.items())
        main = self._store.sessions.load(max(by_session, key=lambda number: len(by_session[number])))
        revision = "" if commit.uncommitted else commit.sha
        return Trace(revision, at, main.agent, main.version, (TracedFile(name, conversations),))

    def _conversation(self, number: int, lines: Sequence[int]) -> TracedConversation:
        session = self._store.sessions.load(number)
        return TracedConversation(
            f"session:{session.native_id}", session.models[-1] if session.models else "", ranges(lines)
        )

    def _trace(self, group: CommitGroup) -> Trace:
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
        """Close the store."""
        self._store.close()


def _resolve(path: Path) -> Path:
    """Return the resolved path of an existing file."""
    try:
        file = path.expanduser().resolve()
        if file.is_file():
            return file
    except (OSError, ValueError, RuntimeError):
        pass  # The name is too long, the home directory is unknown, or a link is circular.
    raise DocumentNotFound(path)


def _rows(file: Path) -> list[str]:
    try:
        text = file.read_bytes().decode("utf-8", "replace")
    except OSError as error:
        raise DocumentUnreadable(file, error.strerror or str(error)) from None
    return text.removesuffix("\n").split("\n") if text else []
