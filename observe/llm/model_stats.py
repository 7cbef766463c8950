"""Statistics of language model calls, and the list of failed requests."""

from ...archiver.store import JobKind, Store, StoredExchange
from ...core.config import Config
from ...core.home import Home
from ...core.ids import show
from ...core.spending import DeadLetter, Stats
from .ledger import Budget, Ledger

_COMPARED = 100
"""Number of most recent exchanges whose tokens are compared with those of their observations. This takes 0.5 s."""


def load_stats(home: Home, config: Config) -> Stats:
    """Return costs, budgets, jobs and token savings of a home.

    Raises:
        StoreMissing: The home has no database.
    """
    with Store.of(home) as store:
        ledger = Ledger(store, Budget.of(config), run="")
        return Stats(
            spent=store.ledger.by_model(),
            left=ledger.left(),
            calls_left=ledger.calls_left(config.llm_name),
            requests=store.jobs.states(),
            refused=store.jobs.refused(),
            reading=store.ledger.reading_costs(_COMPARED),
            injections=store.injections.totals(),
        )


def load_dead_letters(store: Store) -> list[DeadLetter]:
    """Return all failed requests with their transcript lines."""
    dead = store.jobs.dead()
    exchanges = store.exchanges.load([job.exchange for job in dead])
    return [
        DeadLetter(
            id=show("exchange", job.exchange),
            path=store.sources.load(stored.source).archived,
            start_line=stored.exchange.span.start_line,
            end_line=_end_line(store, stored, job.kind),
            attempts=job.attempts,
            reason=job.reason,
            reply=job.reply,
        )
        for job in dead
        if (stored := exchanges.get(job.exchange)) is not None
    ]


def _end_line(store: Store, stored: StoredExchange, kind: JobKind) -> int:
    """Return the last line of an exchange, or of the session that starts with it."""
    if kind is JobKind.EXCHANGE:
        return stored.exchange.span.end_line
    last = store.summaries.newest_exchanges(stored.session)[-1]
    return store.exchanges.load([last])[last].exchange.span.end_line
