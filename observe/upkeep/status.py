"""The state of the archive: what is kept, what became of every line, and how far each stage is."""

from typing import Final

from ...archiver.files.lines import PARSED, REPEATED
from ...archiver.store import WATCHER, Store
from ...core.amount import many
from ...core.errors import IndexDamaged
from ...core.home import Home
from ...core.report import FileProblem, LineCount, Status
from ...search.index.generation import Generations, IndexOutdated
from ...search.model.embedder import DEFAULT_MODEL, load
from .. import rules

OUTDATED: Final = "of another version of Palaver, searched from the archive until `palaver archive` makes it anew"
"""How an index is after an upgrade that changed its form."""


def status_of(home: Home, model: str | None = None) -> Status:
    """The state of the archive in this home; raises `StoreMissing`."""
    with Store.open(home.database) as store:
        return state_of(home, store, Generations(home.index), model)


def state_of(home: Home, store: Store, generations: Generations, model: str | None = None) -> Status:
    """The state of an archive that is open, perhaps only to be looked at."""
    files, size, lines, pending = store.sources.totals()
    coverage = store.sources.coverage()
    index, lag = _index(store, generations)
    verified, since = store.sources.inspection()
    return Status(
        home=home.root,
        files=files,
        size=size,
        lines=lines,
        parsed=coverage.pop(PARSED, 0),
        repeated=coverage.pop(REPEATED, 0),
        skipped=dict(coverage.most_common()),
        pending_bytes=pending,
        sessions=store.sessions.count(),
        exchanges=store.exchanges.count(),
        unobserved=store.exchanges.count_unobserved(rules.VERSION),
        observations=store.observations.count_by_type(),
        unembedded=store.vectors.count_unembedded(load(model or DEFAULT_MODEL).name),
        index=index,
        index_lag=lag,
        unaccounted=[LineCount(*row) for row in store.sources.unaccounted()],
        problems=[FileProblem(*row) for row in store.sources.problems()],
        refused=store.observations.count_refused(),
        watcher=store.leases.holder(WATCHER),
        stages=store.stages.all(),
        verified=verified,
        verified_since=since,
        damaged=[FileProblem(*row) for row in store.sources.faulty()],
        given_up=store.jobs.states().get("dead", 0),
    )


def _index(store: Store, generations: Generations) -> tuple[str, int]:
    last = store.changes.last()
    try:
        current = generations.current()
    except IndexOutdated:
        return OUTDATED, last
    except IndexDamaged as damage:
        return f"damaged ({damage}), searched from the archive until it is rebuilt", last
    if current is None:
        return "not built yet, searched from the archive", last
    if not current.manifest.is_of(store):
        return "of another archive, searched from this one until it is rebuilt", last
    entries, vectors = many(current.manifest.entries, "entry", "entries"), many(current.manifest.vectors, "vector")
    return f"{current.folder.name}, {entries}, {vectors}", last - current.manifest.watermark
