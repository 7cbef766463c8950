"""Search over one archive: hits, details by ID, output of tools, and lines of transcripts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ..archiver.copies.exporter import encodable
from ..archiver.copies.raw_copy import RawArchive
from ..archiver.reading.parsing import kinds_in_sources
from ..archiver.store import Store
from ..archiver.store.session_table import similar_sessions
from ..core import ids
from ..core.errors import InvalidInput, TooManyIds, UnknownIds
from ..core.memory import MemoryFilter
from ..core.query import IDS_MAX, LIMIT_MAX, Filters, Query
from ..core.results import Detail, OpenItem, OutputMatches, Results, SessionOutline, SessionPage, TranscriptExcerpt
from ..core.runtime import Closing
from .model.embedder import DEFAULT_MODEL, load
from .present.details import Sessions, UnitHistory, items_of
from .query.query_analysis import redacted, without_secrets
from .query.tokenizer import check_agents, check_projects, project_at, terms

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

    from ..archiver.store.session_table import ProjectTotal
    from ..core.home import Home
    from ..core.results import Part, Timeline
    from .present.hits import Hits
    from .present.transcript_reader import TranscriptPaths, TranscriptReader
    from .rank.engine import Engine


class ArchiveSearch(Closing):
    """Implementation of `SearchIndex`. The constructor raises `StoreMissing` if the archive does not exist.

    The index and the transcripts are opened on first use: `read` does not open the index, and `find` does not open
    transcripts.
    """

    def __init__(self, home: Home, model: str | None = None) -> None:
        """Embed queries with the model `model` until an index is published, and then with the model of the index."""
        self._home, self._embedder = home, load(model or DEFAULT_MODEL)
        self._store = Store.of(home)

    def find(self, query: Query, /, *, snippets: bool = True) -> Results:
        """See `SearchIndex.find`. The query in the results contains placeholders instead of secrets."""
        query = replace(query, filters=self._without_tags(query.filters))
        self._check_names(query.filters)
        query = self._with_namespaces(without_secrets(query, self._home))
        return self._hits.search(query, snippets=snippets)

    def find_output(
        self, text: str, filters: Filters, /, *, limit: int = 10, context: int = 2, seconds: float = 2.0
    ) -> OutputMatches:
        """See `SearchIndex.find_output`."""
        from .present.output_search import OutputSearch  # few callers need it

        filters = self._without_tags(filters)
        self._check_names(filters)
        raw = RawArchive(self._home.archive)
        output = OutputSearch(self._store, raw, self._reader, self._allowed)
        return output.find(redacted(text, self._home), filters, limit=limit, context=context, seconds=seconds)

    def _allowed(self, filters: Filters, exchanges: Sequence[int]) -> AbstractSet[int]:
        """Return those of the exchanges that satisfy the filters. Opens the index."""
        return self._engine.snapshot.allowed(filters, exchanges)

    def _without_tags(self, filters: Filters) -> Filters:
        """Return filters with the sessions that have one of the tags. Raises `InvalidInput` for an unknown tag."""
        if not filters.tags:
            return filters
        numbers = self._store.session_labels.sessions_with(filters.tags)
        names = [session.native_id for session in self._store.sessions.several(numbers).values()]
        both = [name for name in names if not filters.sessions or name.startswith(filters.sessions)]
        if not both:
            raise InvalidInput("No session has both this ID and this tag", hint="Leave out one of the filters.")
        return replace(filters, tags=(), sessions=tuple(both))

    def _check_names(self, filters: Filters) -> None:
        """Raise `InvalidInput` if a filter names a project or an agent that does not exist."""
        check_projects(self._store, filters.projects)
        if filters.agents:
            check_agents(filters.agents, self._engine.snapshot.names("agent"))

    @property
    def store(self) -> Store:
        """Store of this archive. `close` closes it."""
        return self._store

    def unknown_words(self, words: Sequence[str]) -> tuple[str, ...]:
        """Return the distinct words that the index does not contain, not even in another form such as the plural."""
        entries_with = self._engine.snapshot.entries_with
        distinct = dict.fromkeys(words)
        return tuple(word for word in distinct if (stems := terms(word)) and not any(map(entries_with, stems)))

    def sessions(self, query: Query) -> SessionPage:
        """Return a page of the sessions that match a query. Its grouping must be `Grouping.SESSION`."""
        results = self.find(query, snippets=False)
        return SessionPage(self._sessions.outlines(results.hits), results.cursor, results.explanation)

    def session_number(self, start: str) -> int:
        """Return the store's ID of the session whose ID begins with `start`.

        Raises:
            UnknownIds: No session has this ID.
            InvalidInput: Several session IDs begin with this text.
        """
        number = self._sessions.find(start)
        if number is None:
            raise self._unknown([start])
        return number

    def open_items(self, filters: Filters, limit: int) -> list[OpenItem]:
        """Return open items and next steps from the cards of main sessions, the latest session first.

        An item that a later session repeats is returned once. An item that names no subject is left out, and one that a
        later session worked on. See `items_of`.

        Raises:
            UnknownProject: A project is unknown.
        """
        query, sessions = replace(Query.newest(by="session", limit=LIMIT_MAX), filters=filters), list[SessionOutline]()
        while len(items := items_of(sessions)) < limit:
            page = self.sessions(query)
            sessions += page.sessions
            if not page.cursor:
                items = items_of(sessions)
                break
            query = replace(query, cursor=page.cursor)
        shown = items[:limit]
        numbers = {item.session: number for item in shown if (number := self._sessions.find(item.session)) is not None}
        return self._sessions.with_lines(shown, numbers)

    def project_at(self, folder: Path) -> str:
        """Return the project filter for the sessions of a folder: a path or name, or an empty string if it has none."""
        return project_at(self._store, folder)

    def projects(self) -> list[ProjectTotal]:
        """Return all projects with indexed sessions, the one with the latest session first."""
        return self._store.sessions.totals_by_project()

    def timeline(self, public: str, around: int = 3) -> Timeline:
        """Return the events before and after a hit, or all events of the session whose ID begins with `public`.

        Raises:
            UnknownIds: Neither a hit nor a session has this ID.
            InvalidInput: The hit is not part of a conversation, or several session IDs begin with this text.
        """
        if not ids.canonical(public) and (number := self._sessions.find(public)) is not None:
            return self._hits.of_session(number)
        key = ids.key(public)
        if key is None:
            raise self._unknown([public])
        try:
            return self._hits.around(ids.canonical(public), key, around)
        except UnknownIds:
            raise self._unknown([public]) from None

    def _with_namespaces(self, query: Query) -> Query:
        """Add the namespace of each folder in the project filter, if the namespace contains memories or documents."""
        folders = [name for name in query.filters.projects if name.startswith("/")]
        if not folders:
            return query
        spaces = [self._store.projects.of_archived(Path(folder)) for folder in folders]
        memories, documents = self._store.memories, self._store.documents
        used = [space for space in spaces if documents.uses(space) or memories.count(MemoryFilter(namespaces=(space,)))]
        return replace(query, filters=replace(query.filters, projects=(*query.filters.projects, *used)))

    @cached_property
    def _engine(self) -> Engine:
        from .index.generation import Generations
        from .rank.engine import Engine

        return Engine.of(self._store, Generations(self._home.index, read_only=self._home.read_only), self._embedder)

    @cached_property
    def _hits(self) -> Hits:
        from .present.hits import Hits

        return Hits(self._store, self._engine)

    @cached_property
    def _sessions(self) -> Sessions:
        return Sessions(self._store)

    @cached_property
    def _reader(self) -> TranscriptReader:
        from ..archiver.deletion.suppression import SuppressionList
        from ..archiver.redaction import Redactor
        from .present.transcript_reader import TranscriptReader

        key = self._home.key()
        return TranscriptReader(
            self._store, RawArchive(self._home.archive), Redactor(key), SuppressionList(self._store, key)
        )

    @cached_property
    def _paths(self) -> TranscriptPaths:
        from .present.transcript_reader import TranscriptPaths

        return TranscriptPaths(self._store, RawArchive(self._home.archive))

    def details(self, public_ids: Sequence[str], /) -> tuple[Detail, ...]:
        """See `SearchIndex.details`."""
        details, unknown = self.look_up(public_ids)
        if unknown:
            raise unknown
        return details

    def look_up(self, public_ids: Sequence[str]) -> tuple[tuple[Detail, ...], UnknownIds | None]:
        """Return the details of the IDs that exist, and an error that lists the other IDs, or None if all exist.

        The details of exchanges and observations include the units of code that they edited. The details of a unit
        include its edits.

        Raises:
            TooManyIds: The list is empty or longer than `IDS_MAX`.
            InvalidInput: Several session IDs begin with the same text.
        """
        details, unknown = self._look_up(public_ids)
        return UnitHistory(self._store, RawArchive(self._home.archive)).linked(details), unknown

    def _look_up(self, public_ids: Sequence[str]) -> tuple[tuple[Detail, ...], UnknownIds | None]:
        if not 1 <= len(public_ids) <= IDS_MAX:
            raise TooManyIds(len(public_ids), IDS_MAX)
        from .present.details import Details

        sessions = {public: self._session(public) for public in public_ids if not ids.canonical(public)}
        keys = {public: ids.key(public) for public in public_ids if sessions.get(public) is None}
        items = Details(self._store).load([key for key in dict.fromkeys(keys.values()) if key is not None])
        by_id = {detail.id: detail for detail in items}
        named = {public: sessions.get(public) or by_id.get(ids.canonical(public)) for public in public_ids}
        unknown = [public for public, detail in named.items() if detail is None]
        if unknown:
            self._store.refuse_unreadable([key for key in keys.values() if key is not None])
        details = {detail.id: detail for detail in named.values() if detail is not None}
        return tuple(details.values()), self._unknown(unknown) if unknown else None

    def _session(self, start: str) -> Detail | None:
        """Return the details of the session whose ID begins with `start`. Raises `InvalidInput` if several match."""
        number = self._sessions.find(start)
        return None if number is None else self._sessions.detail(number)

    def _unknown(self, public_ids: Sequence[str]) -> UnknownIds:
        """Return the error for unknown IDs. The error states which IDs were deleted, and suggests similar IDs."""
        keys = {public: key for public in public_ids if (key := ids.key(public)) is not None}
        kinds, plain = self._store.items.kinds([*keys.values()]), set(map(ids.canonical, public_ids))
        deleted = {key for key, kind in kinds.items() if ids.show(kind, key) in plain}
        gone = self._store.items.issued([*keys.values()]) - kinds.keys() | deleted
        error = UnknownIds(public_ids, [public for public, key in keys.items() if key in gone])
        bare = [key for public in public_ids if (key := ids.key_without_prefix(public)) is not None]
        named = [*bare, *keys.values()]
        if similar := [
            ids.show(kind, key) for key, kind in self._store.items.kinds(named).items() if key not in deleted
        ]:
            question = f"Did you mean {', '.join(similar)}?"
        else:
            question = self._similar_session(public_ids)
        if question:
            error.hint = f"{error.hint} {question}" if error.gone else question
        return error

    def _similar_session(self, public_ids: Sequence[str]) -> str:
        """Return a "Did you mean" question for the first ID that resembles a session ID, or an empty string."""
        typed = (encodable(public.strip()) for public in public_ids if not ids.has_prefix(public))
        questions = (similar_sessions(self._store.sessions, name).strip() for name in typed)
        return next(filter(None, questions), "")

    def locate(self, name: str) -> tuple[str, int]:
        """Return the archive path and the first line of a file or hit, given by archive path, session ID or hit ID.

        Raises `InvalidInput` if nothing matches, or if the hit is not part of a conversation.
        """
        if not ids.canonical(name):
            return self._paths.path(name), 1
        details, unknown = self._look_up([name])
        if unknown:
            raise unknown
        [hit] = details
        if hit.kind not in {"observation", "exchange"}:
            raise InvalidInput(
                f"{hit.id} is not part of a conversation", hint=f"Run `palaver show {hit.id}` to see it."
            )
        return hit.path, hit.start_line

    def parts(self, name_or_id: str) -> list[Part]:
        """Return the parts of a session, given by its ID or the start of its ID, or else the file or hit itself.

        Each part is an archive path with its first and last line. Raises the same errors as `locate`.
        """
        path, first = self.locate(name_or_id)
        source = self._store.sources.by_archived(path)
        if source is None or source.id is None:
            return [(path, first, None)]
        name = self._store.sources.native_id(source.id)
        is_session = name.startswith(name_or_id) or name_or_id == f"{source.agent}/{name}"
        return self._paths.parts(path) if is_session else [(path, first, None)]

    def read(
        self, path: str, start_line: int = 1, end_line: int | None = None, /, *, budget: int = 0
    ) -> TranscriptExcerpt:
        """See `SearchIndex.read`. A `budget` above the default of 8,000 tokens allows a longer excerpt."""
        return self._reader.read(path, start_line, end_line, budget)

    def read_parts(self, parts: Sequence[Part], *, budget: int = 0) -> list[TranscriptExcerpt]:
        """Return an excerpt for each of the first parts that fit the token budget together, at least for the first."""
        return self._reader.read_parts(parts, budget)

    def conversation_tokens(self, path: str) -> int:
        """Return the tokens of a whole conversation with tool calls and shortened tool results, or 0 if unknown."""
        source = self._store.sources.by_archived(path)
        if source is None or source.id is None:
            return 0
        return sum(cost.tokens for cost in self._store.exchanges.costs_in(source.id, 1, source.lines))

    def read_raw(self, path: str, start_line: int = 1, end_line: int | None = None) -> Iterator[bytes]:
        """Return the archived lines as raw bytes. Raises the same errors as `read`."""
        return self._reader.raw(path, start_line, end_line)

    def secrets_in(self, parts: Sequence[Part]) -> dict[str, int]:
        """Return the number of secrets that are redacted from parts of sessions, by kind."""
        sources = [(self._store.sources.by_archived(path), first, last) for path, first, last in parts]
        lines = {
            source.id: range(first, (last or source.lines) + 1)
            for source, first, last in sources
            if source and source.id
        }
        return kinds_in_sources(self._store, lines)

    def close(self) -> None:
        """Close the store."""
        self._store.close()
