"""Digest of a period: what was done, decided, learned and left open in each project, and what it cost."""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from .conversation import Milliseconds
from .reports import NanoDollars

SECTIONS = ("done", "decided", "learned", "open")
"""Names of the lists of a project, in the order of a digest."""

_SUMMARY = 120
"""Maximum characters of a statement with its first further result."""
_FRAME = 20
"""Characters of a row besides the statement and the session ID, at least."""


class DigestLine(Struct, frozen=True):
    """Statement of a session card. `details` are further results, which only a report contains."""

    text: str
    session: str
    at: Milliseconds | None
    details: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """Statement with its first further result, if both are short."""
        with_result = ": ".join((self.text, *self.details[:1]))
        return with_result if len(with_result) <= _SUMMARY else self.text

    def rows(self, width: int) -> int:
        """Return the number of rows of the summary at a width, with its indent, date and session ID."""
        return -(-(len(self.summary) + len(self.session) + _FRAME) // width)


class ProjectDigest(Struct, frozen=True):
    """Digest of one project, the newest statement of each list first.

    Attributes:
        sessions: Number of sessions without those of sub-agents.
        tokens: Tokens of the sessions in the period, with sub-agents. `cost` is their list price, without that of the
            `unpriced_tokens`, whose models have no known price.
        omitted: Number of statements that were left out of each list, by its name.
    """

    name: str
    sessions: int
    tokens: int = 0
    cost: NanoDollars = 0
    done: tuple[DigestLine, ...] = ()
    decided: tuple[DigestLine, ...] = ()
    learned: tuple[DigestLine, ...] = ()
    open: tuple[DigestLine, ...] = ()
    omitted: dict[str, int] = {}
    unpriced_tokens: int = 0

    def lists(self) -> Iterator[tuple[str, tuple[DigestLine, ...]]]:
        """Yield the name and the statements of each list that is not empty."""
        for name in SECTIONS:
            if statements := getattr(self, name):
                yield name, statements

    def rows(self, width: int) -> int:
        """Return the number of rows of the project at a width: a heading, and each list with its heading."""
        return 1 + sum(1 + sum(line.rows(width) for line in statements) for _, statements in self.lists())

    def without_last(self, name: str) -> "ProjectDigest":
        """Return the project without the last statement of a list."""
        omitted = self.omitted | {name: self.omitted.get(name, 0) + 1}
        return replace(self, **{name: getattr(self, name)[:-1]}, omitted=omitted)


class Digest(Struct, frozen=True):
    """Digest of a period: the project with the latest session first.

    Attributes:
        prices: Sources of the prices.
        unpriced_tokens: Tokens of models without a known price.
    """

    after: Milliseconds | None
    before: Milliseconds | None
    projects: tuple[ProjectDigest, ...]
    sessions: int
    tokens: int = 0
    cost: NanoDollars = 0
    prices: tuple[str, ...] = ()
    unpriced_tokens: int = 0

    def fitted(self, rows: int, width: int) -> "Digest":
        """Return the digest with at most this many rows at a width.

        The longest list loses its oldest statements first. A project keeps at least its heading.
        """
        projects = [*self.projects]
        while sum(project.rows(width) for project in projects) > rows:
            lists = [
                (len(statements), position, name)
                for position, project in enumerate(projects)
                for name, statements in project.lists()
            ]
            if not lists:
                break
            _, position, name = max(lists)
            projects[position] = projects[position].without_last(name)
        return replace(self, projects=tuple(projects))
