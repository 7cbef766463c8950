"""Extraction of observations from exchanges that were not yet observed."""

from collections.abc import Callable

from ..archiver.store import Entity, Store, StoredExchange
from ..core.conversation import Session
from ..core.progress import Progress, never
from . import rules
from .extraction.observation_writer import keep, summarise
from .rules.verification import VerifiedObservations

_BATCH = 200


def observe_pending(store: Store, progress: Progress, should_stop: Callable[[], bool] = never) -> int:
    """Observe exchanges that are new, have grown, or were observed with other rules. Return their number.

    Stops early when `should_stop` returns true. If another process changes an exchange during the run, the exchange is
    observed again. Sessions that lost observations, or gained observations from another session, are summarised again.
    """
    done, total = 0, store.exchanges.count_unobserved(rules.VERSION)
    sessions: dict[int, Session] = {}
    while not should_stop():
        before = store.changes.last()
        batch = store.exchanges.unobserved(rules.VERSION, _BATCH)
        if not batch:
            break
        progress(done, total)
        learned = [(stored, _observe(store, stored, sessions)) for stored in batch]
        with store.transaction():
            changed = set(store.changes.since(before, [Entity.ITEM]))
            seen = [(stored, proven) for stored, proven in learned if stored.key not in changed]
            for stored, proven in seen:
                session = sessions[stored.session]
                keep(store, stored, session, proven.observations, rules.VERSION, proven.rejected)
            summarise(store, dict.fromkeys(stored.session for stored, _ in seen))
            done += len(seen)
    if due := store.summaries.due():
        with store.transaction():
            summarise(store, due)
    progress(done, total)
    return done


def _observe(store: Store, stored: StoredExchange, sessions: dict[int, Session]) -> VerifiedObservations:
    if stored.session not in sessions:
        sessions[stored.session] = store.sessions.load(stored.session)
    return rules.observe(stored.exchange, sessions[stored.session])
