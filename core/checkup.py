"""Results of maintenance commands: `doctor`, `fsck` and `rebuild`."""

from pathlib import Path

from msgspec import Struct, field


class HealthProblem(Struct, frozen=True):
    """Problem of one component of a home, such as the database, with the remedy.

    If `repaired` is true, the problem is solved and `remedy` describes the remaining steps, if any.
    """

    part: str
    problem: str
    remedy: str
    repaired: bool = False


class ConsistencyReport(Struct, frozen=True):
    """Result of `fsck`: the number of checked items by kind, notes by checked component, and the problems found."""

    home: Path
    checked: dict[str, int] = field(default_factory=dict[str, int])
    notes: dict[str, str] = field(default_factory=dict[str, str])
    problems: list[HealthProblem] = field(default_factory=list[HealthProblem])

    @property
    def ok(self) -> bool:
        """True if there was no problem, or if all problems were repaired."""
        return all(problem.repaired for problem in self.problems)


class HealthReport(Struct, frozen=True):
    """Result of `doctor`: a fact about each checked component, by label, and the problems found."""

    home: Path
    facts: dict[str, str] = field(default_factory=dict[str, str])
    problems: list[HealthProblem] = field(default_factory=list[HealthProblem])

    @property
    def healthy(self) -> bool:
        """True if no problem was found."""
        return not self.problems


class RebuildReport(Struct, frozen=True):
    """Result of `rebuild`: the new index, its number of entries and vectors, and the raw copies read.

    `reread` raw copies were parsed again. `recovered` raw copies had no database row. `problems` lists raw copies that
    could not be read.
    """

    generation: str
    entries: int
    vectors: int
    reread: int = 0
    recovered: int = 0
    problems: list[HealthProblem] = field(default_factory=list[HealthProblem])
