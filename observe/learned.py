"""Keeping what was learned: what was known is confirmed, the rest is stored, and the session is summed up anew."""

from collections.abc import Iterable

from ..archiver.store import Store, StoredExchange
from ..core.conversation import Session
from ..core.observation import Evidence, Observation
from .sameness import mark, same
from .summary import sum_up


def keep(
    store: Store,
    stored: StoredExchange,
    session: Session,
    observations: Iterable[Observation],
    extractor: str,
    refused: int = 0,
) -> None:
    """Make these what an exchange taught, inside a transaction. The first wording of a thing stays."""
    fresh: list[Observation] = []
    marks: list[str] = []
    confirmed: dict[int, tuple[Evidence, ...]] = {}
    for observation in dict.fromkeys(observations):
        name = mark(observation, session.project)
        known = store.confirmations.candidates(name, observation.title, stored.key)
        twin = next((each.key for each in known if same(each.observation, observation)), None)
        if twin is None:
            fresh.append(observation)
            marks.append(name)
        else:
            confirmed[twin] = observation.evidence
    store.observations.replace(stored.key, stored.session, fresh, extractor, marks, refused)
    store.confirmations.replace(stored.key, confirmed)


def summarise(store: Store, numbers: Iterable[int]) -> None:
    """Sum up sessions anew, inside a transaction. A session in several files is told of by its last one."""
    for number in numbers:
        bounds = store.summaries.bounds(number)
        if bounds is None:
            continue
        first, last = bounds
        parts = [part.observation for part in store.summaries.parts(number, last)]
        ended = store.exchanges.load([last])[last].exchange
        store.summaries.put(number, first, sum_up(parts, store.sessions.load(number), ended))
