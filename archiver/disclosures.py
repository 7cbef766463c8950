"""Disclosures: which kinds of secrets stood where, told by the placeholders that took their places."""

from collections import Counter, defaultdict

from ..core.report import Secrets, SessionSecrets
from .redaction import VERSION, Finding, placed
from .store import Store


def secrets_in(store: Store) -> Secrets:
    """What was taken out of everything that is stored."""
    everywhere: Counter[Finding] = Counter()
    by_source: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for source, exchange in store.exchanges.holding("[secret:"):
        found = [finding for turn in exchange.turns for finding in placed(turn.text)]
        everywhere.update(found)
        by_source[source].update(finding.kind for finding in found)
    different = Counter(finding.kind for finding in everywhere)
    times: Counter[str] = Counter()
    for finding, count in everywhere.items():
        times[finding.kind] += count
    kinds = {kind: (different[kind], count) for kind, count in times.most_common()}
    sessions = [_session(store, source, there) for source, there in sorted(by_source.items()) if there]
    return Secrets(VERSION, kinds, sessions, len(store.sources.outdated()))


def _session(store: Store, number: int, kinds: Counter[str]) -> SessionSecrets:
    source = store.sources.load(number)
    assert source.session is not None
    session = store.sessions.load(source.session)
    return SessionSecrets(session.native_id, session.project, source.archived, dict(kinds.most_common()))
