"""Rebuilding of the index from the database, and of the database from the raw copies (`palaver rebuild`)."""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from ...archiver.copies.copy_verification import copies_without_row
from ...archiver.copies.raw import RawArchive
from ...archiver.copies.raw_copy import Copy
from ...archiver.deletion.copy_eraser import CopyEraser
from ...archiver.deletion.suppression import SuppressionList
from ...archiver.ingest.ingest import Ingest
from ...archiver.ingest.recovery import Recovery
from ...archiver.ingest.rereading import Rereading
from ...archiver.ingest.transcripts import Transcript
from ...archiver.reading.exclusion import Exclusion
from ...archiver.reading.source_reader import IngestFilters
from ...archiver.redaction import Redactor
from ...archiver.store import ARCHIVER, Store
from ...core.amount import many
from ...core.checkup import HealthProblem, RebuildReport
from ...core.errors import SourceUnreadable, StoreCorrupt
from ...core.home import Home
from ...core.progress import Reporter, silent
from ...core.report import IngestReport
from ...search.index.generation import Generations
from ...search.index.indexer import Indexer
from ...search.model.embedder import DEFAULT_MODEL, load
from ..observe_pending import observe_pending
from .consistency import RECOVER_DATABASE, damage_of

_PATIENCE: Final = 30.0
"""Seconds to wait for another process that writes."""


def rebuild_index(home: Home, model: str | None = None, report: Reporter = silent) -> RebuildReport:
    """Rebuild the index from the database, without loading a model.

    Raises `StoreMissing`, `LeaseHeld` and `IndexUnwritable`.
    """
    with Store.of(home) as store:
        return _rebuilt_index(home, store, model, report)


def rebuild_from_archive(
    home: Home,
    transcripts: Iterable[Transcript],
    model: str | None = None,
    report: Reporter = silent,
    exclude: Sequence[str] = (),
) -> RebuildReport:
    """Parse every copy again, including copies without a row, then rebuild the index.

    A missing database is created. `transcripts` are the files that agents still have. They provide the original paths
    of their copies. Files without a copy are not ingested. Valid observations and vectors are kept. The next ingest run
    continues an interrupted rebuild. Folders that match a pattern in `exclude` are omitted.

    Raises:
        StoreCorrupt: The database is damaged. Nothing is changed.
    """
    exclusion = Exclusion(exclude)
    if not home.has_copies:
        home.check()
    damage = damage_of(home) if home.has_database else []
    if damage:
        raise StoreCorrupt(f"{home.database}: {damage[0]}", hint=RECOVER_DATABASE)
    home.make()
    with Store.create_anew(home.database) as store:
        with store.leases.hold(ARCHIVER, _PATIENCE):
            reread, recovered, problems = _parse_all(home, store, exclusion, transcripts, report)
        observe_pending(store, partial(report, "Observing"))
        made = _rebuilt_index(home, store, model, report)
    return RebuildReport(made.generation, made.entries, made.vectors, reread, recovered, problems)


def _parse_all(
    home: Home, store: Store, exclusion: Exclusion, transcripts: Iterable[Transcript], report: Reporter
) -> tuple[int, int, list[HealthProblem]]:
    """Parse all copies. Return the number of re-parsed copies, the number of recovered copies, and the problems."""
    raw, redactor = RawArchive(home.archive), Redactor(home.key())
    filters = IngestFilters(home.root, redactor, exclusion, SuppressionList(store, home.key()))
    eraser = CopyEraser(store, raw)
    eraser.schedule(copies_without_row(raw.root, store))
    again = IngestReport(problems=eraser.finish())
    with store.transaction():
        store.sources.outdate()
    rereading = Rereading(store, raw, filters)
    rereading.run(again, partial(report, "Reading"), float("inf"))
    known = store.sources.by_path()
    copied = [each for each in transcripts if each.path in known or _may_have_copy(each, home.archive, redactor)]
    ingested = Ingest(store, raw, exclusion).run(copied, partial(report, "Archiving"))
    recovered = Recovery(store, raw, filters).run(partial(report, "Recovering"))
    # A fork may have been ingested before the session that it was forked from.
    rereading.run(recovered, partial(report, "Reading"), float("inf"))
    # A copy that cannot be read is reported by each step.
    problems = list(dict.fromkeys(map(_problem, (*again.problems, *ingested.problems, *recovered.problems))))
    if lost := store.tombstones.lost:
        problem = f"{many(lost, 'deletion was', 'deletions were')} lost, so deleted items are searchable again"
        problems.append(HealthProblem("deletions", problem, "Delete them again with `palaver forget`."))
    return again.reread, recovered.changed, problems


def _may_have_copy(transcript: Transcript, archive: Path, redactor: Redactor) -> bool:
    """Return whether a file may have a copy.

    The result is also True for an unreadable file, so that it is reported. A container counts as copied if copies of
    its agent exist.
    """
    if transcript.container_format is not None:
        return (archive / transcript.container_format.agent).is_dir()
    try:
        known = transcript.recognise()
    except OSError:
        return True
    return known is not None and Copy(archive, redactor.redact_name(transcript.archived(known))).exists()


def _rebuilt_index(home: Home, store: Store, model: str | None, report: Reporter) -> RebuildReport:
    indexer = Indexer(store, Generations(home.index), load(model or DEFAULT_MODEL))
    made = indexer.rebuild(partial(report, "Rebuilding"), _PATIENCE)
    store.stages.note("publish")
    return RebuildReport(made.folder.name, made.manifest.entries, made.manifest.vectors)


def _problem(problem: SourceUnreadable) -> HealthProblem:
    return HealthProblem(
        "copies", str(problem), problem.hint or "The copy was not changed. All other copies were read."
    )
