"""Proof: only what its quote bears out is kept, and whose word it is, is settled here and not by the model."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...archiver.store import StoredExchange
from ...core.conversation import Kind
from ...core.errors import ReplyInvalid
from ...core.observation import Evidence, Observation
from ...core.origin import Origin, least
from .excerpt import Excerpt, Passage, visible
from .reply import Fact, Learned, Reply, kind_of

_QUOTE_MIN, _QUOTE_MAX = 8, 240
_OBSERVATIONS, _FACTS, _CONCEPTS = 4, 8, 8
_TITLE, _SUBTITLE, _NARRATIVE, _FACT, _CONCEPT = 120, 160, 900, 320, 40
_OUTSIDE = re.compile(r"mcp__|Web(?:Fetch|Search)\b|web[_-]?(?:fetch|search)|browser|fetch\b|http", re.IGNORECASE)
"""Tools whose output comes from outside this machine; the assistant's words after them may be that output's."""


@dataclass(frozen=True, slots=True)
class Proven:
    """What is left of a reply. `refused` counts the facts whose quote stands nowhere in the source."""

    observations: tuple[Observation, ...]
    refused: int


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
    return least(_sources(stored))


def _sources(stored: StoredExchange) -> Iterator[Origin]:
    yield Origin.ASSISTANT
    for turn in stored.exchange.turns:
        if turn.kind is Kind.CALL and _OUTSIDE.match(turn.tool):
            yield Origin.EXTERNAL


def _proof(fact: Fact, passages: Sequence[Passage]) -> Evidence | None:
    """The quote as it stands in the source: on the line named, or on the only other one that has it."""
    words = fact.quote.strip().strip("\"'“”…").split()
    if not fact.text.strip() or not _QUOTE_MIN <= len(" ".join(words)) <= _QUOTE_MAX:
        return None
    pattern = re.compile(r"\s+".join(map(re.escape, words)))
    found = [(passage.line, match.group()) for passage in passages if (match := pattern.search(passage.turn.text))]
    named = [place for place in found if place[0] == fact.line]
    if not named and len({line for line, _ in found}) != 1:
        return None
    line, quote = (named or found)[0]
    return Evidence(line, line, quote)


def _line(text: str, room: int) -> str:
    """A model's words on one line and no longer than they may be."""
    whole = " ".join(visible(text).split())
    return whole if len(whole) <= room else f"{whole[: room - 1].rstrip()}…"
