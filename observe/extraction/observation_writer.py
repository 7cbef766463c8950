"""Store the observations of an exchange: confirm known ones, insert new ones, and update the summary."""

from collections.abc import Iterable

from ...archiver.store import Store, StoredExchange
from ...core.conversation import Session
from ...core.observation import Evidence, Observation
from ..rules.session_summary import build_summary
from .repetition import fingerprint, is_repetition


def keep(
    store: Store,
    stored: StoredExchange,
    session: Session,
    observations: Iterable[Observation],
    extractor: str,
    rejected: int = 0,
) -> None:
    """Replace the observations of an exchange, inside a transaction.

    An observation that repeats a known observation confirms it; the first wording is kept.
    """
    fresh: list[Observation] = []
    fingerprints: list[str] = []
    confirmed: dict[int, tuple[Evidence, ...]] = {}
    for observation in dict.fromkeys(observations):
        marker = fingerprint(observation, session.project)
        known = store.confirmations.candidates(marker, observation.title, stored.key)
        twin = next((each.key for each in known if is_repetition(each.observation, observation)), None)
        if twin is None:
            fresh.append(observation)
            fingerprints.append(marker)
        else:
            confirmed[twin] = observation.evidence
    store.observations.replace(stored.key, stored.session, fresh, extractor, fingerprints, rejected)
    store.confirmations.replace(stored.key, confirmed)


def summarise(store: Store, sessions: Iterable[int]) -> None:
    """Update the summaries of sessions, inside a transaction.

    For a session in several files, the last file is summarised.
    """
    for session in sessions:
        bounds = store.summaries.bounds(session)
        if bounds is None:
            continue
        first, last = bounds
        parts = [part.observation for part in store.summaries.summarised(session, last)]
        ended = store.exchanges.load([last])[last].exchange
        store.summaries.put(session, first, build_summary(parts, store.sessions.load(session), ended))
