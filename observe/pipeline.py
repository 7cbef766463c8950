"""The pipeline of an ingest run: ingest, publish, observe, embed, publish and compress, in this order."""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from functools import partial

from ..archiver.copies.compressor import CopyCompressor
from ..archiver.copies.raw import RawArchive
from ..archiver.ingest.ingest import Ingest
from ..archiver.ingest.parser_pool import ParserPool
from ..archiver.ingest.transcripts import Transcript
from ..archiver.reading.exclusion import Exclusion
from ..archiver.store import ARCHIVER, LEARNER, Store
from ..archiver.store.watermark import LOSS_HINT
from ..core.closing import Closing
from ..core.errors import LeaseHeld, PalaverError, SourceUnreadable
from ..core.home import Home
from ..core.progress import Reporter, silent
from ..core.report import Report
from ..search.index.draft import Draft
from ..search.index.generation import Generations
from ..search.index.indexer import Indexer
from ..search.model.embedder import DEFAULT_MODEL, load
from .deletion.erasure import erase_expired, finish, is_unfinished


class Pipeline(Closing):
    """Ingest pipeline of one home. `run` raises `LeaseHeld` if another process is ingesting."""

    def __init__(
        self,
        home: Home,
        model: str | None = None,
        exclude: Sequence[str] = (),
        *,
        pool: ParserPool | None = None,
    ) -> None:
        """Open the archive of this home, or create an archive.

        `model` is the embedding model, by default the packaged model. Folders that match a pattern in `exclude` are
        omitted. `pool` parses files and may already be running.

        Raises:
            ConfigInvalid: A pattern in `exclude` is invalid.
        """
        exclusion = Exclusion(exclude)
        self._home, self._model, self._exclusion = home, model, exclusion
        embedder = load(model or DEFAULT_MODEL)
        home.make()
        with ExitStack() as opened:
            self._store = opened.enter_context(Store.create(home.database))
            raw = RawArchive(home.archive)
            self._ingest = Ingest(self._store, raw, exclusion, pool=pool)
            self._compressor = CopyCompressor(self._store, raw)
            self._generations = Generations(home.index)
            self._indexer = Indexer(self._store, self._generations, embedder)
            self._close = opened.pop_all().close

    def run(
        self,
        transcripts: Iterable[Transcript],
        report: Reporter = silent,
        patience: float = 0.0,
        searchable: Callable[[Report], None] = lambda _: None,
    ) -> Report:
        """Ingest changes in these transcripts, and finish the work of an interrupted run.

        Waits up to `patience` seconds for another ingest process. If another process is already observing and
        embedding, that process also handles these changes. `searchable` is called when the text is indexed, before
        anything is observed or embedded.
        """
        start, result = time.monotonic(), Report()
        archiving, learning = (self._store.leases.reporter(name, report) for name in (ARCHIVER, LEARNER))
        with self._indexer.draft() as draft:
            with self._store.leases.hold(ARCHIVER, patience):
                problems = [*self._losses(), *self._finish_erasing(archiving)]
                result.ingested = self._ingest.run(transcripts, partial(archiving, "Archiving"), stored=draft.follow)
                reported = {each.path for each in result.ingested.problems}
                result.ingested.problems[:0] = [each for each in problems if each.path not in reported]
                self._store.stages.note("archive", result.ingested.problems)
            outdated = self._generations.is_outdated
            self._publish(draft)
            result.reindexed = outdated and not self._generations.is_outdated
        result.searchable = time.monotonic() - start
        searchable(result)
        try:
            with self._store.leases.hold(LEARNER):
                self._learn(result, learning)
        except LeaseHeld:
            result.elsewhere = True
        with suppress(LeaseHeld), self._store.leases.hold(ARCHIVER, patience):
            result.compression = self._compressor.run(partial(archiving, "Compressing"))
            self._store.stages.note("compress", result.compression.problems)
        self._store.back_up()
        result.complete = time.monotonic() - start
        return result

    def _losses(self) -> list[SourceUnreadable]:
        """Return an error for each kind of lost data.

        Data is lost if tombstones were in a damaged file, or if the database lacks changes that were acknowledged.
        """
        problems: list[SourceUnreadable] = []
        if self._store.tombstones.lost:
            hint = "Then run `palaver fsck --repair`. Until then, `palaver doctor` reports the loss."
            problems.append(SourceUnreadable(self._home.archive, self._store.tombstones.damage, hint=hint))
        if loss := self._store.watermark.loss:
            problems.append(SourceUnreadable(self._home.database, loss, hint=LOSS_HINT))
        return problems

    def _finish_erasing(self, report: Reporter) -> list[SourceUnreadable]:
        """Finish interrupted erasures, and erase deletions that can no longer be undone.

        Problems are returned instead of raised, so that new transcripts are still ingested.
        """
        if not self._store.tombstones.has_deletions():
            return []
        problems: list[SourceUnreadable] = []
        try:
            erase_expired(self._home, self._store)
            if is_unfinished(self._store):
                problems += finish(self._home, self._store, self._exclusion, self._model, report).problems
        except (PalaverError, OSError) as error:
            hint = "The next run tries again. `palaver fsck` shows what is damaged."
            reason = f"deleted content could not be erased: {error}"
            problems.append(SourceUnreadable(self._home.archive, reason, hint=hint))
        return problems

    def _learn(self, result: Report, report: Reporter) -> None:
        from .learn import learn  # Import late, because loading all rules would delay text search.

        done = learn(self._home, self._store, self._indexer, report)
        result.observed, result.embedded, result.model = done.observed, done.embedded, done.model
        self._publish()

    def _publish(self, draft: Draft | None = None) -> None:
        self._indexer.publish(draft)
        self._store.stages.note("publish")

    def close(self) -> None:
        """Close the store."""
        self._close()
