"""Rebuilding: the index made anew from the store, and the store from the copies."""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from ...archiver.copies.raw import RawArchive
from ...archiver.copies.raw_copy import Copy
from ...archiver.copies.verification import copies_without_row
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
from ...core.checkup import Finding, Rebuilt
from ...core.errors import SourceUnreadable, StoreCorrupt
from ...core.home import Home
from ...core.progress import Reporter, silent
from ...core.report import Pass
from ...search.index.generation import Generations
from ...search.index.indexer import Indexer
from ...search.model.embedder import DEFAULT_MODEL, load
from ..observe_pending import observe_pending
from .fsck import RECOVER, damage_of

_PATIENCE: Final = 30.0
"""Seconds to wait for another process that writes."""


def rebuild_index(home: Home, model: str | None = None, report: Reporter = silent) -> Rebuilt:
    """Make the index anew from the store, without a model. Raises `StoreMissing`, `LeaseHeld`, `IndexUnwritable`."""
    with Store.open(home.database) as store:
        return _index(home, store, model, report)


def rebuild_from_archive(
    home: Home,
    transcripts: Iterable[Transcript],
    model: str | None = None,
    report: Reporter = silent,
    exclude: Sequence[str] = (),
) -> Rebuilt:
    """Read every copy again, those without a row among them, then make the index anew.

    Without a database one is made; of `transcripts`, the files that agents still have, those that copies come from tell
    so, and no other is taken up. What
    was learned and embedded is kept where it still holds. A database that is damaged is left alone: raises
    `StoreCorrupt`. Can be interrupted: the next pass goes on. `exclude` is that of `Pipeline`.
    """
    exclusion = Exclusion(exclude)
    if not home.has_copies:
        home.check()
    damage = damage_of(home) if home.has_database else []
    if damage:
        raise StoreCorrupt(f"{home.database}: {damage[0]}", hint=RECOVER)
    home.make()
    with Store.create_anew(home.database) as store:
        with store.leases.hold(ARCHIVER, _PATIENCE):
            ingest = Ingest(store, RawArchive(home.archive), exclusion)
            reread, recovered, problems = _read_all(home, store, ingest, exclusion, transcripts, report)
        observe_pending(store, partial(report, "Observing"))
        made = _index(home, store, model, report)
    return Rebuilt(made.generation, made.entries, made.vectors, reread, recovered, problems)


def _read_all(
    home: Home,
    store: Store,
    ingest: Ingest,
    exclusion: Exclusion,
    transcripts: Iterable[Transcript],
    report: Reporter,
) -> tuple[int, int, list[Finding]]:
    raw = RawArchive(home.archive)
    suppression = SuppressionList(store, home.key())
    filters = IngestFilters(home.root, Redactor(home.key()), exclusion, suppression)
    eraser = CopyEraser(store, raw)
    eraser.expect(copies_without_row(raw.root, store))
    again = Pass(problems=eraser.finish())
    with store.transaction():
        store.sources.outdate()
    Rereading(store, raw, filters).run(again, partial(report, "Reading"), float("inf"))
    known = store.sources.by_path()
    redactor = filters.redactor
    copied = [each for each in transcripts if each.path in known or _may_be_copied(each, home.archive, redactor)]
    taken = ingest.run(copied, partial(report, "Archiving"))
    recovered = Recovery(store, raw, filters).run(partial(report, "Recovering"))
    # A fork that an agent still has may have come before what it was forked from.
    Rereading(store, raw, filters).run(recovered, partial(report, "Reading"), float("inf"))
    # What cannot be read is met by each of them, and told once.
    problems = list(dict.fromkeys(map(_finding, (*again.problems, *taken.problems, *recovered.problems))))
    if store.tombstones.lost:
        lost = f"{many(store.tombstones.lost, 'record')} of deletions cannot be read: deleted content may be back"
        problems.append(Finding("forgotten", lost, "Delete it again."))
    return again.reread, recovered.changed, problems


def _may_be_copied(transcript: Transcript, archive: Path, redactor: Redactor) -> bool:
    """Whether a copy stands where that of a file would; of what a container holds no more is known than whose it is.
    What cannot be read is to be told of.
    """
    if transcript.held_by is not None:
        return (archive / transcript.held_by.agent).is_dir()
    try:
        known = transcript.recognise()
    except OSError:
        return True
    return known is not None and Copy(archive, redactor.redact_name(transcript.archived(known))).exists()


def _index(home: Home, store: Store, model: str | None, report: Reporter) -> Rebuilt:
    indexer = Indexer(store, Generations(home.index), load(model or DEFAULT_MODEL))
    made = indexer.rebuild(partial(report, "Rebuilding"), _PATIENCE)
    store.stages.note("publish")
    return Rebuilt(made.folder.name, made.manifest.entries, made.manifest.vectors)


def _finding(problem: SourceUnreadable) -> Finding:
    return Finding("copies", str(problem), problem.hint or "It was left as it is; everything else was read.")
