"""Proof: a fact is kept only while its quote stands where it says, and whose word it is, is settled here.

Both extractors, the rules and the language model, go through this one gate.
"""

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ..core.conversation import Exchange, Kind, Speaker, Turn
from ..core.observation import Evidence, Observation
from ..core.origin import Origin, least

_OUTSIDE = re.compile(r"web|fetch(?!_rules)|brows|url|http|mcp|__|github|code_?search", re.IGNORECASE)
"""Names of tools whose output comes from outside this machine; the assistant's words after them may be that output's.

Each agent has names of its own, and servers' tools have any, so a part of the name is enough.
"""
_FETCHED = re.compile(
    r"""(?<![\w./-])(?:(?:curl|wget)\s(?![^\n|;&]*(?:localhost|127\.0\.0\.1|\[::1\]))
    |gh\s+(?:(?:issue|pr)\s+(?:view|list|diff)|api|search)\b)""",
    re.VERBOSE,
)
"""Commands that bring in what others wrote."""


class Proven(Struct, frozen=True):
    """What is left of what an extractor learned. `refused` counts the facts whose quote stands nowhere."""

    observations: tuple[Observation, ...]
    refused: int


def prove(exchange: Exchange, learned: Iterable[Observation]) -> Proven:
    """Keep what the lines of an exchange bear out. `evidence` proves `facts` one for one, then the narrative.

    An observation of which no proof is left is refused as a whole. Origins are lowered to those of the lines.
    """
    lines: dict[int, list[Turn]] = {}
    for turn in exchange.turns:
        lines.setdefault(turn.line, []).append(turn)
    outside = heard_outside(exchange)
    kept: list[Observation] = []
    refused = 0
    for observation in learned:
        held, lost = _held(observation, lines)
        refused += lost
        if held.evidence:
            kept.append(replace(held, origin=_origin(held, lines, outside=outside)))
    return Proven(tuple(dict.fromkeys(kept)), refused)


def find(quote: str, line: int, told: Sequence[tuple[int, str]]) -> Evidence | None:
    """A quote as it stands in the source, whatever its blanks: on the line named, or on the only other one with it."""
    pattern = re.compile(r"\s+".join(map(re.escape, quote.split())))
    found = [(place, match.group()) for place, text in told if (match := pattern.search(text))]
    named = [place for place in found if place[0] == line]
    if not named and len({place for place, _ in found}) != 1:
        return None
    place, words = (named or found)[0]
    return Evidence(place, place, words)


def heard_outside(exchange: Exchange) -> bool:
    """Whether the web, another server or another person's text came into an exchange through a tool."""
    return any(
        turn.kind is Kind.CALL and (_OUTSIDE.search(turn.tool) or _FETCHED.search(turn.text)) for turn in exchange.turns
    )


def _held(observation: Observation, lines: dict[int, list[Turn]]) -> tuple[Observation, int]:
    stands = [_stands(proof, lines) for proof in observation.evidence]
    if all(stands) and len(stands) >= len(observation.facts):
        return observation, 0 if stands else 1
    facts = tuple(fact for fact, holds in zip(observation.facts, stands, strict=False) if holds)
    evidence = tuple(proof for proof, holds in zip(observation.evidence, stands, strict=True) if holds)
    lost = stands.count(False) + max(0, len(observation.facts) - len(stands))
    if observation.facts and not facts:
        evidence = ()
    return replace(observation, facts=facts, evidence=evidence), lost


def _stands(proof: Evidence, lines: dict[int, list[Turn]]) -> bool:
    """Whether the quote is there, word for word, in a turn of its lines."""
    told = (turn for line in range(proof.start_line, proof.end_line + 1) for turn in lines.get(line, ()))
    return bool(proof.quote) and any(proof.quote in turn.text for turn in told)


def _origin(observation: Observation, lines: dict[int, list[Turn]], *, outside: bool) -> Origin:
    """What a person typed stays theirs; what an assistant says after the outside had a say may be the outside's."""
    speakers = {_speaker(proof, lines) for proof in observation.evidence} | {Origin(observation.origin)}
    heard = [Origin.EXTERNAL] if outside and speakers != {Origin.HUMAN} else []
    return least([*speakers, *heard])


def _speaker(proof: Evidence, lines: dict[int, list[Turn]]) -> Origin:
    """Whose word a quote is. A line may hold a call with its result: the quote is a tool's when nobody else says it.

    A task for a sub-agent is another assistant's word; so is everything else that was not typed.
    """
    said = {turn.speaker for turn in lines.get(proof.start_line, ()) if proof.quote in turn.text}
    if said == {Speaker.HUMAN}:
        return Origin.HUMAN
    return Origin.TOOL if said == {Speaker.TOOL} else Origin.ASSISTANT
