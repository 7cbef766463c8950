"""Lookup of the commits that contain archived edits, for repositories that still exist."""

import re
from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct, field

from ...archiver.store import Edit
from ...core.conversation import Milliseconds
from .git_repository import Repository

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
