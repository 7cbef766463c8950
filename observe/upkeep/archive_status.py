"""Status of the archive (`palaver status`).

It contains sizes, the numbers of parsed, repeated and skipped transcript lines, and the progress of each stage.
"""

from typing import Final

from ...archiver.copies.raw_copy import RawArchive
from ...archiver.ingest.transcripts import encrypted_counts
from ...archiver.lines import PARSED, REPEATED
from ...archiver.store import ARCHIVER, LEARNER, WATCHER, Store
from ...core.command_socket import answering_process
from ...core.errors import IndexDamaged
from ...core.home import DEMO_FOLDER, Home
from ...core.memory import PROJECT, MemoryFilter, project_namespace
from ...core.reports import ArchivedAgent, FileProblem, LineCount, ProjectCount, Status, many
from ...search.index.generation import Generations, IndexOutdated
from ...search.model.embedder import DEFAULT_MODEL, load
from .. import rules
from .format_drift import format_drift, shown_version, version_order

OUTDATED: Final = "written by another version of Palaver. Search reads the archive until `palaver archive` rebuilds it"
"""State of the index after an upgrade that changed its format."""


def status_of(home: Home, model: str | None = None) -> Status:
    """Return the status of the archive in a home. Raises `StoreMissing`."""
    with Store.of(home) as store:
        return state_of(home, store, Generations(home.index), model)


def state_of(home: Home, store: Store, generations: Generations, model: str | None = None) -> Status:
    """Return the status of an open store, which may be read-only."""
    files, size, lines, pending = store.sources.totals()
    coverage = store.sources.coverage()
    index, lag, usable = _index(store, generations)
    verified, since = store.sources.verification_state()
    sessions = store.sessions.count_indexed()
    return Status(
        home=home.root,
        files=files,
        size=size,
        lines=lines,
        parsed=coverage.pop(PARSED, 0),
        repeated=coverage.pop(REPEATED, 0),
        skipped=dict(coverage.most_common()),
        pending_bytes=pending,
        sessions=sessions,
        empty_sessions=store.sessions.count() - sessions,
        exchanges=store.exchanges.count(),
        unobserved=store.exchanges.count_unobserved(rules.VERSION),
        observations=store.observations.count_by_type(),
        unembedded=store.vectors.count_unembedded(load(model or DEFAULT_MODEL).name),
        index=index,
        index_lag=lag,
        index_usable=usable,
        unaccounted=[LineCount(*row) for row in store.sources.unaccounted()],
        problems=[FileProblem(*row) for row in store.sources.problems()],
        refused=store.observations.count_refused(),
        watcher=store.leases.holder(WATCHER),
        running=[holder for name in (ARCHIVER, LEARNER) if (holder := store.leases.holder(name)) is not None],
        stages=store.stages.all(),
        verified=verified,
        verified_since=since,
        damaged=[FileProblem(*row) for row in store.sources.damaged()],
        projects=len(projects_of(store)),
        agents=agents_of(store),
        drift=format_drift(store, RawArchive(home.archive)),
        encrypted={} if home.root.name == DEMO_FOLDER else encrypted_counts(),
        answering=answering_process(str(home.root)),
    )


def agents_of(store: Store) -> list[ArchivedAgent]:
    """Return the agents with archived transcripts, the one with most sessions first."""
    versions: dict[str, set[str]] = {}
    for session in store.sessions.all().values():
        versions.setdefault(session.agent, set()).update({shown_version(session.version)} - {""})
    counts = store.session_list.count_by_agent()
    agents = [
        ArchivedAgent(agent, counts[agent][0] if agent in counts else 0, tuple(sorted(names, key=version_order)))
        for agent, names in versions.items()
    ]
    return sorted(agents, key=lambda agent: -agent.sessions)


def projects_of(store: Store) -> list[ProjectCount]:
    """Return every project with a session, a memory or an indexed file, the one with the latest session first."""
    counts = store.memories.count_by("namespace", MemoryFilter())
    files = store.documents.count_by("namespace", files=True)
    counted = [
        ProjectCount(total.name, total.sessions, counts.pop(space, 0), total.latest, files.pop(space, 0))
        for total in store.sessions.totals_by_project()
        if total.name
        for space in [project_namespace(total.name)]
    ]
    others = sorted(files.keys() | {name for name in counts if name.startswith(PROJECT)})
    return counted + [
        ProjectCount(name.removeprefix(PROJECT), 0, counts.get(name, 0), None, files.get(name, 0)) for name in others
    ]


def _index(store: Store, generations: Generations) -> tuple[str, int, bool]:
    """Return a description of the index, the number of changes that it lacks, and whether search can use it."""
    last = store.changes.last()
    fallback = "search reads the archive until it is rebuilt"
    try:
        current = generations.current()
    except IndexOutdated:
        return OUTDATED, last, False
    except IndexDamaged as damage:
        return f"damaged ({damage}); {fallback}", last, False
    if current is None:
        return f"not built yet; {fallback}", last, False
    if not current.manifest.is_of(store):
        return f"built from another archive; {fallback}", last, False
    texts, vectors = many(current.manifest.entries, "text"), many(current.manifest.vectors, "vector")
    return (
        f"{texts}, {vectors} for semantic search, in index/{current.folder.name}",
        last - current.manifest.watermark,
        True,
    )
