"""Deletion of exchanges together with their memories, for `palaver forget`: preview, delete, undo and erase.

The preview lists the memory files in the user's projects, but only an erasure deletes them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import Struct

from ...archiver.copies.raw_copy import RawArchive
from ...archiver.deletion.deletions import DeletionPlan, Deletions
from ...archiver.ingest.ingest import Ingest
from ...archiver.reading.parsing import Exclusion
from ...archiver.store import ARCHIVER, Store
from ...core import ids
from ...core.conversation import now
from ...core.deletion import (
    UNDO_PERIOD,
    DeletedCopy,
    DeletedMemory,
    DeletedSession,
    Deletion,
    DeletionPreview,
    DeletionRequest,
    DeletionResult,
    DeletionSummary,
    RestoreResult,
)
from ...core.errors import InvalidInput, LeaseHeld, MnemonicsUnusable
from ...core.home import MNEMONICS, Home, is_in_project
from ...core.memory import MemoryState, StoredMemory
from ...core.runtime import Closing, Reporter, silent, stage
from ...core.text import readable
from ...search.present.details import SessionNames
from ...search.query.tokenizer import unknown_project
from .. import rules
from ..extraction.observation_writer import summarise
from ..extraction.preferences import EXCHANGE, OBSERVATION
from ..memory.contradictions import archive, reinstate_targets, restore, superseded_by
from ..mnemonics import LEASE, PATIENCE, MnemonicsFolder, digest_of
from . import erasure
from .erasure import check, samples


def files_of(memories: Iterable[StoredMemory]) -> dict[str, str]:
    """Return the content digests of the readable files of these memories, by path."""
    digests: dict[str, str] = {}
    for path in sorted({stored.memory.path for stored in memories} - {""}):
        folder, relative = _folder_of(path)
        try:
            digests[path] = digest_of(folder.read(relative))
        except OSError:
            continue
    return digests


def delete_files(store: Store, memories: Iterable[StoredMemory], files: Mapping[str, str]) -> tuple[str, ...]:
    """Delete files with unchanged digests. Return the remaining files, each with a reason.

    Also delete the record of a deleted file. Keep the record of a remaining file, so that it is not imported again.
    """
    gone = {path for path in {stored.memory.path for stored in memories} - {""} if _was_deleted(store, path)}
    if not files and not gone:
        return ()
    remaining: list[str] = []
    try:
        with store.leases.hold(LEASE, PATIENCE):
            for path, digest in files.items():
                try:
                    folder, relative = _folder_of(path)
                    folder.remove(relative, digest)
                    gone.add(path)
                except MnemonicsUnusable as error:
                    remaining.append(str(error))
            with store.transaction():
                for path in gone:
                    store.mnemonics.drop(path)
    except LeaseHeld as error:
        return tuple(f"{path}: {error}" for path in files)
    return tuple(remaining)


def _was_deleted(store: Store, path: str) -> bool:
    record = store.mnemonics.below(str(Path(path).parent)).get(path)
    return record is not None and record.gone


def _folder_of(path: str) -> tuple[MnemonicsFolder, str]:
    """Return a project's memory folder, and the relative path of a file in it."""
    project, _, relative = path.rpartition(f"/{MNEMONICS}/")
    return MnemonicsFolder(Path(project)), relative


_PATIENCE: Final = 30.0
"""Seconds to wait for another ingest process."""


class _Plan(Struct, frozen=True):
    """Preview and other data that a deletion needs. `files` maps the paths of memory files to content digests."""

    preview: DeletionPreview
    archive: DeletionPlan
    memories: Sequence[StoredMemory]
    files: Mapping[str, str]


class Deleter(Closing):
    """Deleter for one home. Raises `StoreMissing` if the home has no archive."""

    def __init__(self, home: Home, model: str | None = None, exclude: Sequence[str] = ()) -> None:
        """Open the home.

        `exclude` contains folder patterns. `model` is the embedding model, by default the packaged one.
        """
        self._home, self._model, self._exclusion = home, model, Exclusion(exclude)
        self._store = Store.of(home)
        self._raw = RawArchive(home.archive)
        self._deletions = Deletions(self._store, self._raw)

    def preview(self, request: DeletionRequest, report: Reporter = silent) -> DeletionPreview:
        """Return a preview of a request. Raises `InvalidInput` for an unknown or ambiguous name."""
        return self._plan(request, report).preview

    def delete(self, request: DeletionRequest, token: str, report: Reporter = silent) -> DeletionResult:
        """Delete the content that was previewed under a token.

        If the content has changed since the preview, nothing is deleted. The result then has a new preview and no
        deletion ID.

        Raises:
            LeaseHeld: Another process is ingesting.
        """
        with self._store.leases.hold(ARCHIVER, _PATIENCE):
            plan = self._plan(request, report)
            if plan.preview.token != token or plan.preview.is_empty:
                return DeletionResult(plan.preview, None, None)
            if request.erase:
                return self._erase(plan, report)
            number = self._carry_out(plan)
            self._read_again(report)
            self._summarise(plan.archive.sessions)
            return DeletionResult(plan.preview, number, now() + UNDO_PERIOD)

    def undo(self, number: int, report: Reporter = silent) -> RestoreResult:
        """Restore the content of a deletion under the same IDs. Only summaries get new IDs.

        Raises:
            InvalidInput: The deletion does not exist, or was already undone or erased.
        """
        not_restored: list[str] = []
        sessions: list[int] = []

        def restore_memories() -> None:
            for memory in self._store.memories.load(erasure.memories_of(self._store, number)).values():
                if memory.state is MemoryState.ARCHIVED:
                    try:
                        restore(self._store, memory, erasure.context(number), now())
                    except InvalidInput:  # An active memory has the same content.
                        not_restored.append(memory.id)
            sessions.extend(self._store.summaries.due())

        with self._store.leases.hold(ARCHIVER, _PATIENCE):
            self._deletions.undo(number, restore_memories)
            self._read_again(report)
            self._summarise(sessions)
            unobserved = self._store.exchanges.count_unobserved(rules.VERSION)
        return RestoreResult(tuple(not_restored), unobserved)

    def erase(self, number: int, report: Reporter = silent) -> erasure.ErasureResult:
        """Erase the content of a deletion before its expiry. Raises the errors of `undo`."""
        with self._store.leases.hold(ARCHIVER, _PATIENCE):
            erasure.expire(self._store, self._raw, number)
            return erasure.finish(self._home, self._store, self._exclusion, self._model, report)

    def history(self) -> list[Deletion]:
        """Return every deletion, newest first."""
        return self._store.tombstones.all()

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def _plan(self, request: DeletionRequest, report: Reporter) -> _Plan:
        self._check_projects(request.projects)
        plan = self._deletions.plan(request, partial(report, "Comparing"))
        by_exchange = self._store.observations.keys_of_exchanges(list(plan.selection.exchanges))
        observations = [key for keys in by_exchange.values() for key in keys]
        memories = self._memories(request, plan, observations)
        protected = [stored for stored in memories if (stored.protected or stored.memory.pinned) and not request.force]
        memories = [stored for stored in memories if stored not in protected]
        files = files_of(memories)
        states = sorted((stored.key, stored.updated, stored.state) for stored in memories)
        preview = DeletionPreview(
            token=self._deletions.token(plan, states, sorted(files.items()), request.erase, request.force),
            erase=request.erase,
            sessions=tuple(_sessions(plan, SessionNames(self._store))),
            exchanges=len(plan.selection.exchanges),
            observations=len(observations),
            copies=tuple(_copies(plan)),
            memories=tuple(
                DeletedMemory(stored.id, stored.memory.type, stored.memory.title or stored.memory.content)
                for stored in memories
            ),
            protected=tuple(stored.id for stored in protected),
            files=tuple(map(readable, files)),
            repeated_in=len(plan.repeats),
            kept_lines=plan.kept_lines,
            sent=self._store.tombstones.sent(plan.selection.exchanges.keys()),
            unreadable=tuple(map(readable, plan.unreadable)),
        )
        return _Plan(preview, plan, memories, files)

    def _check_projects(self, names: Sequence[str]) -> None:
        sessions = [(session.project, session.cwd) for session in self._store.sessions.all().values()]
        memories = [stored.memory for stored in self._store.memories.all()]
        places = [*sessions, *((memory.namespace.partition(":")[2], memory.project) for memory in memories)]
        for name in names:
            if not any(is_in_project([name], *location) for location in places):
                raise unknown_project(self._store, name)

    def _memories(
        self, request: DeletionRequest, plan: DeletionPlan, observations: Sequence[int]
    ) -> list[StoredMemory]:
        """Return the requested memories. An erasure includes memories that are already deleted."""
        selection = plan.selection
        origins = {plan.selector.sessions[number].native_id for number in selection.sessions}
        origins |= {ids.show("observation", key) for key in observations}
        origins |= {ids.show("exchange", key) for key in selection.exchanges}
        candidates = (
            stored for stored in self._store.memories.all() if request.erase or stored.state is not MemoryState.ARCHIVED
        )
        return [
            stored
            for stored in candidates
            if stored.key in selection.memories or _is_selected(stored, request, origins)
        ]

    def _carry_out(self, plan: _Plan) -> int:
        keys, erase = [stored.key for stored in plan.memories], plan.preview.erase

        def remove_memories(number: int) -> None:
            if erase:
                edges = [edge for key in keys for edge in superseded_by(self._store, key)]
                self._store.memories.delete(keys)
                reinstate_targets(self._store, edges, now())
            else:
                for memory in self._store.memories.load(keys).values():
                    archive(self._store, memory, erasure.context(number), now())

        titles = () if erase else tuple(session.title for session in plan.preview.sessions if session.title)
        extra = DeletionSummary(observations=plan.preview.observations, memories=len(keys), titles=titles)
        return self._deletions.delete(plan.archive, remove_memories, extra)

    def _read_again(self, report: Reporter) -> None:
        """Re-read the copies with deleted or restored lines."""
        Ingest(self._store, self._raw, self._exclusion).run((), partial(report, "Reading"), budget=None)

    def _summarise(self, sessions: Collection[int]) -> None:
        with self._store.transaction():
            summarise(self._store, sorted(sessions))

    def _erase(self, plan: _Plan, report: Reporter) -> DeletionResult:
        with stage(report, "Sampling"):
            texts = samples(self._store, self._raw, plan.archive, plan.memories)
        number = self._carry_out(plan)
        remaining = delete_files(self._store, plan.memories, plan.files)
        finished = erasure.finish(self._home, self._store, self._exclusion, self._model, report)
        done = finished.done
        self._summarise(plan.archive.sessions)
        gone = _ids(plan)
        with stage(report, "Verifying"):
            verified = check(self._home, self._model, texts, gone)
        if done and any(name.startswith(self._home.database.name) for name in verified.found):
            done = erasure.compact(self._store, whole=True)
            verified = check(self._home, self._model, texts, gone)
        verified.uncleaned = sorted(self._store.tombstones.scheduled_erasures())
        verified.problems = [problem.full_message for problem in finished.problems]
        verified.unreadable += [name for name in plan.archive.unreadable if name not in verified.uncleaned]
        verified.compacted = done or bool(verified.uncleaned)
        originals = tuple(readable(str(source.path)) for source in plan.archive.sources if source.path.exists())
        return DeletionResult(plan.preview, number, None, verified, originals, remaining)


def _sessions(plan: DeletionPlan, names: SessionNames) -> list[DeletedSession]:
    counts = dict.fromkeys(sorted(plan.sessions), 0)
    for exchange in plan.selection.exchanges.values():
        counts[exchange.session] = counts.get(exchange.session, 0) + 1
    sessions, deleted = plan.selector.sessions, plan.selection.sessions
    return [
        DeletedSession(session.native_id, session.agent, session.project, names.title(number), count, number in deleted)
        for number, count in counts.items()
        for session in (sessions[number],)
    ]


def _copies(plan: DeletionPlan) -> list[DeletedCopy]:
    copies: list[DeletedCopy] = []
    for source in plan.sources:
        is_whole = source.id in plan.selection.sources
        lines = source.lines if is_whole else len(plan.selection.lines[source.id or 0])
        path = readable(str(source.path))
        copies.append(DeletedCopy(readable(source.archived), path, lines, source.size, is_whole))
    return copies


def _ids(plan: _Plan) -> set[str]:
    """Return the IDs of all erased items."""
    selection, sessions = plan.archive.selection, plan.archive.selector.sessions
    items = {ids.show("exchange", key) for key in selection.exchanges} | {stored.id for stored in plan.memories}
    return items | {sessions[number].native_id for number in selection.sessions}


def _is_selected(stored: StoredMemory, request: DeletionRequest, origins: Collection[str]) -> bool:
    """Return whether a memory was extracted from deleted content or meets all conditions of a request."""
    memory = stored.memory
    if {memory.session_id, *(str(memory.metadata.get(name, "")) for name in (EXCHANGE, OBSERVATION))} & {*origins}:
        return True
    if request.targets or request.agents:
        return False
    if request.projects and not is_in_project(request.projects, memory.namespace.partition(":")[2], memory.project):
        return False
    if request.since is not None and stored.created < request.since:
        return False
    if request.until is not None and stored.created >= request.until:
        return False
    text = "\n".join((memory.title, memory.content, memory.path, *memory.tags, str(dict(memory.metadata))))
    return request.mentions.lower() in text.lower()
