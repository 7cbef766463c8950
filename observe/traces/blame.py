"""Blame: for each line of a file the commit that brought it, and when."""

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from ...core.conversation import Milliseconds
from .git import Repository

UNCOMMITTED = "0" * 40


class Commit(Struct, frozen=True):
    """A commit that brought lines. `at` is when it was made, or written where that is later; `since` is when the one
    before it was made, None for the first. `name` is what the file was called in it.
    """

    sha: str
    at: Milliseconds | None
    since: Milliseconds | None
    name: str

    @property
    def uncommitted(self) -> bool:
        """Whether the lines are in no commit yet."""
        return set(self.sha) == {"0"}


class BlamedLine(Struct, frozen=True):
    """A line (1-based) of the file as it is now, and the commit that brought it."""

    number: int
    text: str
    commit: Commit


def blame(repository: Repository, file: Path, first: int, last: int) -> list[BlamedLine]:
    """The lines of a file from `first` to `last`, which it must have; none where git does not know the file."""
    name = repository.name_of(file)
    told = repository.ask("blame", "--porcelain", "--no-textconv", "-L", f"{first},{last}", paths=(name,))
    return _read(repository, told, name)


def unversioned(rows: Sequence[str]) -> list[BlamedLine]:
    """The lines of a file that git does not know, as uncommitted."""
    commit = Commit(UNCOMMITTED, None, None, "")
    return [BlamedLine(number, row, commit) for number, row in enumerate(rows, start=1)]


def _read(repository: Repository, told: str, name: str) -> list[BlamedLine]:
    """Git's porcelain: `<sha> <line then> <line now>`, what is said of a commit once, and the line after a tab."""
    heads: dict[str, dict[str, str]] = {}
    found: list[tuple[int, str, str]] = []
    sha, number = "", 0
    for row in told.split("\n"):
        if row.startswith("\t"):
            found.append((number, row[1:].removesuffix("\r"), sha))
            continue
        key, _, value = row.partition(" ")
        if len(key) in {40, 64} and all(sign in "0123456789abcdef" for sign in key) and value[:1].isdigit():
            sha, number = key, int(value.split(" ")[1])
            heads.setdefault(sha, {})
        elif sha:
            heads[sha].setdefault(key, value)
    since = _times(repository, [head["previous"].partition(" ")[0] for head in heads.values() if "previous" in head])
    commits = {sha: _commit(sha, head, since, name) for sha, head in heads.items()}
    return [BlamedLine(number, text, commits[sha]) for number, text, sha in found]


def _commit(sha: str, head: dict[str, str], since: dict[str, Milliseconds], name: str) -> Commit:
    at = max(int(head.get("author-time", "0")), int(head.get("committer-time", "0"))) * 1000
    previous = since.get(head.get("previous", "").partition(" ")[0])
    made = Commit(sha, at, previous, head.get("filename", name))
    return Commit(sha, None, previous, made.name) if made.uncommitted else made


def _times(repository: Repository, commits: list[str]) -> dict[str, Milliseconds]:
    """When each of these commits was made."""
    if not commits:
        return {}
    told = repository.ask("show", "--no-patch", "--format=%H %ct", *dict.fromkeys(commits))
    rows = (row.split(" ") for row in told.splitlines())
    return {row[0]: int(row[1]) * 1000 for row in rows if len(row) == 2}
