"""Writer of the observations of an exchange.

It confirms known observations, inserts new ones, and updates the session's summary.
"""

from collections.abc import Iterable, Mapping, Sequence

from ...archiver.store import SUMMARY_PREFIX, Store, StoredExchange, StoredObservation
from ...archiver.store.replacement_table import StoredReplacement
from ...core.conversation import Exchange, Session
from ...core.observation import Evidence, Observation
from ..rules.committed_work import committed_work
from ..rules.replacements import find_replacements
from ..rules.session_card import build_card
from .repetition import fingerprint, is_repetition

_READ = 100
"""Number of exchanges at the end of a session that its summary reads, in addition to the first exchange."""

_EARLIER = 24
"""Number of earlier observations of the session that a commit is compared with."""


def keep(
    store: Store,
    stored: StoredExchange,
    session: Session,
    observations: Iterable[Observation],
    extractor: str,
    rejected: int = 0,
) -> None:
    """Replace the observations of an exchange, inside a transaction.

    An observation that repeats one of another exchange is not stored. Instead, it confirms the known observation, which
    keeps its wording. If this exchange only runs `git commit` on the work of an earlier exchange, it confirms the
    observation of that work. `rejected` is the number of facts whose quotes were not found.
    """
    earlier = store.observations.latest(stored.session, stored.key, _EARLIER)
    fresh: list[Observation] = []
    fingerprints: list[str] = []
    confirmed: dict[int, tuple[Evidence, ...]] = {}
    for observation in dict.fromkeys(observations):
        marker = fingerprint(observation, session.project)
        known = store.confirmations.candidates(marker, observation.title, stored.key)
        twin = next((each.key for each in known if is_repetition(each.observation, observation)), None)
        if twin is None:
            place = committed_work(stored.exchange, observation, [each.observation for each in earlier])
            twin = None if place is None else earlier[place].key
        if twin is None:
            fresh.append(observation)
            fingerprints.append(marker)
        else:
            confirmed[twin] = observation.evidence
    store.observations.replace(stored.key, stored.session, fresh, extractor, fingerprints, rejected)
    store.confirmations.replace(stored.key, confirmed)


def summarise(store: Store, sessions: Iterable[int]) -> None:
    """Update the summaries of sessions and the links between their observations, inside a transaction.

    For a session in several files, the last file is summarised. A summary by a language model is kept until the session
    grows.
    """
    for session in sessions:
        keys = store.summaries.newest_exchanges(session)
        if not keys:
            continue
        parts = store.summaries.summarised(keys)
        read = [*keys[:1], *keys[1:][-_READ:]]
        loaded = store.exchanges.load(read)
        exchanges = [loaded[key].exchange for key in read]
        replaced = _link_replacements(store, parts, dict(zip(read, exchanges, strict=True)))
        known = store.summaries.of_session(session)
        if known is not None and _is_current(known.observation, exchanges[-1]):
            summary: Observation | None = known.observation
        else:
            observations = [part.observation for part in parts]
            summary = build_card(observations, store.sessions.load(session), exchanges, replaced)
        store.summaries.put(session, keys[0], summary)


def _is_current(summary: Observation, last: Exchange) -> bool:
    """Return whether a summary is by a language model and covers the last exchange."""
    return summary.extractor.startswith(SUMMARY_PREFIX) and summary.at == (last.ended or last.started)


def _link_replacements(
    store: Store, parts: Sequence[StoredObservation], exchanges: Mapping[int, Exchange]
) -> list[Observation]:
    """Find the observations of a session that later ones replace.

    Store these pairs and return the replaced observations.
    """
    places = {key: place for place, key in enumerate(exchanges)}
    read = [part for part in parts if part.exchange in places]
    found = find_replacements([(places[part.exchange], part.observation) for part in read], [*exchanges.values()])
    links = [StoredReplacement(read[each.earlier].key, read[each.later].key, each.line) for each in found]
    store.replacements.put([part.key for part in read], links)
    return [read[each.earlier].observation for each in found]
