"""Filler: true statements that are not worth remembering, and guesses that later text may refute."""

from .phrase_patterns import phrases
from .salience import HOUSEKEEPING, needs_context
from .statements import Statement

_BOOKKEEPING = phrases("filler.bookkeeping")
"""Pattern for the state of files, commits and changelogs, which git records better."""
_LABEL = phrases("filler.label")
"""Pattern for the beginning of labels and import lines, which only repeat what the files show."""
_PROGRESS = phrases("filler.progress")
"""Pattern for reports of an agent about its own progress."""
_UNSURE_START = phrases("filler.unsure_start")
_UNSURE = phrases("filler.unsure")
_DIAGNOSIS = phrases("filler.diagnosis")
"""Pattern for statements that name a cause. A cause in the conclusion replaces causes that were named while working."""


_PITFALL = phrases("filler.pitfall")
"""Pattern for statements that warn, or state a rule."""


_POSSIBILITIES = phrases("filler.possibilities")
"""Pattern for the introduction of a list whose items exclude each other."""


def is_diagnosis(statement: Statement) -> bool:
    """Return whether a statement, or the heading above it, names a cause."""
    return _DIAGNOSIS.search(f"{statement.heading}: {statement.text}") is not None


def names_cause(text: str) -> bool:
    """Return whether a sentence itself names a cause."""
    return _DIAGNOSIS.search(text) is not None


def is_pitfall(statement: Statement) -> bool:
    """Return whether a statement warns of a pitfall or states a rule of the project."""
    return _PITFALL.search(f"{statement.heading}: {statement.raw}") is not None


def is_filler(statement: Statement) -> bool:
    """Return whether a statement reports only files, commits, imports, the progress of an agent, or a possibility."""
    text = statement.text
    if _POSSIBILITIES.search(statement.topic):
        return True
    return any(pattern.search(text) for pattern in (_BOOKKEEPING, _LABEL, _PROGRESS))


def is_guess(statement: Statement) -> bool:
    """Return whether a remark made while working is a guess, or not worth keeping.

    A remark is not worth keeping if it is about the agent's own mistake or the working tree, or if it depends on the
    sentence before it.
    """
    text = statement.text
    if needs_context(statement.raw) or HOUSEKEEPING.search(statement.raw):
        return True
    return _UNSURE_START.match(text) is not None or _UNSURE.search(text) is not None
