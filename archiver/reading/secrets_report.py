"""Report of redacted secrets by kind and location, counted from their placeholders."""

from collections import Counter, defaultdict
from collections.abc import Collection

import orjson

from ...core.memory import Memory
from ...core.report import KindCount, Secrets, SessionSecrets
from ..redaction import VERSION, FoundSecret, placeholders_in
from ..store import Store

_KEYS = orjson.OPT_NON_STR_KEYS


def secrets_in(store: Store) -> Secrets:
    """Count the redacted secrets in all stored data."""
    everywhere: Counter[FoundSecret] = Counter()
    by_source: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for source, exchange in store.exchanges.containing("[secret:"):
        found = [finding for turn in exchange.turns for finding in placeholders_in(turn.text)]
        everywhere.update(found)
        by_source[source].update(finding.kind for finding in found)
    memories = {stored.id: found for stored in store.memories.all() if (found := secrets_of(stored.memory))}
    for found in memories.values():
        everywhere.update(found)
    different = Counter(finding.kind for finding in everywhere)
    times: Counter[str] = Counter()
    for finding, count in everywhere.items():
        times[finding.kind] += count
    kinds = {kind: KindCount(different[kind], count) for kind, count in times.most_common()}
    sessions = [_session(store, source, found) for source, found in sorted(by_source.items()) if found]
    by_memory = {memory: _counted(found) for memory, found in memories.items()}
    return Secrets(VERSION, kinds, sessions, len(store.sources.outdated()), by_memory)


def kinds_in_sources(store: Store, sources: Collection[int]) -> dict[str, int]:
    """Return the number of secrets that were redacted from the text of some sources, by kind, the most frequent first.

    Equal secrets count once.
    """
    found = {
        finding
        for source, exchange in store.exchanges.containing("[secret:")
        if source in sources
        for turn in exchange.turns
        for finding in placeholders_in(turn.text)
    }
    return _counted(sorted(found, key=str))


def secrets_of(memory: Memory) -> list[FoundSecret]:
    """Return the secrets that were redacted from a memory, one element for each occurrence."""
    texts = memory.content, memory.title, *memory.tags, orjson.dumps(memory.metadata, option=_KEYS).decode()
    return placeholders_in("\n".join((*texts, memory.project, memory.level, memory.source, memory.session_id)))


def kinds_of(memory: Memory) -> list[str]:
    """Return the kinds of secrets that were redacted from a memory, such as `github-pat`."""
    return list(_counted(secrets_of(memory)))


def _counted(found: list[FoundSecret]) -> dict[str, int]:
    return dict(Counter(finding.kind for finding in found).most_common())


def _session(store: Store, number: int, kinds: Counter[str]) -> SessionSecrets:
    source = store.sources.load(number)
    assert source.session is not None
    session = store.sessions.load(source.session)
    return SessionSecrets(session.native_id, session.project, source.archived, dict(kinds.most_common()))
