"""Judges: whether two memories about one subject agree. Which one judged is always said."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Protocol, TypeAlias

from msgspec import Struct

from ...archiver.store import Store
from ...core.memory import Memory
from .claims import Difference, compare
from .replacing import told_apart


class Verdict(StrEnum):
    """How a newer statement stands to an older one."""

    SAME = "same"
    CONTRADICTS = "contradicts"
    SUPERSEDES = "supersedes"
    COMPATIBLE = "compatible"


Pair: TypeAlias = tuple[Memory, Memory]
"""Two memories, the older first."""


class Judgement(Struct, frozen=True):
    """A verdict with its reason in one sentence, and the name of the judge.

    `unsure` is a judge by rules that found one subject and no more, so that who understands the words may know better.
    Where it is not `certain`, a supersession is only proposed.
    """

    verdict: Verdict
    reason: str
    judge: str
    unsure: bool = False
    certain: bool = True

    @property
    def conflict(self) -> bool:
        """Whether both statements cannot hold at once."""
        return self.verdict in {Verdict.CONTRADICTS, Verdict.SUPERSEDES}


class Judge(Protocol):
    """Compares memories. `name` says who judges."""

    name: str

    def judge_all(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """How the newer of each pair stands to the older."""
        ...

    def close(self) -> None:
        """Let go of whatever it asks."""
        ...


Judging: TypeAlias = Callable[[Store], Judge]
"""What makes a judge that works with an opened store."""


class OfflineJudge:
    """Judges by rules: one subject, and a negation, an opposite, or another value, number or name in the same place.

    `SUPERSEDES` needs the newer statement to say that something changed; without that both may be meant, and it is
    `CONTRADICTS`. The README says how often it is right.
    """

    name = "rules"

    def judge_all(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """See `Judge.judge_all`."""
        return [self.judge(older.content, newer.content) for older, newer in pairs]

    def close(self) -> None:
        """It asks nobody."""

    def judge(self, older: str, newer: str) -> Judgement:
        """How one statement stands to an older one."""
        found = compare(older, newer)
        return Judgement(_VERDICTS[found.difference], found.reason, self.name, found.akin, found.certain)


def named(older: str, description: str) -> Judgement:
    """Return the judgement on a memory that the caller described as replaced; uncertain where the subjects differ."""
    certain = not told_apart(older, description)
    return Judgement(Verdict.SUPERSEDES, "The caller named it as replaced", "caller", certain=certain)


_VERDICTS = {
    Difference.NONE: Verdict.SAME,
    Difference.OPPOSED: Verdict.CONTRADICTS,
    Difference.CHANGED: Verdict.SUPERSEDES,
    Difference.OTHER: Verdict.COMPATIBLE,
}
