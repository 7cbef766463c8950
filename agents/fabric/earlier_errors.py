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
from ...observe.commands.known_fixes import known_fixes
from ...search.query.secret_placeholders import redacted
from ...templates.quote import brief, clean
from ..json_reply import Rows
from ..memory_uuid import uuid_of
from .fabric_context import FabricContext

_MEMORIES, _FIXES = 5, 3
"""Maximum numbers of similar memories, and of known fixes in a reply."""
_SIMILAR: Final = 0.7
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
    """Return the earlier errors that resemble an error, in memories of all projects and in the archive."""
    types = tuple(name for name, family in FAMILIES.items() if family is Family.ISSUE)
    query = redacted(error, fabric.config.home)
    found = fabric.core.similar(
        query, MemoryFilter(types=types), min_similarity=_SIMILAR, limit=_MEMORIES, count_access=False
    )
    try:
        fixes = known_fixes(fabric.archive, fabric.core.store, query)[:_FIXES]
    except InvalidInput:  # The error is too short to search for.
        fixes = []
    return EarlierErrors(tuple(each.stored for each in found), tuple(fixes))


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
