"""Git blame and lookup of the commits that contain archived edits, with read-only git commands.

Git commands do not run filters or hooks of the repository, and do not use the network. Only repositories that still
exist are searched.
"""

import os
import re
import shutil
import subprocess
from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from ...archiver.store import Edit
from ...core.conversation import Milliseconds

_SECONDS = 60
_QUIET = (
    "--no-pager",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "log.showSignature=false",
    "-c",
    "core.quotePath=false",
    "-c",
    "blame.ignoreRevsFile=",
)
_INHERITED = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR", "GIT_EXTERNAL_DIFF")
"""Environment variables that git sets for hooks and that would redirect a command to another repository."""


class Repository(Struct, frozen=True):
    """Working tree of a git repository, including linked worktrees."""

    root: Path

    @classmethod
    def of(cls, folder: Path) -> "Repository | None":
        """Return the working tree that contains a folder. Return None if there is none or git is not installed."""
        while not folder.is_dir() and folder != folder.parent:
            folder = folder.parent
        output = _run(folder, "rev-parse", "--show-toplevel")
        return cls(Path(output.removesuffix("\n"))) if output else None

    def run(self, command: str, *arguments: str, paths: tuple[str, ...] = ()) -> str:
        """Return the output of a git command, or an empty string if it fails.

        Paths are literal and follow `--`, so git never parses a path as an option.
        """
        unfiltered = self._unfiltered()
        if unfiltered is None:
            return ""
        return _run(self.root, *unfiltered, "--literal-pathspecs", command, *arguments, "--", *paths) or ""

    def _unfiltered(self) -> list[str] | None:
        """Return options that disable the configured filters, or None if a filter name cannot be disabled."""
        listed = _run(self.root, "config", "--null", "--name-only", "--get-regexp", r"^filter\.") or ""
        filters = {name.rpartition(".")[0] for name in listed.split("\0") if name}
        if any("=" in name for name in filters):
            return None
        settings = [
            f"{name}.{output}" for name in sorted(filters) for output in ("clean=", "process=", "required=false")
        ]
        return [option for setting in settings for option in ("-c", setting)]

    def commit(self, name: str) -> str:
        """Return the hash of the commit with a name, such as a hash, branch or tag, or an empty string."""
        output = _run(self.root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        return (output or "").strip()

    def text_at(self, revision: str, file: Path) -> bytes | None:
        """Return the content of a file in a commit, or None if the commit does not contain it."""
        return _output(self.root, "cat-file", "blob", f"{revision}:{self.relative_path(file)}")

    def relative_path(self, file: Path) -> str:
        """Return the path of a file within the tree, in the format of git."""
        return file.relative_to(self.root).as_posix()


def _run(folder: Path, *arguments: str) -> str | None:
    """Return the output of a git command as text, or None if it fails."""
    output = _output(folder, *arguments)
    return None if output is None else output.decode("utf-8", "replace")


def _output(folder: Path, *arguments: str) -> bytes | None:
    program = shutil.which("git")
    if program is None:
        return None
    environment = {name: value for name, value in os.environ.items() if name not in _INHERITED}
    environment |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        ran = subprocess.run(
            [program, *_QUIET, *arguments],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ran.stdout if ran.returncode == 0 else None


_UNCOMMITTED = "0" * 40


class Commit(Struct, frozen=True):
    """Commit that last changed one or more lines of a file.

    `at` is the later of author date and commit date, or None for uncommitted lines. `since` is the date of the previous
    commit of the file, or None for the first commit. `name` is the path of the file in the commit.
    """

    sha: str
    at: Milliseconds | None
    since: Milliseconds | None
    name: str

    @property
    def uncommitted(self) -> bool:
        """True for lines that are not committed yet."""
        return not self.sha.strip("0")


class BlamedLine(Struct, frozen=True):
    """Line of the current file (1-based) with its commit."""

    number: int
    text: str
    commit: Commit


def blame(repository: Repository, file: Path, first: int, last: int, revision: str = "") -> list[BlamedLine]:
    """Return the lines `first` to `last` of a file, or an empty list if git does not track the file.

    A line that was moved or only indented belongs to the commit that wrote it, in this file or in another file of the
    same commit. `revision` is the hash of a commit, or empty for the working tree.
    """
    name = repository.relative_path(file)
    options = ("--porcelain", "--no-textconv", "-w", "-M", "-C", "-L", f"{first},{last}", *filter(None, [revision]))
    return _parse_porcelain(repository, repository.run("blame", *options, paths=(name,)), name)


def unversioned(rows: Sequence[str]) -> list[BlamedLine]:
    """Return the lines of an untracked file as uncommitted."""
    commit = Commit(_UNCOMMITTED, None, None, "")
    return [BlamedLine(number, row, commit) for number, row in enumerate(rows, start=1)]


def _parse_porcelain(repository: Repository, output: str, name: str) -> list[BlamedLine]:
    """Parse the porcelain format: `<sha> <old line> <new line>`, headers once per commit, and the line after a tab."""
    heads: dict[str, dict[str, str]] = {}
    found: list[tuple[int, str, str]] = []
    sha, number = "", 0
    for row in output.split("\n"):
        if row.startswith("\t"):
            found.append((number, row[1:].removesuffix("\r"), sha))
            continue
        key, _, value = row.partition(" ")
        if len(key) in {40, 64} and all(char in "0123456789abcdef" for char in key) and value[:1].isdigit():
            sha, number = key, int(value.split(" ")[1])
            heads.setdefault(sha, {})
        elif sha:
            heads[sha].setdefault(key, value)
    since = _times(repository, [head["previous"].partition(" ")[0] for head in heads.values() if "previous" in head])
    commits = {sha: _commit(sha, head, since, name) for sha, head in heads.items()}
    return [BlamedLine(number, text, commits[sha]) for number, text, sha in found]


def _commit(sha: str, head: dict[str, str], since: dict[str, Milliseconds], name: str) -> Commit:
    previous = since.get(head.get("previous", "").partition(" ")[0])
    commit = Commit(sha, None, previous, head.get("filename", name))
    at = max(int(head.get("author-time", "0")), int(head.get("committer-time", "0"))) * 1000
    return commit if commit.uncommitted else replace(commit, at=at)


def _times(repository: Repository, commits: list[str]) -> dict[str, Milliseconds]:
    """Return the author date of each commit, which a rebase keeps."""
    if not commits:
        return {}
    output = repository.run("show", "--no-patch", "--format=%H %at", *dict.fromkeys(commits))
    rows = (row.split(" ") for row in output.splitlines())
    return {row[0]: int(row[1]) * 1000 for row in rows if len(row) == 2}


_COMMITS_MAX = 5_000
_SLACK = 60_000
_COMMIT, _HUNK = re.compile(r"([0-9a-f]{40,64}) (\d+)"), re.compile(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@")


class CommitGroup(Struct):
    """Archived edits that are in one commit.

    If `revision` is empty, the group contains the edits of one conversation that have no known commit. `edits` are
    pairs of a path and an edit, newest first. The path is relative to the repository, or absolute without a repository.
    """

    revision: str
    at: Milliseconds | None
    repository: Repository | None
    edits: list[tuple[str, Edit]] = field(default_factory=list[tuple[str, Edit]])

    def added(self) -> dict[str, tuple[tuple[int, int], ...]]:
        """Return the added line ranges of each file in the commit."""
        if not self.revision or self.repository is None:
            return {}
        options = ("--unified=0", "--format=", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames")
        paths = tuple(dict.fromkeys(path for path, _ in self.edits))
        output = {path: self.repository.run("show", *options, self.revision, paths=(path,)) for path in paths}
        return {path: _hunks(diff) for path, diff in output.items()}


class CommitLookup:
    """Lookup of the commits that contain edits, in the histories of their repositories."""

    def __init__(self, edits: Sequence[Edit]) -> None:
        """Prepare a lookup for `edits`, which are sorted from the newest to the oldest."""
        self._edits = edits
        self._repositories: dict[Path, Repository | None] = {}
        self._histories: dict[Path, dict[str, list[tuple[Milliseconds, str]]]] = {}

    def groups(self) -> list[CommitGroup]:
        """Return the edits by commit or by conversation, newest first."""
        found: dict[object, CommitGroup] = {}
        for edit in self._edits:
            file, at = Path(edit.absolute_path), edit.ended or edit.started
            repository = self._repository(file.parent)
            path = repository.relative_path(file) if repository else str(file)
            commit = self._commit(repository, path, at) if repository and at is not None else None
            key = commit[1] if commit else edit.session
            made = CommitGroup(commit[1], commit[0], repository) if commit else CommitGroup("", at, None)
            found.setdefault(key, made).edits.append((path, edit))
        return sorted(found.values(), key=lambda group: -(group.at or 0))

    def _repository(self, folder: Path) -> Repository | None:
        if folder not in self._repositories:
            found = Repository.of(folder) if folder.is_absolute() else None
            self._repositories[folder] = found if found and folder.is_relative_to(found.root) else None
        return self._repositories[folder]

    def _commit(self, repository: Repository, path: str, at: Milliseconds) -> tuple[Milliseconds, str] | None:
        """Return the date and hash of the first commit of a file after an edit."""
        if repository.root not in self._histories:
            self._histories[repository.root] = self._history(repository)
        commits = self._histories[repository.root].get(path, [])
        index = bisect_left(commits, (at - _SLACK, ""))
        return commits[index] if index < len(commits) else None

    def _history(self, repository: Repository) -> dict[str, list[tuple[Milliseconds, str]]]:
        """Return the commits of each file, oldest first."""
        options = (f"--max-count={_COMMITS_MAX}", "-z", "--name-only", "--no-renames", "--format=%H %ct")
        found: dict[str, list[tuple[Milliseconds, str]]] = {}
        commit = (0, "")
        for part in repository.run("log", *options).split("\0"):
            row = part.removeprefix("\n")
            if match := _COMMIT.fullmatch(row):
                commit = (int(match[2]) * 1000, match[1])
            elif row:
                found.setdefault(row, []).append(commit)
        return {path: sorted(commits) for path, commits in found.items()}


def _hunks(diff: str) -> tuple[tuple[int, int], ...]:
    found = (_HUNK.match(row) for row in diff.splitlines())
    spans = ((int(match[1]), int(match[2] or 1)) for match in found if match)
    return tuple((start, start + count - 1) for start, count in spans if count)
