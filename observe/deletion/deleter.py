"""Deletions as a person asks for it: first a preview, then exactly that; what was said, learned and held together."""

from collections import Counter
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import Struct

from ...archiver.copies.raw import RawArchive
from ...archiver.deletion.deletion_plan import DeletionPlan
from ...archiver.deletion.deletions import KEPT, Deletions
from ...archiver.deletion.selection import Selection, Selector, in_project
from ...archiver.ingest.ingest import Ingest
from ...archiver.reading.exclusion import Exclusion
from ...archiver.store import ARCHIVER, Source, State, Store
from ...core import ids
from ...core.amount import many
from ...core.clock import now
from ...core.closing import Closing
from ...core.deletion import (
    DeletedCopy,
    DeletedSession,
    DeletionPreview,
    DeletionRequest,
    DeletionResult,
    DeletionSummary,
    PastDeletion,
    RestoreResult,
)
from ...core.errors import InvalidInput
from ...core.home import Home
from ...core.memory import MemoryState, StoredMemory
from ...core.progress import Reporter, silent, stage
from .. import rules
from ..extraction.observation_writer import summarise
from ..extraction.preferences import OBSERVATION
from ..memory.supersession import archive, reinstate_targets, restore, superseded_by
from . import erasure
from .memory_files import delete, files_of
from .samples import samples

_PATIENCE: Final = 30.0
"""Seconds to wait for another process that archives."""
_SOME: Final = 5
"""How many projects are named to who names none of them."""


class _Planned(Struct, frozen=True):
    """What is shown, and what is needed to do it."""

    preview: DeletionPreview
    plan: DeletionPlan


class Deleter(Closing):
    """Forgets in one home. Raises `StoreMissing` where there is no archive."""

    def __init__(self, home: Home, model: str | None = None, exclude: Sequence[str] = ()) -> None:
        """`model` is the embedding model, the packaged one by default; `exclude` are patterns of folders."""
        self._home, self._model, self._exclusion = home, model, Exclusion(exclude)
        self._store = Store.open(home.database)
        self._raw = RawArchive(home.archive)
        self._forgetting = Deletions(self._store, self._raw)

    def preview(self, wanted: DeletionRequest, report: Reporter = silent) -> DeletionPreview:
        """Exactly what would go; raises `InvalidInput` for a name of nothing. Changes nothing."""
        return self._plan(wanted, report).preview

    def forget(self, wanted: DeletionRequest, token: str, report: Reporter = silent) -> DeletionResult:
        """Forget what was previewed under this token.

        Where it is not the same any more nothing is done, and the outcome holds the new preview and no number. Raises
        `LeaseHeld` while another process archives.
        """
        with self._store.leases.hold(ARCHIVER, _PATIENCE):
            planned = self._plan(wanted, report)
            preview = planned.preview
            if preview.token != token or preview.empty:
                return DeletionResult(preview, None, None)
            if not wanted.erase:
                number = self._carry_out(planned, wanted)
                self._reread(report)
                self._retell(planned.plan.sessions)
                return DeletionResult(preview, number, now() + KEPT)
            with stage(report, "Sampling"):
                texts = samples(self._store, self._raw, planned.plan, preview.memories)
            number = self._carry_out(planned, wanted)
            return self._erased(planned, number, texts, report)

    def undo(self, number: int, report: Reporter = silent) -> RestoreResult:
        """Restore what was forgotten, with every ID, and searchable at once.

        Raises `InvalidInput` when it was erased, undone before, or never existed.
        """
        left: list[StoredMemory] = []
        sessions: list[int] = []

        def also() -> None:
            for held in self._store.memories.load(erasure.put_away(self._store, number)).values():
                if held.state is MemoryState.ARCHIVED:
                    try:
                        restore(self._store, held, erasure.context(number), now())
                    except InvalidInput:  # an active memory says the same
                        left.append(held)
            sessions.extend(self._store.summaries.due())
            if any(each.id > number for each in self._store.tombstones.all()):
                summarise(self._store, sessions)  # a restored summary may quote what was forgotten later

        with self._store.leases.hold(ARCHIVER, _PATIENCE):
            self._forgetting.undo(number, also)
            self._reread(report)
            self._retell(sessions)
            unobserved = self._store.exchanges.count_unobserved(rules.VERSION)
        return RestoreResult(tuple(left), unobserved)

    def for_good(self, number: int, report: Reporter = silent) -> erasure.Finished:
        """Erase what was forgotten, and can still be had back.

        Raises `InvalidInput` when there is no such forgetting.
        """
        with self._store.leases.hold(ARCHIVER, _PATIENCE):
            erasure.expire(self._store, self._raw, number)
            return erasure.finish(self._home, self._store, self._exclusion, self._model, report)

    def forgotten(self) -> list[PastDeletion]:
        """Every forgetting, newest first."""
        return [
            PastDeletion(
                each.id,
                each.at,
                each.at + KEPT if each.state is State.KEPT else None,
                each.marks,
                each.state is not State.ERASING,
                each.about,
            )
            for each in self._store.tombstones.all()
        ]

    def _plan(self, wanted: DeletionRequest, report: Reporter) -> _Planned:
        selector = Selector(self._store, self._raw, wanted)
        self._check_projects(wanted.projects, selector)
        selected = selector.select()
        plan = self._forgetting.plan(selector, selected, partial(report, "Comparing"))
        memories = self._memories(wanted, selector, selected)
        protected = [held for held in memories if (held.protected or held.memory.pinned) and not wanted.force]
        unprotected = [held for held in memories if held not in protected]
        return _Planned(self._preview(wanted, plan, unprotected, protected), plan)

    def _check_projects(self, names: Sequence[str], selector: Selector) -> None:
        sessions = [(each.project, each.cwd) for each in selector.sessions.values()]
        held = [(each.memory.namespace.partition(":")[2], each.memory.project) for each in self._store.memories.all()]
        for name in names:
            if not any(in_project([name], *place) for place in (*sessions, *held)):
                projects = Counter(project for project, _ in sessions if project)
                known = ", ".join(project for project, _ in projects.most_common(_SOME))
                known += f" and {many(len(projects) - _SOME, 'other')}" if len(projects) > _SOME else ""
                hint = f"Archived are: {known}. Give the name, or the folder it lies in." if known else ""
                raise InvalidInput(f"Nothing of a project called {name} is archived or held", hint=hint)

    def _preview(
        self,
        wanted: DeletionRequest,
        plan: DeletionPlan,
        going: list[StoredMemory],
        protected: list[StoredMemory],
    ) -> DeletionPreview:
        keys = list(plan.selected.exchanges)
        known = self._store.observations.keys_of_exchanges(keys)
        held = sorted((each.key, each.updated, each.state) for each in going)
        files = files_of(going)
        return DeletionPreview(
            token=self._forgetting.token(plan, held, files, wanted.erase, wanted.force),
            sessions=tuple(self._sessions(plan)),
            exchanges=len(keys),
            observations=sum(map(len, known.values())),
            copies=tuple(self._copy(source, plan) for source in plan.sources),
            memories=tuple(going),
            protected=tuple(protected),
            shared=len(plan.shared),
            sent=self._store.tombstones.sent(keys),
            erase=wanted.erase,
            widened=tuple(plan.selected.widened),
            files=files,
            unread=plan.unread,
            kept=plan.kept,
        )

    def _sessions(self, plan: DeletionPlan) -> list[DeletedSession]:
        counts = dict.fromkeys(sorted(plan.selected.sessions), 0)
        for each in plan.selected.exchanges.values():
            counts[each.session] = counts.get(each.session, 0) + 1
        for source in plan.sources:
            if source.session is not None:
                counts.setdefault(source.session, 0)
        sessions = plan.selector.sessions
        return [
            DeletedSession(
                sessions[number].native_id,
                sessions[number].agent,
                sessions[number].project,
                sessions[number].title,
                count,
                number in plan.selected.sessions,
            )
            for number, count in counts.items()
        ]

    def _copy(self, source: Source, plan: DeletionPlan) -> DeletedCopy:
        whole = source.id in plan.selected.sources
        lines = source.lines if whole else len(plan.selected.lines[source.id or 0])
        return DeletedCopy(source.archived, source.path, lines, source.size, whole)

    def _memories(self, wanted: DeletionRequest, selector: Selector, selected: Selection) -> list[StoredMemory]:
        """The memories that are meant; those that were put away before only where they are to be erased."""
        learned = self._store.observations.keys_of_exchanges(list(selected.exchanges)).values()
        made_of = {selector.sessions[number].native_id for number in selected.sessions}
        made_of |= {ids.show("observation", key) for keys in learned for key in keys}
        held = self._store.memories.all()
        found = [each for each in held if each.key in selected.memories or _is_meant(each, wanted, made_of)]
        return found if wanted.erase else [each for each in found if each.state is not MemoryState.ARCHIVED]

    def _carry_out(self, planned: _Planned, wanted: DeletionRequest) -> int:
        memories = [held.key for held in planned.preview.memories]

        def also(number: int) -> None:
            if wanted.erase:
                edges = [edge for key in memories for edge in superseded_by(self._store, key)]
                self._store.memories.erase(memories)
                reinstate_targets(self._store, edges, now())
            else:
                for held in self._store.memories.load(memories).values():
                    archive(self._store, held, erasure.context(number), now())

        besides = DeletionSummary(observations=planned.preview.observations, memories=len(memories))
        return self._forgetting.forget(planned.plan, also, besides)

    def _reread(self, report: Reporter) -> None:
        """Read again the copies that lost or regained lines; what only newer rules outdate waits for the next pass."""
        ingest = Ingest(self._store, self._raw, self._exclusion)
        ingest.run((), partial(report, "Reading"), budget=None)

    def _retell(self, sessions: Collection[int]) -> None:
        with self._store.transaction():
            summarise(self._store, sorted(sessions))

    def _erased(self, planned: _Planned, number: int, texts: list[str], report: Reporter) -> DeletionResult:
        left = delete(self._store, planned.preview.memories, planned.preview.files)
        finished = erasure.finish(self._home, self._store, self._exclusion, self._model, report)
        done = finished.done
        self._retell(planned.plan.sessions)
        gone = _ids(planned)
        with stage(report, "Verifying"):
            proof = erasure.prove(self._home, self._model, texts, gone)
        if done and any(name.startswith(self._home.database.name) for name in proof.found):
            done = erasure.compact(self._store, whole=True)
            proof = erasure.prove(self._home, self._model, texts, gone)
        proof.uncleaned = sorted(self._store.tombstones.intended())
        proof.problems = [each.told for each in finished.problems]
        proof.unread += [name for name in planned.plan.unread if name not in proof.uncleaned]
        proof.compacted = done or bool(proof.uncleaned)
        return DeletionResult(planned.preview, number, None, proof, _outside(planned.preview), left)

    def close(self) -> None:
        """Let go of the store."""
        self._store.close()


def _outside(preview: DeletionPreview) -> tuple[Path, ...]:
    return tuple(copy.path for copy in preview.copies if copy.path.exists())


def _ids(planned: _Planned) -> Collection[str]:
    selected, sessions = planned.plan.selected, planned.plan.selector.sessions
    items = {ids.show("exchange", key) for key in selected.exchanges} | {held.id for held in planned.preview.memories}
    return items | {sessions[number].native_id for number in selected.sessions}


def _is_meant(held: StoredMemory, wanted: DeletionRequest, made_of: Collection[str]) -> bool:
    """Whether a memory was stored in a session or made of an observation that goes, or satisfies all that is asked."""
    memory = held.memory
    if {memory.session_id, str(memory.metadata.get(OBSERVATION, ""))} & {*made_of}:
        return True
    if wanted.targets or wanted.agents:
        return False
    if wanted.projects and not in_project(wanted.projects, memory.namespace.partition(":")[2], memory.project):
        return False
    if wanted.since is not None and held.created < wanted.since:
        return False
    if wanted.until is not None and held.created >= wanted.until:
        return False
    said = "\n".join((memory.title, memory.content, memory.path, *memory.tags, str(dict(memory.metadata))))
    return wanted.mentions.lower() in said.lower()
