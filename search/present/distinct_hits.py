"""Distinct hits: a limited number of hits per session, and one hit for observations with equal titles."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from ...archiver.store import Store
from ...core.document import StoredChunk
from .representatives import Representative

_COMPARED = 10
"""Number of hits whose titles are compared with the query. It is constant, so that pages do not depend on the limit."""


class DistinctHits:
    """Filter that drops hits beyond the maximum per session, hits that repeat a better hit's title, and copied chunks.

    If a file is in several namespaces, only one copy of each of its chunks is kept. `repeated_in` returns the sessions
    of the hits that were dropped because they repeat the title of a hit.
    """

    def __init__(self, store: Store, per_session: int) -> None:
        """Keep at most `per_session` hits of each session, or all hits if `per_session` is 0."""
        self._store, self._per_session = store, per_session
        self._counts: dict[int, int] = {}
        self._first_by_title: dict[str, Representative] = {}
        self._repeating: dict[int, dict[int, None]] = {}
        """Sessions of the hits that repeat the title of a hit, in order, by the event of that hit."""
        self._chunks = set[tuple[Path, int, str]]()
        self._session_of: dict[int, int | None] = {}
        """Session of each exchange without observations."""

    def of(self, representatives: Iterable[Representative]) -> Iterator[Representative]:
        """Yield the hits to show, in the same order. Memories and documents have no session and are always shown."""
        for each in representatives:
            if isinstance(each.standalone, StoredChunk) and self._is_copy(each.standalone):
                continue
            session = self._session(each)
            if session is None or not self._per_session:
                yield each
            elif not self._repeats(each, session) and self._counts.get(session, 0) < self._per_session:
                self._counts[session] = self._counts.get(session, 0) + 1
                yield each

    def titled_first(self, representatives: Iterator[Representative], title: str) -> Iterator[Representative]:
        """Yield the hits, with exact title matches first.

        Among the first `_COMPARED` hits, those with this title come first, followed by those of sessions with this
        title. The words of a title can match another hit better, for example if the title names the project.
        """
        first, wanted = list(islice(representatives, _COMPARED)), title.strip()
        numbers = [self._session(each) for each in first]
        sessions = self._store.sessions.titled(filter(None, numbers), wanted)

        def place(at: int) -> int:
            learned = first[at].observation
            if learned is not None and learned.observation.title.casefold() == wanted.casefold():
                return 0
            return 1 if numbers[at] in sessions else 2

        yield from (first[at] for at in sorted(range(len(first)), key=place))
        yield from representatives

    def repeated_in(self, each: Representative) -> tuple[str, ...]:
        """Return the IDs of the sessions whose hits were dropped because they repeat the title of this hit."""
        numbers = self._repeating.get(each.event.key, {})
        known = self._store.sessions.several(numbers) if numbers else {}
        return tuple(known[number].native_id for number in numbers)

    def _is_copy(self, stored: StoredChunk) -> bool:
        place = stored.source_file, stored.index, stored.chunk.text
        is_known = place in self._chunks
        self._chunks.add(place)
        return is_known

    def _session(self, each: Representative) -> int | None:
        if each.standalone is not None:
            return None
        if each.observation is not None:
            return each.observation.session
        key = each.event.key
        if key not in self._session_of:
            item = self._store.items.load([key]).get(key)
            self._session_of[key] = item.session if item else None
        return self._session_of[key]

    def _repeats(self, each: Representative, session: int) -> bool:
        if each.observation is None:
            return False
        first = self._first_by_title.setdefault(each.observation.observation.title.casefold(), each)
        if first is each:
            return False
        assert first.observation is not None
        if session != first.observation.session:
            self._repeating.setdefault(first.event.key, {})[session] = None
        return True
