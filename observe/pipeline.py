"""Pipeline of an ingest run, from a line of a transcript to entries that a search finds: `Pipeline.run`.

After an ingest, `learn` reads queued documents, redacts memories, counts the tokens of turns, stores the token usage of
replies, extracts observations, and embeds texts. An ingest run and the index worker both call `learn`, and index its
last results. `learn` itself indexes when searches would slow down.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from functools import partial
from typing import Final

from msgspec import Struct

from ..archiver.copies.raw_copy import RawArchive
from ..archiver.copies.verification import CopyCompressor
from ..archiver.documents.document_ingest import DocumentIngest
from ..archiver.ingest.ingest import Ingest
from ..archiver.ingest.parser_pool import ParserPool
from ..archiver.ingest.transcripts import Transcript
from ..archiver.reading.parsing import Exclusion
from ..archiver.redaction import VERSION, MemoryRedactor, Redactor
from ..archiver.store import ARCHIVER, LEARNER, Entity, Store, StoredExchange
from ..archiver.store.backups import LOSS_HINT
from ..archiver.store.exchange_table import FileState
from ..core.conversation import Session, now
from ..core.errors import LeaseHeld, ModelUnavailable, PalaverError, SourceUnreadable
from ..core.home import Home
from ..core.memory import MemoryFilter
from ..core.reports import IngestReport, Report
from ..core.runtime import Closing, Progress, Reporter, never, silent
from ..search.index.generation import Draft, Generations
from ..search.index.indexer import Indexer
from ..search.model.embedder import DEFAULT_MODEL, load
from . import rules
from .deletion.erasure import erase_expired, finish, is_unfinished
from .extraction.observation_writer import file_states, is_live, keep, summarise
from .memory.feedback import Feedback
from .memory.memory_core import redact_stored_memories
from .rules import rule_extractor
from .rules.exchange_analysis import VerifiedObservations
from .usage_reader import read_usage

_BATCH = 100


def observe_pending(
    store: Store,
    progress: Progress,
    should_stop: Callable[[], bool] = never,
    publish: Callable[[], object] = lambda: None,
) -> int:
    """Observe exchanges that are new, have grown, or were observed by other rules. Return their number.

    `publish` is called after each batch. Until the index contains the changes, every search indexes them in memory.

    The function stops early when `should_stop` returns true. If another process changes an exchange during the run, the
    exchange is observed again. A session is also summarised again if observations were deleted from it or moved to it
    from another session.
    """
    done, total = 0, store.exchanges.count_unobserved(rules.VERSION)
    sessions: dict[int, Session] = {}
    while not should_stop():
        before = store.changes.last()
        batch = store.exchanges.unobserved(rules.VERSION, _BATCH)
        if not batch:
            break
        progress(done, total)
        learned = [(stored, _observe(store, stored, sessions)) for stored in batch]
        states = _file_states(store, batch, sessions)
        with store.transaction():
            changed = set(store.changes.since(before, [Entity.ITEM]))
            seen = [(stored, proven) for stored, proven in learned if stored.key not in changed]
            for stored, proven in seen:
                session = sessions[stored.session]
                keep(store, stored, session, proven.observations, rules.VERSION, proven.rejected)
                if stored.key in states:
                    store.file_states.replace(stored.key, states[stored.key])
            summarise(store, dict.fromkeys(stored.session for stored, _ in seen))
            done += len(seen)
        publish()
    if due := store.summaries.due():
        with store.transaction():
            summarise(store, due)
    progress(done, total)
    return done


def _observe(store: Store, stored: StoredExchange, sessions: dict[int, Session]) -> VerifiedObservations:
    if stored.session not in sessions:
        sessions[stored.session] = store.sessions.load(stored.session)
    return rule_extractor.observe(stored.exchange, sessions[stored.session])


def _file_states(
    store: Store, batch: Sequence[StoredExchange], sessions: Mapping[int, Session]
) -> dict[int, list[FileState]]:
    """Return the file hashes of each exchange that ended within the last five minutes, by the key of the exchange."""
    at = now()
    live = [stored for stored in batch if is_live(stored.exchange, at)]
    key = store.home.key() if live else b""
    return {stored.key: file_states(stored.exchange, sessions[stored.session], key) for stored in live}


_COSTS_BATCH: Final = 50
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
    if store.documents.count_queued():
        DocumentIngest(store, redactor).index_queued(partial(report, "Reading"), should_stop)
    if store.memories.to_redact(VERSION, 1):
        redact_stored_memories(store, redactor, partial(report, "Redacting"))
    if store.memories.select(MemoryFilter(), limit=1):
        Feedback(store, MemoryRedactor(redactor), now).decay()
    while not should_stop() and (uncounted := store.exchanges.without_costs(_COSTS_BATCH)):
        with store.transaction():
            store.exchanges.store_costs(uncounted)
    read_usage(home, store, partial(report, "Counting"), should_stop)
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

        `_archive` reads, parses and stores each line, and `_index` makes it searchable as text. `_extract` learns
        observations from it and embeds both, and `_index` makes them searchable.

        Waits up to `patience` seconds for another ingest process. If another process is already observing and
        embedding, that process also handles these changes. `searchable` is called when the text is indexed, before
        anything is observed or embedded.
        """
        start, result = time.monotonic(), Report()
        archiving, learning = (self._store.leases.reporter(name, report) for name in (ARCHIVER, LEARNER))
        with self._indexer.draft() as draft:
            with self._store.leases.hold(ARCHIVER, patience):
                result.ingested = self._archive(transcripts, draft, archiving)
            outdated = self._generations.is_outdated
            self._index(draft)
            result.reindexed = outdated and not self._generations.is_outdated
        result.searchable = time.monotonic() - start
        searchable(result)
        try:
            with self._store.leases.hold(LEARNER):
                self._extract(result, learning)
                self._index()
        except LeaseHeld:
            result.elsewhere = True
        with suppress(LeaseHeld), self._store.leases.hold(ARCHIVER, patience):
            result.compression = self._compressor.run(partial(archiving, "Compressing"))
            self._store.stages.note("compress", result.compression.problems)
        self._store.back_up()
        result.complete = time.monotonic() - start
        return result

    def _archive(self, transcripts: Iterable[Transcript], draft: Draft, report: Reporter) -> IngestReport:
        """Read, parse and store the changes in these transcripts. Index them in a draft of the first index."""
        problems = [*self._losses(), *self._finish_erasing(report)]
        ingest = self._ingest
        with closing(ingest.read(transcripts, partial(report, "Archiving"))) as copies:
            for copy in copies:
                parsed = ingest.parse(copy)
                if ingest.store(parsed):
                    draft.add_changes()
        reported = {problem.path for problem in ingest.report.problems}
        ingest.report.problems[:0] = [problem for problem in problems if problem.path not in reported]
        self._store.stages.note("archive", ingest.report.problems)
        return ingest.report

    def _extract(self, result: Report, report: Reporter) -> None:
        """Extract observations from the stored exchanges, and embed both."""
        learned = learn(self._home, self._store, self._indexer, report)
        result.observed, result.embedded, result.model = learned.observed, learned.embedded, learned.model

    def _index(self, draft: Draft | None = None) -> None:
        """Publish an index with all stored changes. `draft` contains those of the first run."""
        self._indexer.publish(draft)
        self._store.stages.note("publish")

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

    def close(self) -> None:
        """Close the store."""
        self._close()
