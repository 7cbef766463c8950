"""One round of learning: what was taken up is read, cleaned, observed and embedded, as far as that is not done yet.

A pass and the background archiver do it alike; when what was learned is published, each decides for itself.
"""

from collections.abc import Callable
from functools import partial

from msgspec import Struct

from ..archiver.documents import Intake
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
from .stage import observe_pending


class Round(Struct, frozen=True):
    """How many exchanges were observed, how many were left `unobserved` when that was done, how many items embedded.

    `model` is why meaning cannot be searched, if so.
    """

    observed: int
    unobserved: int
    embedded: int
    model: ModelUnavailable | None


def learn(
    home: Home, store: Store, indexer: Indexer, report: Reporter = silent, enough: Callable[[], bool] = never
) -> Round:
    """Learn from all that was taken up, or until it is `enough`. Whoever calls it holds the learner's lease."""
    redactor = Redactor(home.key())
    Intake(store, redactor).work_off(partial(report, "Reading"), enough)
    if store.memories.outdated(VERSION, 1):
        redact_stored_memories(store, redactor, partial(report, "Redacting"))
    if store.memories.select(MemoryFilter(), limit=1):
        Feedback(store, MemoryRedactor(redactor), now).decay()
    observed = observe_pending(store, partial(report, "Observing"), enough)
    unobserved = store.exchanges.count_unobserved(rules.VERSION)
    store.stages.note("observe")
    embedded, missing = 0, None
    try:
        embedded = indexer.embed(partial(report, "Embedding"), enough)
    except ModelUnavailable as problem:
        missing = problem
    store.stages.note("embed", [missing] if missing else [])
    return Round(observed, unobserved, embedded, missing)
