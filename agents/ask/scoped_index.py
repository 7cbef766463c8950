"""Search restricted to the part of the archive that a language model may read for one question."""

from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from pathlib import PurePath
from typing import Final

from msgspec.structs import replace

from ...archiver.store import Store
from ...core import ids
from ...core.conversation import Milliseconds
from ...core.errors import InvalidInput, UnknownIds, UnknownProject
from ...core.home import working_folders
from ...core.query import LIMIT_MAX, Filters, HitKind, Query
from ...core.results import (
    ComputedList,
    Detail,
    Hit,
    OutputMatches,
    Results,
    TranscriptExcerpt,
    ZeroResultExplanation,
)
from ...observe.list_search import ListSearch
from ...observe.llm.model_settings import PrivateProjects
from ...search.archive_search import ArchiveSearch
from ...search.query.tokenizer import label, project_labels

_PAGES_MAX: Final = 4
"""Maximum number of result pages that are fetched to find enough hits outside private projects."""
_CONVERSATIONS: Final = (HitKind.OBSERVATION.value, HitKind.EXCHANGE.value)


class ScopedIndex:
    """Search index without private projects and without entries outside the filters of the question.

    If there are private projects, only conversations are searched, because documents, code and memories can quote
    private conversations.

    Attributes:
        found: IDs of the hits of the last search.
        opened: Number of entries that the last call of `details` returned.
    """

    def __init__(self, index: ArchiveSearch, store: Store, scope: Filters, private: Collection[str]) -> None:
        self._index, self._store, self._scope = index, store, scope
        self._has_private, self._private = bool(private), PrivateProjects(store, private)
        self.found: tuple[str, ...] = ()
        self._listed = set[str]()
        self.opened = 0
        self._read = list[tuple[str, int, int]]()

    def find(self, query: Query, /, *, snippets: bool = True) -> Results:
        """Search within the scope of the question. See `SearchIndex.find`."""
        query = replace(query, filters=self._narrowed(query.filters))
        find = self._find_shared if self._has_private else self._index.find
        results = find(query, snippets=snippets)
        self.found = tuple(hit.id for hit in results.hits)
        self._listed.update(self.found)
        return results

    def find_list(self, query: Query) -> ComputedList:
        """Return commands, fixes or open items within the scope of the question. See `ListSearch.find`.

        Raises:
            InvalidInput: There are private projects, whose commands and open items are in the same lists.
        """
        if self._has_private:
            raise InvalidInput("Only conversations can be searched", hint="Omit `kind`.")
        rows = ListSearch(self._index).find(replace(query, filters=self._narrowed(query.filters)))
        self.found = rows.ids
        self._listed.update(self.found)
        return rows

    def _find_shared(self, query: Query, *, snippets: bool) -> Results:
        """Return the first hits outside private projects.

        Spelling suggestions and hit counts are omitted, because they could reveal the content of private projects.
        """
        hits, page, results = list[Hit](), replace(query, limit=LIMIT_MAX), None
        for _ in range(_PAGES_MAX):
            try:
                found = self._index.find(page, snippets=snippets)
            except UnknownProject as error:
                raise UnknownProject(error.name) from None
            results = results or found
            hits += self._shared_hits(found.hits)
            if len(hits) >= query.limit or not found.cursor:
                break
            page = replace(page, cursor=found.cursor)
        assert results is not None
        why = ZeroResultExplanation()
        if results.explanation is not None:
            why = replace(why, weak=self._shared_hits(results.explanation.weak)[: query.limit])
        shown = tuple(hits[: query.limit])
        return replace(
            results,
            query=replace(results.query, limit=query.limit),
            hits=shown,
            total=len(shown),
            cursor="",
            explanation=None if shown else why,
            corrections=(),
            newest=None,
            vocabulary=(),
        )

    def find_output(
        self, text: str, filters: Filters, /, *, limit: int = 10, context: int = 2, seconds: float = 2.0
    ) -> OutputMatches:
        """Search tool output within the scope of the question. See `SearchIndex.find_output`."""
        most = LIMIT_MAX if self._has_private else limit
        found = self._index.find_output(text, self._narrowed(filters), limit=most, context=context, seconds=seconds)
        if self._has_private:
            shared = self._shared(match.id for match in found.matches)
            found = replace(found, matches=tuple(match for match in found.matches if match.id in shared)[:limit])
        self.found = tuple(match.id for match in found.matches)
        self._read += [(match.path, match.line, match.line) for match in found.matches]
        return found

    def details(self, wanted: Sequence[str], /) -> tuple[Detail, ...]:
        """Return details. Items of private projects or outside the filters are unknown. See `SearchIndex.details`."""
        if self._has_private and (hidden := set(wanted) - self._shared(wanted)):
            raise UnknownIds([each for each in wanted if each in hidden])
        details = self._index.details(wanted)
        if outside := [each.id for each in details if not (each.id in self._listed or self._includes(each))]:
            raise UnknownIds(outside)
        self.opened = len(details)
        # Details of a session show none of its lines.
        self._read += [(each.path, each.start_line, each.end_line) for each in details if each.kind != "session"]
        return details

    def read(self, path: str, start_line: int = 1, end_line: int | None = None, /) -> TranscriptExcerpt:
        """Return an excerpt of a transcript. See `SearchIndex.read`.

        Raises:
            InvalidInput: The lines belong to a private project, or are outside the filters.
        """
        excerpt = self._index.read(path, start_line, end_line)
        folders = [excerpt.cwd, *(exchange.cwd for exchange in excerpt.exchanges)]
        if self._private.includes_place(excerpt.project, *folders):
            raise InvalidInput("This conversation belongs to a private project", hint="Read another one.")
        times = [(each.started, each.ended) for each in excerpt.exchanges]
        in_project = self._in_projects(excerpt.session_id, excerpt.project, excerpt.cwd)
        if not in_project or not all(self._in_dates(*each) for each in times):
            raise InvalidInput(
                "These lines are outside the projects or dates of the question", hint="Read the lines of a hit."
            )
        self._read.append((excerpt.path, excerpt.start_line, excerpt.end_line))
        return excerpt

    def has_read(self, path: str, start_line: int, end_line: int) -> bool:
        """Return whether the details, excerpts and output matches returned so far cover all these lines."""
        ranges = [(first, last) for read, first, last in self._read if read == path]
        return all(any(first <= line <= last for first, last in ranges) for line in range(start_line, end_line + 1))

    def _includes(self, detail: Detail) -> bool:
        """Return whether the filters of the question allow the entry's project and date."""
        return self._in_projects(detail.session_id, detail.project) and self._in_dates(detail.observation.at)

    def _in_projects(self, session_id: str, *places: str) -> bool:
        wanted = self._scope.projects
        places = (*places, *chain.from_iterable(self._store.sessions.projects(session_id) if session_id else ()))
        folders = chain.from_iterable(map(working_folders, places))
        return not wanted or not {*project_labels(wanted)}.isdisjoint(map(label, folders))

    def _in_dates(self, first: Milliseconds | None, last: Milliseconds | None = None) -> bool:
        after, before, first = self._scope.after, self._scope.before, first or 0
        return (after is None or (last or first) >= after) and (before is None or first < before)

    def is_private(self, project: str) -> bool:
        """Return whether a project, given by name or folder, is private or has a private session."""
        place = PurePath(project)
        return self._private.includes_place(place.name, project) or any(
            self._private.includes_place(name, folder)
            for name, folder in self._store.sessions.projects()
            if project in (name, folder)
        )

    def _narrowed(self, filters: Filters) -> Filters:
        """Combine the filters of a search with the filters of the question, so that both restrict the hits."""
        scope = self._scope
        starts = [each for each in (filters.after, scope.after) if each is not None]
        ends = [each for each in (filters.before, scope.before) if each is not None]
        kinds = filters.kinds
        if self._has_private:
            kinds = tuple(each for each in kinds or _CONVERSATIONS if each in _CONVERSATIONS)
            if not kinds:
                raise InvalidInput("Only conversations can be searched", hint="Omit `kind`.")
        return replace(
            filters,
            projects=scope.projects or filters.projects,
            after=max(starts, default=None),
            before=min(ends, default=None),
            kinds=kinds,
        )

    def _shared_hits(self, hits: Sequence[Hit]) -> tuple[Hit, ...]:
        shared = self._shared(hit.id for hit in hits)
        return tuple(hit for hit in hits if hit.id in shared)

    def _shared(self, wanted: Iterable[str]) -> set[str]:
        """Return the given IDs that belong to a conversation outside private projects."""
        keys = {public: key for public in wanted if (key := ids.key(public)) is not None}
        exchange_of = {key: item.exchange for key, item in self._store.items.load([*keys.values()]).items()}
        exchanges = self._store.exchanges.load([*exchange_of.values()])
        shared = {key for key, stored in exchanges.items() if not self._private.includes(stored)}
        return {public for public, key in keys.items() if exchange_of.get(key) in shared}
