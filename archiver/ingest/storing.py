"""Storing of one parsed source in the caller's transaction."""

from collections.abc import Collection, Mapping, Sequence

from ...core.conversation import UNINDEXED, Note, Session
from ..reading.source_reader import SourceReader, apply_title
from ..store import Source, SourceLine, Store


class StoredRecords:
    """Records and sessions that earlier ingest runs stored."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def locate(self, records: Collection[str]) -> Mapping[str, SourceLine]:
        """Return the first known location of each of these record IDs; unknown IDs are omitted."""
        return self._store.sources.locate(records)

    def descended(self, sources: Collection[int], session: Session) -> Collection[int]:
        """Return the sources among `sources` with sessions that are forks of `session`."""
        return self._store.sessions.forked_from(session, sources)


def stored_session(store: Store, session: Session) -> Session:
    """Return the stored session, or the given session if it is new.

    A sub-session of a session that must not be indexed must not be indexed either.
    """
    number = store.sessions.find(session.agent, session.native_id)
    return with_parent_mark(store, session if number is None else store.sessions.load(number))


def with_parent_mark(store: Store, session: Session) -> Session:
    """Return the session, marked as not to be indexed if its parent session has this mark."""
    if store.sessions.is_unindexed(session.agent, session.parent_id):
        session.links[UNINDEXED] = "yes"
    return session


def store_reading(store: Store, source: Source, session: Session, reading: SourceReader) -> bool:
    """Save a source, its session and its exchanges. Unchanged exchanges keep their keys, also in forks.

    Return whether other sources must be re-read because the owner of some lines changed.
    """
    number = source.session = store.sessions.save(session)
    number_of_source = store.sources.save(source)
    if reading.later_sources:
        store.sources.remove_records(reading.later_sources, reading.records)
    store.sources.add_records(number_of_source, reading.records)
    moved = store.exchanges.replace(number, number_of_source, reading.first, reading.exchanges, reading.moved)
    if not reading.first or all(each.ended != session.ended for each in reading.exchanges):
        # The first or the last exchange may be gone, for example a withdrawn prompt.
        store.sessions.update_dates(number)
    store.repetitions.record(number_of_source, reading.repetitions, replace=reading.is_whole)
    anew = {*reading.later_sources, number_of_source} if moved else {*reading.later_sources}
    if anew:
        store.sources.outdate(reading.later_sources)
        store.repetitions.outdate(anew)
    _apply_titles(store, reading.titles)
    return bool(anew)


def _apply_titles(store: Store, titles: Sequence[Note]) -> None:
    """Apply each title to the session with the record that the title refers to; ignore unknown records."""
    places = store.sources.locate({title.about for title in titles})
    for title in titles:
        number = store.sources.session_of(places[title.about][0]) if title.about in places else None
        if number is not None:
            session = store.sessions.load(number)
            apply_title(session, title)
            store.sessions.save(session)
