"""Search in lists that are computed from conversations: commands of projects, fixes of errors, and open items."""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from msgspec.structs import replace

from ..core.errors import InvalidInput
from ..core.query import LIMIT_MAX, Filters, HitKind, Query
from ..core.results import CommandList, ComputedList, FixList, OpenItemList
from ..search.archive_search import ArchiveSearch
from ..search.query.tokenizer import check_projects
from .commands.known_fixes import closest_passages, known_fixes
from .commands.project_commands import known_tasks, missing_words, project_commands

_OPEN_ITEMS: Final = 1_000
"""Maximum number of open items from which those for a query are chosen."""
_List = TypeVar("_List", CommandList, FixList, OpenItemList)


class ListSearch:
    """Search in the lists of one archive. It uses, but does not close, the search over the conversations."""

    def __init__(self, search: ArchiveSearch) -> None:
        self._search, self._store = search, search.store

    def find(self, query: Query) -> ComputedList:
        """Return the rows of the kind that the filter of the query names.

        They are those for the first wording of the query that has rows, or for the query itself if none has. Without
        a wording, all commands or all open items are listed. If the query names no project, commands of the project
        `query.here` are listed if it has any.

        Raises:
            InvalidInput: Several concepts, a filter that does not apply to this kind, or no error to search a fix.
            UnknownProject: A project is unknown.
        """
        [kind], filters = query.filters.kinds, replace(query.filters, kinds=())
        if len(query.concepts) > 1:
            raise InvalidInput(f"Kind {kind} takes one query", hint="Search each text on its own.")
        wordings = (*query.concepts, *query.also) or ("",)
        if kind == HitKind.OPEN:
            return _first(wordings, lambda text: self.open_items(text, filters, query.limit))
        if filters != Filters(projects=filters.projects):
            raise InvalidInput(f"For the kind {kind}, only projects can be filtered", hint="Omit the other filters.")
        check_projects(self._store, filters.projects)
        if kind == HitKind.COMMAND:
            return _first(wordings, lambda task: self.commands(task, filters.projects, query.limit, query.here))
        if not query.concepts:
            raise InvalidInput("Kind fix needs an error message", hint="Give it as the query.")
        return _first(wordings, lambda error: self.fixes(error, filters.projects, query.limit))

    def commands(self, task: str, projects: Sequence[str], limit: int, here: str = "") -> CommandList:
        """Return the commands for a task, or those of all tasks if it is empty.

        Without `projects`, they are the commands of the project `here`, or of all projects if it has none.
        """
        commands = project_commands(self._store, task, projects or ((here,) if here else ()))
        if not commands and here and not projects:
            commands = project_commands(self._store, task)
        tasks = () if commands else known_tasks(self._store, projects)
        return CommandList(task, tuple(commands[:limit]), len(commands), tuple(tasks), missing_words(task, commands))

    def fixes(self, error: str, projects: Sequence[str], limit: int) -> FixList:
        """Return the fixes of an error, or else the closest passages. Raises `InvalidInput` if it is too short."""
        fixes = known_fixes(self._search, self._store, error, projects)
        nearest = None if fixes else closest_passages(self._search, error, projects, limit)
        return FixList(tuple(fixes[:limit]), len(fixes), nearest)

    def open_items(self, text: str, filters: Filters, limit: int) -> OpenItemList:
        """Return open items, the newest first, or for a text those of the sessions that match it, the best first.

        If no item matches the text, the newest items are returned.
        """
        if not text:
            return OpenItemList(tuple(self._search.open_items(filters, limit)))
        query = replace(Query.parse(text, by="session", limit=LIMIT_MAX), filters=filters)
        ranks = {hit.id: rank for rank, hit in enumerate(self._search.find(query, snippets=False).hits)}
        every = self._search.open_items(filters, _OPEN_ITEMS)
        matching = sorted((item for item in every if item.session in ranks), key=lambda item: ranks[item.session])
        return OpenItemList(tuple((matching or every)[:limit]), "" if matching else text)


def _first(wordings: Sequence[str], find: Callable[[str], _List]) -> _List:
    """Return the list for the first wording that has rows, or for the first wording."""
    query, *others = wordings
    first = find(query)
    for wording in () if first.ids else others:
        rows = find(wording)
        if rows.ids:
            return rows
    return first
