"""Processing of ingested content after an ingest run.

The steps are: read queued documents, redact memories, count the tokens of turns, extract observations, and embed
texts. An ingest run and the index worker both call `learn`, and publish its last results. `learn` itself publishes when
searches would slow down.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from msgspec import Struct

from ..archiver.documents.document_ingest import DocumentIngest
from ..archiver.redaction import VERSION, Redactor
from ..archiver.store import Store
from ..core.clock import now
from ..core.errors import ModelUnavailable
from ..core.home import Home
from ..core.memory_filter import MemoryFilter
from ..core.progress import Reporter, never, silent
from ..search.index.indexer import Indexer
from . import rules
from .memory.feedback import Feedback
from .memory.memory_redaction import MemoryRedactor, redact_stored_memories
from .observe_pending import observe_pending

_BATCH: Final = 50
"""Number of exchanges per transaction whose reading costs are stored."""


class Learned(Struct, frozen=True):
    """Result of `learn`: counts of observed exchanges, exchanges left unobserved, and embedded items."""

    observed: int
    unobserved: int
    embedded: int
    model: ModelUnavailable | None
    """Reason why semantic search is not available, or None if it is available."""


def learn(
    home: Home, store: Store, indexer: Indexer, report: Reporter = silent, should_stop: Callable[[], bool] = never
) -> Learned:
    """Process all pending content, or stop early when `should_stop` returns true.

    The caller must hold the lease `LEARNER`.
    """
    redactor = Redactor(home.key())
    DocumentIngest(store, redactor).index_queued(partial(report, "Reading"), should_stop)
    if store.memories.to_redact(VERSION, 1):
        redact_stored_memories(store, redactor, partial(report, "Redacting"))
    if store.memories.select(MemoryFilter(), limit=1):
        Feedback(store, MemoryRedactor(redactor), now).decay()
    while not should_stop() and (uncounted := store.exchanges.without_costs(_BATCH)):
        with store.transaction():
            store.exchanges.store_costs(uncounted)
    observed = observe_pending(store, partial(report, "Observing"), should_stop, indexer.publish_texts)
    unobserved = store.exchanges.count_unobserved(rules.VERSION)
    store.stages.note("observe")
    embedded, missing = 0, None
    try:
        embedded = indexer.embed(partial(report, "Embedding"), should_stop)
    except ModelUnavailable as problem:
        missing = problem
    store.stages.note("embed", [missing] if missing else [])
    return Learned(observed, unobserved, embedded, missing)
