"""Results of maintenance commands: `doctor`, `fsck` and `rebuild`."""

from pathlib import Path

from msgspec import Struct, field


class HealthProblem(Struct, frozen=True):
    """Problem found in one part of a home: what is wrong, and what to do about it.

    With `repaired` the problem is solved, and `remedy` says what follows, if anything.
    """

    part: str
    problem: str
    remedy: str
    repaired: bool = False


class ConsistencyReport(Struct, frozen=True):
    """Result of `fsck`: the number of items checked by kind, notes by part, and the problems found."""

    home: Path
    checked: dict[str, int] = field(default_factory=dict[str, int])
    notes: dict[str, str] = field(default_factory=dict[str, str])
    problems: list[HealthProblem] = field(default_factory=list[HealthProblem])

    @property
    def ok(self) -> bool:
        """True if no problem is left."""
        return all(problem.repaired for problem in self.problems)


class HealthReport(Struct, frozen=True):
    """Result of `doctor`: one fact by label, and the problems found."""

    home: Path
    facts: dict[str, str] = field(default_factory=dict[str, str])
    problems: list[HealthProblem] = field(default_factory=list[HealthProblem])

    @property
    def healthy(self) -> bool:
        """True if there is no problem."""
        return not self.problems


class RebuildReport(Struct, frozen=True):
    """Result of `rebuild`: the new index with its number of entries and vectors, and the copies read for it.

    `reread` copies were parsed again, `recovered` copies had no database row. `problems` are copies not read.
    """

    generation: str
    entries: int
    vectors: int
    reread: int = 0
    recovered: int = 0
    problems: list[HealthProblem] = field(default_factory=list[HealthProblem])
