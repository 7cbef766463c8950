"""Earlier errors: memories of similar errors, and the fixes of similar errors in archived conversations."""

from itertools import islice
from typing import Final

from msgspec import Struct

from ...core.clock import show_day
from ...core.commands import KnownFix
from ...core.conversation import Milliseconds
from ...core.errors import InvalidInput
from ...core.local_time import show_duration
from ...core.memory import StoredMemory
from ...core.memory_filter import MemoryFilter
from ...core.memory_types import FAMILIES, Family
from ...core.query import QUERY_MAX
from ...observe.commands.known_fixes import known_fixes
from ...observe.memory import SimilarMemory
from ...observe.rules.error_signature import ErrorSignature
from ...search.query.secret_placeholders import redacted
from ...templates.quote import brief, clean
from ..json_reply import Rows
from ..memory_uuid import uuid_of
from .event_capture import error_of
from .fabric_context import FabricContext

_MEMORIES, _FIXES = 5, 3
"""Maximum numbers of similar memories, and of known fixes in a reply."""
_SIMILAR: Final = 0.7
"""Minimum similarity of a memory that has only the type of the error in common, and not its message."""
_CANDIDATES: Final = 50
"""Maximum number of memories whose signatures are compared with that of the error."""
_TEXT: Final = 60
"""Maximum tokens of an error or of a fix."""
_NAMED: Final = 20
"""Maximum tokens of an error message that is quoted within a sentence."""


class EarlierErrors(Struct, frozen=True):
    """Memories of similar errors, and known fixes from archived conversations, the most frequent fix first."""

    memories: tuple[StoredMemory, ...]
    fixes: tuple[KnownFix, ...]

    @property
    def total(self) -> int:
        """Number of similar errors: reports of the memories, plus sessions in which a fix occurred."""
        return sum(map(_reported, self.memories)) + sum(fix.sessions for fix in self.fixes)

    def summary(self, at: Milliseconds) -> str:
        """Return one or two sentences: the number of errors, the time since the latest, and the fix of one error."""
        if not self.total:
            return "Found no similar error."
        times = [stored.updated for stored in self.memories] + [fix.at for fix in self.fixes if fix.at is not None]
        latest = f", the latest {_largest_unit(at - max(times))} ago" if times else ""
        found = f"Found {self.total} similar error{'s'[: self.total != 1]}{latest}."
        remedies = [(fix.error, _remedy(fix)) for fix in self.fixes]
        remedies += [(stored.memory.content, _noted_fix(stored)) for stored in self.memories]
        # The error is named, because a similar error can have another cause.
        fixed = (f"“{brief(error, _NAMED)}” was fixed by {remedy}." for error, remedy in remedies if remedy)
        return " ".join([found, *islice(fixed, 1)])

    @property
    def memory_rows(self) -> Rows:
        """Rows for the field `similarErrors` of a reply."""
        return [
            {
                "id": uuid_of(each),
                "content": brief(each.memory.content, _TEXT),
                "times": _reported(each),
                "lastSeen": show_day(each.updated),
                "reason": "memory of an error",
            }
            for each in self.memories
        ]

    @property
    def fix_rows(self) -> Rows:
        """Rows for the field `knownFixes` of a reply."""
        return [
            {
                "id": each.id,
                "error": brief(each.error, _TEXT),
                "command": brief(each.command, _TEXT),
                "fix": _remedy(each),
                "sessions": each.sessions,
                "lastSeen": show_day(each.at),
                "reason": "archived conversation",
            }
            for each in self.fixes
        ]


def earlier_errors(fabric: FabricContext, error: str) -> EarlierErrors:
    """Return the earlier errors that resemble an error, in memories of all projects and in the archive.

    They have the same message apart from values, or the same error class or code. Errors of another library differ.
    """
    types = tuple(name for name, family in FAMILIES.items() if family is Family.ISSUE)
    query = redacted(error[:QUERY_MAX], fabric.config.home)
    this = ErrorSignature.of(query)
    candidates = fabric.core.similar(
        query, MemoryFilter(types=types), min_similarity=0, limit=_CANDIDATES, count_access=False
    )
    memories = [each.stored for each in candidates if _is_similar(this, each)]
    try:
        fixes = known_fixes(fabric.archive, fabric.core.store, query)
    except InvalidInput:  # The error is too short to search for.
        fixes = []
    fixes = [fix for fix in fixes if _resembles(this, ErrorSignature.of(fix.error))]
    return EarlierErrors(tuple(memories[:_MEMORIES]), tuple(fixes[:_FIXES]))


def _is_similar(this: ErrorSignature, found: SimilarMemory) -> bool:
    """Return whether a memory describes an error like this one."""
    other = ErrorSignature.of(error_of(found.stored.memory))
    return this.has_message_of(other) or (found.similarity >= _SIMILAR and this.has_type_of(other))


def _resembles(this: ErrorSignature, other: ErrorSignature) -> bool:
    """Return whether the error of a known fix, whose words are similar, can have the same cause."""
    return not (this.types and other.types) or this.has_type_of(other) or this.has_message_of(other)


def _largest_unit(milliseconds: int) -> str:
    """Return a duration in its largest unit, such as `2 days`."""
    return " ".join(show_duration(milliseconds).split()[:2])


def _reported(stored: StoredMemory) -> int:
    """Return how often an error was reported."""
    times = stored.memory.metadata.get("times", 1)
    return times if isinstance(times, int) else 1


def _remedy(fix: KnownFix) -> str:
    """Return a phrase that names the fix of an error, such as `npm ci` or `editing a.py`."""
    if fix.files:
        return clean(f"editing {', '.join(fix.files)}")
    return brief(fix.worked, _TEXT)


def _noted_fix(stored: StoredMemory) -> str:
    return brief(str(stored.memory.metadata.get("fix", "")), _TEXT)
