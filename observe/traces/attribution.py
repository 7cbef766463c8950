"""Attribution of lines of code to the edits of agents, with a level of certainty, and trace records.

Code traces name the authors of a file or a line. The newest traces of an archive can be listed. Trace records use the
format of the agent-trace specification, version 0.1.
"""

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import groupby, pairwise
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeAlias
from uuid import NAMESPACE_URL, uuid5

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.copies.raw_copy import RawArchive
from ...archiver.reading.exchanges import read_written_lines
from ...archiver.store import Edit, Store, StoredExchange
from ...core.conversation import Milliseconds, show_instant
from ...core.errors import DocumentNotFound, DocumentUnreadable, InvalidInput
from ...core.runtime import Closing
from ...search.present.details import SessionName, SessionNames
from .git_blame import BlamedLine, Commit, CommitGroup, CommitLookup, Repository, blame, unversioned

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
    """Edits of one file by agents, indexed by line.

    A line whose words occur only once in the file identifies its edit. Lines such as `return None` or `})` occur in
    many places and edits, so their author is that of the lines around them in the same commit.
    """

    def __init__(self, writings: Sequence[WrittenFile], rows: Iterable[str]) -> None:
        """Index `writings`, which are sorted from the oldest to the newest. `rows` are all lines of the file."""
        self._writings = writings
        self._by_line = _index((line, writing) for writing in writings for line in writing.lines)
        self._by_alphanumeric = _index((_alphanumeric(line), writing) for writing in writings for line in writing.lines)
        self._occurrences = Counter(map(_alphanumeric, rows))

    def of_all(self, lines: Sequence[BlamedLine]) -> list[LineAuthor]:
        """Return the author of each line of consecutive lines."""
        authors = [self._of(line) for line in lines]
        for start, end in _runs(lines):
            self._complete(lines, authors, start, end)
        people = {line.commit for line, author in zip(lines, authors, strict=True) if self._is_of_nobody(line, author)}
        for index, line in enumerate(lines):
            if authors[index][0] not in SURE and line.commit not in people:
                writing = _first_between(self._by_line.get(line.text.strip(), ()), line.commit)
                authors[index] = authors[index] if writing is None else (Certainty.LIKELY, writing)
        for index in (index for index, line in enumerate(lines) if not line.text.strip()):
            above = authors[index - 1] if index and lines[index - 1].commit == lines[index].commit else authors[index]
            authors[index] = above if above[0] in SURE else authors[index]
        return authors

    def _of(self, line: BlamedLine) -> LineAuthor:
        """Return the author of a line, regardless of other lines."""
        text = line.text.strip()
        if self._is_distinctive(text):
            if exact := _author(self._by_line.get(text, ()), line):
                return (Certainty.CERTAIN if exact.same_file else Certainty.LIKELY), exact
            if similar := _author(self._by_alphanumeric.get(_alphanumeric(text), ()), line):
                return Certainty.LIKELY, similar
        latest = _first_between(reversed(self._writings), line.commit)
        return (Certainty.POSSIBLE, latest) if latest is not None else (Certainty.NONE, None)

    def _complete(self, lines: Sequence[BlamedLine], authors: list[LineAuthor], start: int, end: int) -> None:
        """Set the authors of the other lines between `start` and `end`, which are consecutive lines of one commit.

        The nearest distinctive lines above and below decide. If both have an author, or one has and the other side is
        the end of the run, the line has this author too, provided that its edit contains the line.
        """
        distinctive = [index for index in range(start, end) if self._is_distinctive(lines[index].text.strip())]
        bounds = [None, *distinctive, None]
        for above, below in pairwise(bounds):
            sides = [authors[index] for index in (above, below) if index is not None]
            if not sides or any(certainty not in SURE for certainty, _ in sides):
                continue
            for index in range(start if above is None else above + 1, end if below is None else below):
                if (writing := self._shared_author(lines[index], sides)) is not None:
                    authors[index] = Certainty.LIKELY, writing

    def _shared_author(self, line: BlamedLine, sides: Sequence[LineAuthor]) -> WrittenFile | None:
        """Return the author on one of both sides whose edit contains a line."""
        text = _alphanumeric(line.text)
        writers = (writing for _, writing in sides if writing is not None)
        return next((writing for writing in writers if not text or writing in self._by_alphanumeric[text]), None)

    def _is_of_nobody(self, line: BlamedLine, author: LineAuthor) -> bool:
        """Return whether a line shows that an agent did not write all of its commit."""
        text = line.text.strip()
        is_known = author[0] in SURE or _first_between(self._by_line.get(text, ()), line.commit) is not None
        return text != "" and not is_known

    def _is_distinctive(self, text: str) -> bool:
        words = _alphanumeric(text)
        return len(words) >= _DISTINCTIVE_MIN and self._occurrences[words] <= 1


def _runs(lines: Sequence[BlamedLine]) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each run of consecutive lines of one commit."""
    start = 0
    for _, run in groupby(lines, key=attrgetter("commit")):
        end = start + len([*run])
        yield start, end
        start = end


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
    before = [edit for edit in writings if until is None or edit.at is None or edit.at <= until + _SLACK]
    before = [edit for edit in before if edit.same_file] or before
    meanwhile = (edit for edit in before if edit.at is not None and (since is None or edit.at > since - _SLACK))
    return next(meanwhile, before[-1] if before else None)


def _alphanumeric(line: str) -> str:
    """Return a line without whitespace and punctuation, which formatters change."""
    return "".join(char for char in line if char.isalnum())


VERSION = "0.1.0"


class TracedConversation(Struct, frozen=True):
    """Conversation that wrote lines. `ranges` are pairs of first and last line, empty if unknown."""

    url: str
    model: str
    ranges: tuple[tuple[int, int], ...]


class TracedFile(Struct, frozen=True):
    """File with the conversations that wrote it. `path` is relative to the repository, or absolute without one."""

    path: str
    conversations: tuple[TracedConversation, ...]


class Trace(Struct, frozen=True):
    """Lines that agents wrote for one commit, or uncommitted lines of one conversation if `revision` is empty."""

    revision: str
    at: Milliseconds | None
    tool: str
    tool_version: str
    files: tuple[TracedFile, ...]

    @property
    def id(self) -> str:
        """Stable ID of the commit or the conversation."""
        urls = sorted({each.url for file in self.files for each in file.conversations})
        return str(uuid5(NAMESPACE_URL, self.revision or " ".join(urls)))

    def as_json(self) -> dict[str, Any]:
        """Return the record in the JSON format of the specification."""
        return {
            "version": VERSION,
            "id": self.id,
            "timestamp": None if self.at is None else show_instant(self.at),
            "vcs": {"type": "git", "revision": self.revision} if self.revision else None,
            "tool": {"name": self.tool, "version": self.tool_version},
            "files": [
                {"path": file.path, "conversations": [_conversation(each) for each in file.conversations]}
                for file in self.files
            ],
        }


def ranges(lines: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Return line numbers as inclusive ranges: `3, 1, 2, 7` becomes `(1, 3), (7, 7)`."""
    found: list[tuple[int, int]] = []
    for line in sorted(set(lines)):
        if found and found[-1][1] == line - 1:
            found[-1] = found[-1][0], line
        else:
            found.append((line, line))
    return tuple(found)


def _conversation(each: TracedConversation) -> dict[str, Any]:
    model = {"model_id": each.model} if each.model else {}
    return {
        "url": each.url,
        "contributor": {"type": "ai", **model},
        "ranges": [{"start_line": first, "end_line": last} for first, last in each.ranges],
    }


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


class Block(Struct, frozen=True):
    """Consecutive lines of a file with the same author.

    `lines` are the first and the last line (1-based). `commit` is empty if the lines are of several commits, or not
    committed. If no agent certainly or likely wrote the lines, the fields of the session are empty. `certainty` is that
    of the least certain line, and `prompt` is the user's prompt that led to the edit.
    """

    lines: tuple[int, int]
    text: str
    commit: str
    certainty: Certainty
    session: str = ""
    session_title: str = ""
    exchange: str = ""
    agent: str = ""
    at: Milliseconds | None = None
    prompt: str = ""


class FileBlame(Struct, frozen=True):
    """Authors of the lines of a file, in the order of the file. `versioned` is True if git tracks the file.

    `total` is the number of lines; agents wrote `certain` and `likely` of them.
    """

    path: str
    versioned: bool
    total: int
    certain: int
    likely: int
    blocks: tuple[Block, ...]


class CodeTraces(Closing):
    """Traces of the code that agents wrote, read from git and the archive."""

    def __init__(self, store: Store) -> None:
        """Read the traces in a store, which `close` closes."""
        self._store, self._raw = store, RawArchive(store.home.archive)

    def of_file(self, path: Path, line: int | None = None) -> Attributed:
        """Return the authors of all lines of a file, or of one line (1-based), by commit.

        Raises:
            DocumentNotFound, DocumentUnreadable: The file is missing or unreadable.
            InvalidInput: The file has no such line.
        """
        name, versioned, lines = self._lines(path, line)
        return Attributed(name, versioned, len(lines), self._shares(name, lines))

    def blame(self, path: Path, line: int | None = None, revision: str = "") -> FileBlame:
        """Return the authors of all lines of a file, or of one line (1-based), by range of lines.

        `revision` names a commit. Without it, the file of the working tree is read.

        Raises:
            DocumentNotFound, DocumentUnreadable: The file is missing or unreadable.
            InvalidInput: The file has no such line, or there is no such commit.
        """
        name, versioned, lines = self._lines(path, line, revision)
        runs = [[*run] for _, run in groupby(lines, key=_exchange)]
        numbers = {run[0][1][1].edit.exchange for run in runs if run[0][1][1] is not None}
        exchanges = self._store.exchanges.load(sorted(numbers))
        sessions = {run[0][1][1].edit.session for run in runs if run[0][1][1] is not None}
        names = SessionNames(self._store).of_all(sessions)
        blocks = [self._block(run, exchanges, names) for run in runs]
        counts = Counter(certainty for _, (certainty, _) in lines)
        certain, likely = (counts[certainty] for certainty in SURE)
        return FileBlame(name, versioned, len(lines), certain, likely, tuple(blocks))

    def _lines(self, path: Path, line: int | None, revision: str = "") -> tuple[str, bool, list[_AttributedLine]]:
        """Return the name of a file, whether git tracks it, and its lines with their authors."""
        file = _resolve(path, may_be_missing=bool(revision))
        repository = Repository.of(file.parent)
        commit = _commit_of(repository, revision)
        rows = _rows_at(repository, commit, file) if repository and commit else _rows(file)
        if line is not None and not 1 <= line <= len(rows):
            raise InvalidInput(f"No such line: {line}", hint=f"The file has the lines 1 to {len(rows)}.")
        first, last = (
            (1, len(rows)) if line is None else (max(1, line - _CONTEXT_LINES), min(len(rows), line + _CONTEXT_LINES))
        )
        lines = blame(repository, file, first, last, commit) if repository and rows else []
        versioned = bool(lines)
        lines = lines or unversioned(rows)
        authors = Attribution(self._written_files(file, repository, lines), rows).of_all(lines)
        output = [pair for pair in zip(lines, authors, strict=True) if line in {None, pair[0].number}]
        name = repository.relative_path(file) if repository and versioned else str(file)
        return name, versioned, output

    def _block(
        self,
        lines: Sequence[_AttributedLine],
        exchanges: Mapping[int, StoredExchange],
        names: Mapping[int, SessionName],
    ) -> Block:
        """Return consecutive lines of the same author as a block."""
        commits = {"" if line.commit.uncommitted else line.commit.sha for line, _ in lines}
        commit = commits.pop() if len(commits) == 1 else ""
        span, text = (lines[0][0].number, lines[-1][0].number), "\n".join(line.text for line, _ in lines)
        certainty = max((certainty for _, (certainty, _) in lines), key=[*Certainty].index)
        written = lines[0][1][1]
        if written is None or certainty not in SURE:
            return Block(span, text, commit, certainty)
        stored = exchanges.get(written.edit.exchange)
        session = self._store.sessions.load(written.edit.session)
        return Block(
            span,
            text,
            commit,
            certainty,
            session=names[written.edit.session].short_id,
            session_title=names[written.edit.session].title or session.title,
            exchange=f"ex-{written.edit.exchange}",
            agent=session.agent,
            at=written.at,
            prompt=stored.exchange.prompt if stored else "",
        )

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


def _exchange(pair: _AttributedLine) -> int:
    """Return the exchange that certainly or likely wrote a line, or 0."""
    certainty, written = pair[1]
    return written.edit.exchange if written is not None and certainty in SURE else 0


def _commit_of(repository: Repository | None, name: str) -> str:
    """Return the hash of a commit, or an empty text for an empty name."""
    if name and repository is None:
        raise InvalidInput("The file is not in a git repository", hint="Leave out --commit.")
    commit = repository.commit(name) if repository and name else ""
    if name and not commit:
        raise InvalidInput(f"No such commit: {name}", hint="Give a hash, branch or tag of the file's git repository.")
    return commit


def _rows_at(repository: Repository, commit: str, file: Path) -> list[str]:
    """Return the lines of a file in a commit."""
    content = repository.text_at(commit, file)
    if content is None:
        raise InvalidInput(
            f"Commit {commit[:10]} does not contain {file.name}", hint="List its files with git ls-tree."
        )
    return _split(content)


def _resolve(path: Path, *, may_be_missing: bool = False) -> Path:
    """Return the resolved path of a file, which exists unless `may_be_missing` is true."""
    try:
        file = path.expanduser().resolve()
        if file.is_file() or (may_be_missing and not file.exists()):
            return file
    except (OSError, ValueError, RuntimeError):
        pass  # The name is too long, the home directory is unknown, or a link is circular.
    raise DocumentNotFound(path)


def _rows(file: Path) -> list[str]:
    try:
        return _split(file.read_bytes())
    except OSError as error:
        raise DocumentUnreadable(file, error.strerror or str(error)) from None


def _split(content: bytes) -> list[str]:
    text = content.decode("utf-8", "replace")
    return text.removesuffix("\n").split("\n") if text else []
