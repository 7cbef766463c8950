"""The extraction stage: exchanges that were not looked at yet become observations."""

from ..archiver.store import Store, StoredExchange
from ..core.conversation import Session
from ..core.observation import Observation
from ..core.progress import Progress
from . import rules

_BATCH = 200


def observe_pending(store: Store, progress: Progress) -> int:
    """Observe every exchange that is new, grew, or was seen by other rules; how many there were."""
    done, total = 0, store.exchanges.count_unobserved(rules.VERSION)
    sessions: dict[int, Session] = {}
    while batch := store.exchanges.unobserved(rules.VERSION, _BATCH):
        progress(done, total)
        learned = [(stored, _observe(store, stored, sessions)) for stored in batch]
        with store.transaction():
            for stored, observations in learned:
                store.observations.replace(stored.key, stored.session, observations, rules.VERSION)
        done += len(batch)
    progress(done, total)
    return done


def _observe(store: Store, stored: StoredExchange, sessions: dict[int, Session]) -> tuple[Observation, ...]:
    if stored.session not in sessions:
        sessions[stored.session] = store.sessions.load(stored.session)
    return rules.observe(stored.exchange, sessions[stored.session])
