"""The accounts as a person asks for them: spent, left, given up, and what observations save."""

from ...archiver.store import Store
from ...core.config import Config
from ...core.home import Home
from ...core.ids import show
from ...core.spending import DeadLetter, Stats
from .ledger import Budget, Ledger

_COMPARED = 100
"""Exchanges that are compared with what was learned from them, the newest first: counted in half a second."""


def stats_of(home: Home, config: Config) -> Stats:
    """What was spent and saved in this home; raises `StoreMissing`."""
    with Store.open(home.database) as store:
        left = Ledger(store, Budget.of(config), run="").left()
        return Stats(
            spent=store.ledger.by_model(),
            left=left,
            jobs=store.jobs.states(),
            refused=store.jobs.refused(),
            layers=store.ledger.disclosure(_COMPARED),
        )


def dead_letters(store: Store) -> list[DeadLetter]:
    """Every request that was given up, with the place it asked about."""
    dead = store.jobs.dead()
    exchanges = store.exchanges.load([job.exchange for job in dead])
    return [
        DeadLetter(
            id=show("exchange", job.exchange),
            path=store.sources.load(stored.source).archived,
            start_line=stored.exchange.span.start_line,
            end_line=stored.exchange.span.end_line,
            attempts=job.attempts,
            reason=job.reason,
            reply=job.reply,
        )
        for job in dead
        if (stored := exchanges.get(job.exchange)) is not None
    ]
