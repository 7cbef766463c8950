"""Functions that store one parsed source in the caller's transaction."""

from collections.abc import Sequence

from ...core.conversation import UNINDEXED, Note, Session
from ..reading.source_reader import SourceReader, apply_title
from ..store import Source, Store


def stored_session(store: Store, session: Session) -> Session:
    """Return the stored version of a session, or the given session if it is new.

    If the stored version has no working folder, it gets the folder of the given session. If the parent session is
    marked as excluded from the index, the returned session gets the same mark.
    """
    number = store.sessions.find(session.agent, session.native_id, session.scope)
    if number is not None:
        known = store.sessions.load(number)
        known.cwd = known.cwd or session.cwd
        session = known
    return with_parent_mark(store, session)


def with_parent_mark(store: Store, session: Session) -> Session:
    """Mark a session as excluded from the index if its parent session is excluded. Return the session."""
    if store.sessions.is_unindexed(session.agent, session.parent_id):
        session.links[UNINDEXED] = "yes"
    return session


def store_reading(store: Store, source: Source, session: Session, reading: SourceReader) -> bool:
    """Save a source, its session and its exchanges. Unchanged exchanges keep their keys, even in another source.

    Return whether other sources must be re-read because the owner of some lines changed.
    """
    number, before = store.sessions.save(session), source.session
    source.session = number
    number_of_source = store.sources.save(source)
    if reading.tombstones:
        store.tombstones.extend(reading.tombstones)
    if reading.moved:
        store.sources.remove_records((each.first, each.line) for each in reading.moved)
    store.sources.add_records(number_of_source, reading.records)
    moved = store.exchanges.replace(number, number_of_source, reading.first, reading.exchanges, reading.moved)
    if not reading.first or all(each.ended != session.ended for each in reading.exchanges):
        # The first or the last exchange may have disappeared, for example because a prompt was withdrawn.
        store.sessions.update_dates(number)
    if before is not None and before != number:
        store.exchanges.set_session(number_of_source, before, number)
        store.sessions.update_dates(before)
    store.repetitions.record(number_of_source, reading.repetitions, replace=reading.is_whole)
    store.subagent_calls.record(number_of_source, reading.subagents, replace=reading.is_whole)
    changed = {*reading.later_sources, number_of_source} if moved else {*reading.later_sources}
    if changed:
        store.sources.outdate(reading.later_sources)
        store.repetitions.outdate(changed)
    store.sources.outdate(reading.less_detailed)
    _apply_titles(store, reading.titles)
    return bool(changed or reading.less_detailed)


def _apply_titles(store: Store, titles: Sequence[Note]) -> None:
    """Set the titles of sessions. A title belongs to the session that contains the record `Note.about`.

    Titles with an unknown record are ignored.
    """
    places = store.sources.locate({title.about for title in titles})
    for title in titles:
        number = store.sources.session_of(places[title.about][0]) if title.about in places else None
        if number is not None:
            session = store.sessions.load(number)
            apply_title(session, title)
            store.sessions.save(session)
