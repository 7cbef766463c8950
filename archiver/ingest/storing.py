"""Storing: what was read of one source becomes rows. Within the caller's transaction."""

from collections.abc import Collection, Mapping, Sequence

from ...core.conversation import Note, Session
from ..reading.source_reader import Reading, entitle
from ..store import Place, Source, Store


class StoredRecords:
    """Records and sessions that earlier ingest runs stored."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def places(self, records: Collection[str]) -> Mapping[str, Place]:
        """Return where the known ones among these record ids were first seen."""
        return self._store.sources.places(records)

    def descended(self, sources: Collection[int], session: Session) -> Collection[int]:
        """Return those of these sources whose sessions come from this one."""
        return self._store.sessions.forked_from(session, sources)


def store_reading(store: Store, source: Source, session: Session, reading: Reading) -> bool:
    """Save a source, its session and its exchanges; those that say the same as before, here or in a fork, keep their
    keys.

    Whether other sources are to be read again: what they say was said here before them, or counts anew here.
    """
    number = source.session = store.sessions.save(session)
    number_of_source = store.sources.save(source)
    if reading.preceded:
        store.sources.disown(reading.preceded, reading.records)
    store.sources.own(number_of_source, reading.records)
    moved = store.exchanges.replace(number, number_of_source, reading.first, reading.exchanges, reading.taken_over)
    if not reading.first or all(each.ended != session.ended for each in reading.exchanges):
        store.sessions.update_dates(
            number
        )  # what began or ended it may be there no more, as a prompt that was taken back
    store.repetitions.record(number_of_source, reading.repetitions, replace=reading.is_whole)
    anew = {*reading.preceded, number_of_source} if moved else {*reading.preceded}
    if anew:
        store.sources.outdate(reading.preceded)
        store.repetitions.outdate(anew)
    _entitle(store, reading.titles)
    return bool(anew)


def _entitle(store: Store, titles: Sequence[Note]) -> None:
    """Give titles to the sessions that hold the records they name; those of unknown records tell nothing."""
    places = store.sources.places({title.about for title in titles})
    for title in titles:
        number = store.sources.session_of(places[title.about][0]) if title.about in places else None
        if number is not None:
            session = store.sessions.load(number)
            entitle(session, title)
            store.sessions.save(session)
