"""Which memories would the person want? Lasting preferences that they stated, offered with low confidence.

Nothing here runs by itself: much of what people say to an agent holds for an hour ("you may skip the hook"), and a
memory that nobody asked for is worse than one that is missing. A person asks for it, and sees what was kept.
"""

from collections.abc import Iterator

from ..archiver.store import Store, StoredObservation
from ..core import ids
from ..core.conversation import Session
from ..core.memory import HeldMemory, Memory, project_namespace
from ..core.observation import Evidence
from ..core.origin import Origin
from .memory import MemoryCore
from .rules.phrases import anywhere

SOURCE = "conversation"
OBSERVATION = "observation"
"""Where a candidate's metadata names what it was learned from: it is forgotten with it."""
IMPORTANCE = 0.3
"""Below what anybody says explicitly: a candidate never pushes out what was meant to be remembered."""
_LASTING = anywhere(
    r"""
    always | never | from now on | in (?:the )?future | every time | i (?:would |['’]d )?prefer | by default | whenever
    """
)


def candidates(store: Store) -> Iterator[Memory]:
    """Each lasting preference that a person stated, as a memory of its project, first wording first."""
    for stored in store.observations.by_people():
        session = store.sessions.load(stored.session)
        for fact, proof in zip(stored.observation.facts, stored.observation.evidence, strict=False):
            if _LASTING.search(fact):
                yield _memory(fact, proof, stored, session)


def propose(core: MemoryCore, store: Store) -> list[HeldMemory]:
    """Hold the candidates that were never held, forgotten ones included; what was new."""
    known = {(held.memory.namespace, held.memory.content_hash) for held in store.memories.all()}
    kept: list[HeldMemory] = []
    for memory in candidates(store):
        claim = memory.namespace, memory.content_hash
        if claim not in known:
            known.add(claim)
            done = core.remembering.remember(memory)
            kept += [] if done.duplicate else [done.held]
    return kept


def _memory(fact: str, proof: Evidence, stored: StoredObservation, session: Session) -> Memory:
    return Memory(
        fact,
        "preference",
        namespace=project_namespace(session.project),
        project=session.project,
        importance=IMPORTANCE,
        tags=("candidate",),
        metadata={OBSERVATION: ids.show("observation", stored.key), "line": proof.start_line, "quote": proof.quote},
        source=SOURCE,
        origin=Origin.HUMAN,
        session_id=session.native_id,
        valid_from=stored.observation.at,
    )
