"""Proof: only what its quote bears out is kept, and whose word it is, is settled here and not by the model."""

from collections.abc import Sequence

from ...archiver.store import StoredExchange
from ...core.observation import Evidence, Observation
from ...core.origin import Origin
from ..proof import Proven, find, heard_outside
from .errors import ReplyInvalid
from .excerpt import Excerpt, Passage, visible
from .reply import Fact, Learned, Reply, kind_of

_QUOTE_MIN, _QUOTE_MAX = 8, 240
_OBSERVATIONS, _FACTS, _CONCEPTS = 4, 8, 8
_TITLE, _SUBTITLE, _NARRATIVE, _FACT, _CONCEPT = 120, 160, 900, 320, 40


def prove(reply: Reply, stored: StoredExchange, shown: Excerpt, extractor: str, raw: str) -> Proven:
    """Keep the facts that are proved, and the observations that have any; raises `ReplyInvalid` when none is left."""
    origin = _origin(stored)
    kept: list[Observation] = []
    refused = 0
    for learned in reply.observations[:_OBSERVATIONS]:
        proofs = [(fact, _proof(fact, shown.passages)) for fact in learned.facts[:_FACTS]]
        held = [(fact, proof) for fact, proof in proofs if proof is not None]
        refused += len(proofs) - len(held)
        if held and learned.title.strip():
            kept.append(_observation(learned, held, stored, origin, extractor))
    if reply.observations and not kept:
        raise ReplyInvalid(f"none of its {refused} facts stands in the conversation", raw)
    return Proven(tuple(dict.fromkeys(kept)), refused)


def _observation(
    learned: Learned, held: Sequence[tuple[Fact, Evidence]], stored: StoredExchange, origin: Origin, extractor: str
) -> Observation:
    return Observation(
        type=kind_of(learned),
        title=_line(learned.title, _TITLE),
        subtitle=_line(learned.subtitle, _SUBTITLE),
        narrative=_line(learned.narrative, _NARRATIVE),
        facts=tuple(_line(fact.text, _FACT) for fact, _ in held),
        concepts=tuple(dict.fromkeys(_line(word.lower(), _CONCEPT) for word in learned.concepts[:_CONCEPTS])),
        files_read=stored.exchange.reads,
        files_modified=stored.exchange.writes,
        evidence=tuple(proof for _, proof in held),
        at=stored.exchange.ended or stored.exchange.started,
        origin=origin,
        extractor=extractor,
    )


def _origin(stored: StoredExchange) -> Origin:
    """Never above `assistant`: the words are a model's, whatever they quote. Below it where the outside had a say."""
    return Origin.EXTERNAL if heard_outside(stored.exchange) else Origin.ASSISTANT


def _proof(fact: Fact, passages: Sequence[Passage]) -> Evidence | None:
    """The quote as it stands in the source: on the line named, or on the only other one that has it."""
    words = fact.quote.strip().strip("\"'“”…").split()
    if not fact.text.strip() or not _QUOTE_MIN <= len(" ".join(words)) <= _QUOTE_MAX:
        return None
    return find(" ".join(words), fact.line, [(passage.line, passage.turn.text) for passage in passages])


def _line(text: str, room: int) -> str:
    """A model's words on one line and no longer than they may be."""
    whole = " ".join(visible(text).split())
    return whole if len(whole) <= room else f"{whole[: room - 1].rstrip()}…"
