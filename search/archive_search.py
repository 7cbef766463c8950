"""The three layers over one home: search, observations by id, raw lines by path."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ..core import ids
from ..core.closing import Closing
from ..core.errors import InvalidInput, TooManyIds, UnknownIds
from .model.embedder import DEFAULT_MODEL, load
from .query.secret_placeholders import without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..core.home import Home
    from ..core.query import Query
    from ..core.results import Detail, Results, Timeline, TranscriptExcerpt
    from .present.hits import Hits
    from .present.printouts import Printouts
    from .present.session_paths import TranscriptPaths
    from .present.transcript_reader import TranscriptReader
    from .rank.engine import Engine


class ArchiveSearch(Closing):
    """What an agent or a person asks. Opens the archive; raises `StoreMissing` where there is none.

    Each layer loads what it needs when it is first asked: reading opens no index, searching no transcript.
    """

    def __init__(self, home: Home, model: str | None = None) -> None:
        """`model` embeds queries where no index was published yet; otherwise the one that made its vectors does."""
        self._home, self._embedder = home, load(model or DEFAULT_MODEL)
        from ..archiver.store import Store

        self._store = Store.open(home.database)

    def search(self, query: Query, *, snippets: bool = True) -> Results:
        """Layer 1: what matches, one compact hit per event; see `Hits.search`. The query comes back without secrets."""
        query = self._with_namespaces(without_secrets(query, self._home))
        found = self._hits.search(query, snippets=snippets)
        if found.explanation is None or not found.explanation.phrases or len(query.concepts) > 1:
            return found
        printed = self._printouts.having(query, found.explanation.phrases)
        return replace(found, explanation=replace(found.explanation, tool_output=printed))

    def timeline(self, public: str, around: int = 3) -> Timeline:
        """What was said and learned just before and after a hit; raises `InvalidInput` where there is no such place."""
        key = ids.key(public)
        if key is None:
            raise self._unknown([public])
        try:
            return self._hits.around(ids.plain(public), key, around)
        except UnknownIds:
            raise self._unknown([public]) from None

    def _with_namespaces(self, query: Query) -> Query:
        """Return a query that finds the memories of each project that it names by a folder."""
        folders = [name for name in query.filters.projects if name.startswith("/")]
        if not folders:
            return query
        from ..core.memory_filter import MemoryFilter

        spaces = [self._store.projects.namespace(Path(folder)) for folder in folders]
        having = [space for space in spaces if self._store.memories.count(MemoryFilter(namespaces=(space,)))]
        return replace(query, filters=replace(query.filters, projects=(*query.filters.projects, *having)))

    @cached_property
    def _engine(self) -> Engine:
        from .index.generation import Generations
        from .rank.engine import Engine

        return Engine(self._store, Generations(self._home.index), self._embedder)

    @cached_property
    def _hits(self) -> Hits:
        from .present.hits import Hits

        return Hits(self._store, self._engine)

    @cached_property
    def _printouts(self) -> Printouts:
        from ..archiver.copies.raw import RawArchive
        from .present.printouts import Printouts  # what is quoted nearly always stands in an index

        return Printouts(self._store, RawArchive(self._home.archive), self._passages, self._engine)

    @cached_property
    def _passages(self) -> TranscriptReader:
        from ..archiver.copies.raw import RawArchive
        from ..archiver.deletion.suppression import SuppressionList
        from ..archiver.redaction import Redactor
        from .present.transcript_reader import TranscriptReader

        key = self._home.key()
        return TranscriptReader(
            self._store, RawArchive(self._home.archive), Redactor(key), SuppressionList(self._store, key)
        )

    @cached_property
    def _places(self) -> TranscriptPaths:
        from ..archiver.copies.raw import RawArchive
        from .present.session_paths import TranscriptPaths

        return TranscriptPaths(self._store, RawArchive(self._home.archive))

    def get_observations(self, wanted: Sequence[str]) -> tuple[Detail, ...]:
        """Layer 2: everything known about these hits, in the order asked; raises `TooManyIds` or `UnknownIds`."""
        found, unknown = self.look_up(wanted)
        if unknown:
            raise unknown
        return found

    def look_up(self, wanted: Sequence[str]) -> tuple[tuple[Detail, ...], UnknownIds | None]:
        """Layer 2 of those that are there, and what to say of the others; raises `TooManyIds`."""
        from ..core.query import IDS_MAX

        if not 1 <= len(wanted) <= IDS_MAX:
            raise TooManyIds(len(wanted), IDS_MAX)
        from .present.details import Details

        keys = {public: ids.key(public) for public in wanted}
        found = Details(self._store).load([key for key in dict.fromkeys(keys.values()) if key is not None])
        known = {detail.id for detail in found}
        unknown = [public for public in keys if ids.plain(public) not in known]
        if unknown:
            self._store.refuse_unreadable([key for key in keys.values() if key is not None])
        asked = set(map(ids.plain, keys))
        shown = tuple(detail for detail in found if detail.id in asked)
        return shown, self._unknown(unknown) if unknown else None

    def _unknown(self, wanted: Sequence[str]) -> UnknownIds:
        """What to say of ids that nothing has, those apart that something had."""
        keys = {public: key for public in wanted if (key := ids.key(public)) is not None}
        there, asked = self._store.items.kinds([*keys.values()]), set(map(ids.plain, wanted))
        forgotten = {key for key, kind in there.items() if ids.show(kind, key) in asked}
        gone = self._store.items.issued([*keys.values()]) - there.keys() | forgotten
        error = UnknownIds(wanted, [public for public, key in keys.items() if key in gone])
        bare = [key for public in wanted if (key := ids.bare(public)) is not None]
        named = [*bare, *keys.values()]
        if meant := [
            ids.show(kind, key) for key, kind in self._store.items.kinds(named).items() if key not in forgotten
        ]:
            guess = f"Did you mean {', '.join(meant)}?"
            error.hint = f"{error.hint} {guess}" if error.gone else guess
        return error

    def place(self, wanted: str) -> tuple[str, int]:
        """The path of the conversation that a person means, and the line to begin at: that of a hit where it is the id
        of one, the first of a file or session otherwise. Raises `InvalidInput`.
        """
        if not ids.plain(wanted):
            return self._places.path(wanted), 1
        [hit] = self.get_observations([wanted])
        if hit.kind not in {"observation", "exchange"}:
            raise InvalidInput(f"{hit.id} is no conversation", hint=f"`palaver show {hit.id}` has all of it.")
        return hit.path, hit.start_line

    def read(self, path: str, start_line: int = 1, end_line: int | None = None) -> TranscriptExcerpt:
        """Layer 3: the conversation on these lines; raises `PathOutsideArchive` or `InvalidLineRange`."""
        return self._passages.read(path, start_line, end_line)

    def read_raw(self, path: str, start_line: int = 1, end_line: int | None = None) -> Iterator[bytes]:
        """The archived lines themselves, as the agent wrote them."""
        return self._passages.raw(path, start_line, end_line)

    def close(self) -> None:
        """Let go of the store."""
        self._store.close()
