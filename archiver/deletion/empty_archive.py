"""Explanation of an archive or a project that contains no session because the user deleted them all."""

from collections.abc import Collection
from typing import Final

from ...core.amount import many
from ...core.deletion import DeletionState
from ..store import Store

_MOST: Final = 3
"""Maximum number of deletions that the explanation names."""


def explain_deletions(store: Store, projects: Collection[str] = ()) -> str:
    """Return what was deleted and how to undo it, if the archive contains no session of these projects.

    Without `projects`, any session counts. The result is empty if sessions are left or if none were deleted.
    """
    left = {each.name for each in store.sessions.totals_by_project()}
    missing = set(projects) - left
    if left and not missing:
        return ""
    deletions = [each for each in store.tombstones.all() if each.summary.sessions]
    if left:
        deletions = [each for each in deletions if not missing.isdisjoint(each.summary.projects)]
    undoable = [each.id for each in deletions if each.state is DeletionState.KEPT]
    count = sum(each.summary.sessions for each in deletions)
    if not count:
        return ""
    fact = f"{many(count, 'session')} {'was' if count == 1 else 'were'} deleted"
    if not undoable:
        return f"{fact} permanently. `palaver forget --list` lists the deletions."
    commands = ", ".join(f"`palaver forget --undo {number}`" for number in undoable[:_MOST])
    return f"{fact}. Restore with {commands}; `palaver forget --list` lists all deletions."
