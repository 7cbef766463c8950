"""Verdict of the health checks in one sentence, and the checks with their results."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from ..core.reports import HealthProblem, HealthReport, Status, many
from ..observe.upkeep.health_check import HealthContext, StoreUnreadable, diagnose

_FORMATS: Final = "formats"
"""Check whose problems are unread lines, which the verdict counts and the coverage lists."""
_UNREAD: Final = ("unknown-type", "cut-short", "not-json", "not-an-object", "oversized", "too-deep")
"""Beginnings of the reasons why a line could not be read. Lines with other reasons were read and left out."""
_INFORMATION: Final = {"skipped", "commands", "language model", _FORMATS}
"""Facts that are no result of a check."""


class Check(NamedTuple):
    """Check with its label and its fact. `result` is passed, failed, or an empty string for information."""

    result: str
    label: str
    fact: str


class Verdict(NamedTuple):
    """Results of the health checks.

    Attributes:
        problems: Problems except unread lines.
        unread: Number of archived lines that could not be read, of `lines`.
        is_watched: False if nothing archives new sessions by itself.
    """

    report: HealthReport
    problems: list[HealthProblem]
    unread: int
    lines: int
    is_watched: bool

    @property
    def sentence(self) -> str:
        """The verdict without a period: parts with problems, lines that were not read, and a missing watcher."""
        parts = list(dict.fromkeys(problem.part for problem in self.problems))
        named = f"{', '.join(parts[:-1])} and {parts[-1]}" if parts[1:] else "".join(parts)
        facts = [f"{many(len(self.problems), 'problem')}: {named}" if parts else "Everything is archived"]
        if self.unread:
            verb = "was" if self.unread == 1 else "were"
            facts.append(f"{self.unread:,} of {many(self.lines, 'line')} {verb} not read")
        if not self.is_watched and "watcher" not in parts:
            facts.append("no watcher is running")
        return "; ".join(facts)

    @property
    def level(self) -> str:
        """CSS class of the verdict: bad for problems, warn for other facts that the user should know, or good."""
        return "bad" if self.problems else "good" if self.is_watched and not self.unread else "warn"

    def checks(self) -> Iterator[Check]:
        """Yield the checks that reported a fact."""
        failed = {problem.part for problem in self.report.problems}
        for label, fact in self.report.facts.items():
            is_idle = label in _INFORMATION or (label == "watcher" and not self.is_watched and label not in failed)
            yield Check("" if is_idle else "failed" if label in failed else "passed", label, fact)


def verdict_of(context: HealthContext) -> Verdict:
    """Run the checks of `palaver doctor`."""
    report = diagnose(context)
    problems = [problem for problem in report.problems if problem.part != _FORMATS]
    try:
        status = context.status
    except StoreUnreadable:
        return Verdict(report, problems, 0, 0, is_watched=True)
    return Verdict(report, problems, unread_lines(status), status.lines, is_watched=status.watcher is not None)


def unread_lines(status: Status) -> int:
    """Return the number of archived lines that could not be read."""
    return sum(count for reason, count in status.skipped.items() if reason.startswith(_UNREAD))
