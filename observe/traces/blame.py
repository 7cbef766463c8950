"""Git blame: commit and date of each line of a file."""

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ...core.conversation import Milliseconds
from .git_repository import Repository

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


def blame(repository: Repository, file: Path, first: int, last: int) -> list[BlamedLine]:
    """Return the lines `first` to `last` of a file, or an empty list if git does not track the file."""
    name = repository.relative_path(file)
    output = repository.run("blame", "--porcelain", "--no-textconv", "-L", f"{first},{last}", paths=(name,))
    return _parse_porcelain(repository, output, name)


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
    """Return the date of each commit."""
    if not commits:
        return {}
    output = repository.run("show", "--no-patch", "--format=%H %ct", *dict.fromkeys(commits))
    rows = (row.split(" ") for row in output.splitlines())
    return {row[0]: int(row[1]) * 1000 for row in rows if len(row) == 2}
