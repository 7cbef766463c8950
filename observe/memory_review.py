"""Review of proposed memories: what waits for the user's decision, and the decisions."""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from ..core.conversation import Origin
from ..core.errors import InvalidInput
from ..core.memory import StoredMemory
from .extraction.preferences import PreferenceCandidate, decline, keep, preference_candidates
from .memory import MemoryCore


class Proposal(Struct, frozen=True):
    """Proposal to store a preference (`candidate`), or to make a proven memory a golden rule (`proven`)."""

    id: str
    content: str
    namespace: str
    candidate: PreferenceCandidate | None = None
    proven: StoredMemory | None = None


class MemoryReview:
    """Review of the proposals of one archive. They are computed from all prompts, and again after a change."""

    def __init__(self, memories: MemoryCore) -> None:
        self._memories = memories
        self._proposals, self._seen = list[Proposal](), -1

    def proposals(self) -> list[Proposal]:
        """Return the proposals, preferences first. An unchanged archive is not searched again."""
        if self._seen != (last := self._memories.store.changes.last()):
            self._proposals, self._seen = list(self._computed()), last
        return self._proposals

    def approve(self, public: str, content: str = "") -> StoredMemory:
        """Store a preference, with `content` in place of its wording if given, or make a memory a golden rule.

        Raises:
            InvalidInput: Nothing with this ID is proposed.
        """
        proposal = self._find(public)
        if proposal.candidate is None:
            stored = self._memories.feedback.approve(public)
        elif content and content != proposal.content:
            reworded = replace(proposal.candidate.memory, content=content, origin=Origin.HUMAN)
            stored = keep(self._memories, replace(proposal.candidate, memory=reworded))
            decline(self._memories.store, proposal.candidate)  # Its own wording is not proposed again.
        else:
            stored = keep(self._memories, proposal.candidate)
        self._remove(proposal)
        return stored

    def decline(self, public: str) -> None:
        """Decline a proposal, so that it is never proposed again. Raises the error of `approve`."""
        proposal = self._find(public)
        if proposal.candidate is None:
            self._memories.feedback.decline(public)
        else:
            decline(self._memories.store, proposal.candidate)
        self._remove(proposal)

    def _computed(self) -> Iterator[Proposal]:
        for candidate in preference_candidates(self._memories.store):
            yield Proposal(candidate.id, candidate.memory.content, candidate.memory.namespace, candidate=candidate)
        for stored in self._memories.feedback.approvable():
            yield Proposal(stored.id, stored.memory.content, stored.memory.namespace, proven=stored)

    def _find(self, public: str) -> Proposal:
        proposal = next((proposal for proposal in self.proposals() if proposal.id == public), None)
        if proposal is None:
            raise InvalidInput(f"{public} is not a proposal to review", hint="It may have been decided already.")
        return proposal

    def _remove(self, proposal: Proposal) -> None:
        """Remove a decided proposal. The change that the decision made needs no new search."""
        self._proposals = [other for other in self._proposals if other is not proposal]
        self._seen = self._memories.store.changes.last()
