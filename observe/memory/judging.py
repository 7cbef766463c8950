"""Judges: whether two memories about one subject agree. Which one judged is always said."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from .claims import Difference, compare


class Verdict(StrEnum):
    """How a newer statement stands to an older one."""

    SAME = "same"
    CONTRADICTS = "contradicts"
    SUPERSEDES = "supersedes"
    COMPATIBLE = "compatible"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with its reason in one sentence, and the name of the judge."""

    verdict: Verdict
    reason: str
    judge: str

    @property
    def conflict(self) -> bool:
        """Whether both statements cannot hold at once."""
        return self.verdict in {Verdict.CONTRADICTS, Verdict.SUPERSEDES}


class Judge(Protocol):
    """Compares two statements."""

    name: str

    def judge(self, older: str, newer: str) -> Judgement:
        """How `newer` stands to `older`."""
        ...


class OfflineJudge:
    """Judges by rules: one subject, and a negation, an opposite, or another value, number or name in the same place.

    `SUPERSEDES` needs the newer statement to say that something changed; without that both may be meant, and it is
    `CONTRADICTS`. The README says how often it is right.
    """

    name = "rules"

    def judge(self, older: str, newer: str) -> Judgement:
        """See `Judge.judge`."""
        found = compare(older, newer)
        return Judgement(_VERDICTS[found.difference], found.reason, self.name)


_VERDICTS = {
    Difference.NONE: Verdict.SAME,
    Difference.OPPOSED: Verdict.CONTRADICTS,
    Difference.CHANGED: Verdict.SUPERSEDES,
    Difference.OTHER: Verdict.COMPATIBLE,
}
