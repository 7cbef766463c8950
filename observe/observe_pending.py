"""Extraction of observations from exchanges that have not been observed yet."""

from collections.abc import Callable, Mapping, Sequence

from ..archiver.store import Entity, Store, StoredExchange
from ..archiver.store.file_state_table import FileState
from ..core.clock import now
from ..core.conversation import Session
from ..core.progress import Progress, never
from . import rules
from .extraction.file_states import file_states, is_live
from .extraction.observation_writer import keep, summarise
from .rules import rule_extractor
from .rules.verification import VerifiedObservations

_BATCH = 100


def observe_pending(
    store: Store,
    progress: Progress,
    should_stop: Callable[[], bool] = never,
    publish: Callable[[], object] = lambda: None,
) -> int:
    """Observe exchanges that are new, have grown, or were observed by other rules. Return their number.

    `publish` is called after each batch. Until the index contains the changes, every search indexes them in memory.

    The function stops early when `should_stop` returns true. If another process changes an exchange during the run, the
    exchange is observed again. A session is also summarised again if observations were deleted from it or moved to it
    from another session.
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
        states = _file_states(store, batch, sessions)
        with store.transaction():
            changed = set(store.changes.since(before, [Entity.ITEM]))
            seen = [(stored, proven) for stored, proven in learned if stored.key not in changed]
            for stored, proven in seen:
                session = sessions[stored.session]
                keep(store, stored, session, proven.observations, rules.VERSION, proven.rejected)
                if stored.key in states:
                    store.file_states.replace(stored.key, states[stored.key])
            summarise(store, dict.fromkeys(stored.session for stored, _ in seen))
            done += len(seen)
        publish()
    if due := store.summaries.due():
        with store.transaction():
            summarise(store, due)
    progress(done, total)
    return done


def _observe(store: Store, stored: StoredExchange, sessions: dict[int, Session]) -> VerifiedObservations:
    if stored.session not in sessions:
        sessions[stored.session] = store.sessions.load(stored.session)
    return rule_extractor.observe(stored.exchange, sessions[stored.session])


def _file_states(
    store: Store, batch: Sequence[StoredExchange], sessions: Mapping[int, Session]
) -> dict[int, list[FileState]]:
    """Return the file hashes of each exchange that ended within the last five minutes, by the key of the exchange."""
    at = now()
    live = [stored for stored in batch if is_live(stored.exchange, at)]
    key = store.home.key() if live else b""
    return {stored.key: file_states(stored.exchange, sessions[stored.session], key) for stored in live}
