"""Verification of observations.

A fact is kept only if its quote occurs on the transcript line that its evidence names. The origin of an observation is
determined from the speakers of the quotes. Both extractors, the rules and the language model, use this module.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ...core.conversation import Exchange, Kind, Speaker, Turn
from ...core.observation import Evidence, Observation
from ...core.origin import Origin, least

_EXTERNAL_TOOL: Final = re.compile(r"web|fetch(?!_rules)|brows|url|http|mcp|__|github|code_?search", re.IGNORECASE)
"""Pattern for names of tools whose output comes from outside this machine. Agents and MCP servers use such names."""
_EXTERNAL_COMMAND: Final = re.compile(
    r"""(?<![\w./-])(?:(?:curl|wget)\s(?![^\n|;&]*(?:localhost|127\.0\.0\.1|\[::1\]))
    |gh\s+(?:(?:issue|pr)\s+(?:view|list|diff)|api|search)\b)""",
    re.VERBOSE,
)
"""Pattern for shell commands that fetch text from outside this machine."""
_QUOTE_IGNORED: Final = re.compile(r"[\s*_`~#>|\\\"'“”„«»‘’]")
"""Pattern for characters that are ignored in a comparison of quotes: white space, Markdown and quotation marks."""
_ELLIPSIS: Final = re.compile(r"\[?(?:…|\.{3,})\]?")
_PIECE_MIN: Final = 8
"""Minimum length of each piece of a quote with an ellipsis."""


class VerifiedObservations(Struct, frozen=True):
    """Observations with valid evidence. `rejected` counts the facts whose quote was not found."""

    observations: tuple[Observation, ...]
    rejected: int


def verify(exchange: Exchange, extracted: Iterable[Observation]) -> VerifiedObservations:
    """Keep the facts whose quotes occur in the exchange.

    In each observation, `evidence[i]` proves `facts[i]`. Evidence after the last fact proves the narrative. An
    observation without valid evidence is rejected. The origin of an observation is the least trusted origin of its
    quotes.
    """
    lines: dict[int, list[Turn]] = {}
    for turn in exchange.turns:
        lines.setdefault(turn.line, []).append(turn)
    external = includes_external(exchange)
    kept: list[Observation] = []
    rejected = 0
    for observation in extracted:
        valid, lost = _keep_valid(observation, lines)
        rejected += lost
        if valid.evidence:
            kept.append(replace(valid, origin=_origin(valid, lines, external=external)))
    return VerifiedObservations(tuple(dict.fromkeys(kept)), rejected)


def find_quote(quote: str, line: int, texts: Sequence[tuple[int, str]]) -> Evidence | None:
    """Find a quote on the line that the extractor reported, or else on the only line that contains the quote.

    Markdown, quotation marks and white space are ignored. An ellipsis in a quote stands for omitted text of the same
    turn. The evidence is then the longest piece of the quote.

    Args:
        quote: Text to find.
        line: Line reported by the extractor.
        texts: Pairs of a line number and a text of this line.

    Returns:
        The evidence with the words of the source, or None.
    """
    pieces = [_QUOTE_IGNORED.sub("", piece) for piece in _ELLIPSIS.split(quote)]
    pieces = [piece for piece in pieces if piece]
    if not pieces or (len(pieces) > 1 and min(map(len, pieces)) < _PIECE_MIN):
        return None
    patterns = [re.compile(f"{_QUOTE_IGNORED.pattern}*".join(map(re.escape, piece))) for piece in pieces]
    found = [(place, words) for place, text in texts if (words := _longest_match(patterns, text))]
    named = [words for place, words in found if place == line]
    if named:
        return Evidence(line, line, named[0])
    if len({place for place, _ in found}) != 1:
        return None
    place, words = found[0]
    return Evidence(place, place, words)


def _longest_match(patterns: Sequence[re.Pattern[str]], text: str) -> str:
    """Return the longest match if all patterns match in this order, or else an empty string."""
    start, longest = 0, ""
    for pattern in patterns:
        match = pattern.search(text, start)
        if match is None:
            return ""
        start, longest = match.end(), max(longest, match.group(), key=len)
    return longest


def includes_external(exchange: Exchange) -> bool:
    """Return whether a tool call of the exchange fetched text from outside this machine."""
    return any(
        turn.kind is Kind.CALL and (_EXTERNAL_TOOL.search(turn.tool) or _EXTERNAL_COMMAND.search(turn.text))
        for turn in exchange.turns
    )


def _keep_valid(observation: Observation, lines: dict[int, list[Turn]]) -> tuple[Observation, int]:
    """Return the observation with its valid facts and evidence, and the number of rejected facts."""
    valid = [_occurs(evidence, lines) for evidence in observation.evidence]
    if all(valid) and len(valid) >= len(observation.facts):
        return observation, 0 if valid else 1
    facts = tuple(fact for fact, holds in zip(observation.facts, valid, strict=False) if holds)
    evidence = tuple(each for each, holds in zip(observation.evidence, valid, strict=True) if holds)
    lost = valid.count(False) + max(0, len(observation.facts) - len(valid))
    if observation.facts and not facts:
        evidence = ()
    return replace(observation, facts=facts, evidence=evidence), lost


def _occurs(evidence: Evidence, lines: dict[int, list[Turn]]) -> bool:
    """Return whether a turn on the evidence's lines contains the quote verbatim."""
    turns = (turn for line in range(evidence.start_line, evidence.end_line + 1) for turn in lines.get(line, ()))
    return bool(evidence.quote) and any(evidence.quote in turn.text for turn in turns)


def _origin(observation: Observation, lines: dict[int, list[Turn]], *, external: bool) -> Origin:
    """Return the least trusted origin of all quotes.

    If only the user is quoted, the origin is `human`. Otherwise, if the exchange fetched text from outside this machine
    (`external`), the origin is `external`, because quotes may repeat this text.
    """
    speakers = {_speaker(evidence, lines) for evidence in observation.evidence} | {Origin(observation.origin)}
    fetched = [Origin.EXTERNAL] if external and speakers != {Origin.HUMAN} else []
    return least([*speakers, *fetched])


def _speaker(evidence: Evidence, lines: dict[int, list[Turn]]) -> Origin:
    """Return the origin of a quote.

    A line can contain a call and its result. The origin is the tool only if the quote occurs in no other speaker's
    text. Other text that the user did not type, such as a task for a sub-agent, counts as the assistant's.
    """
    speakers = {turn.speaker for turn in lines.get(evidence.start_line, ()) if evidence.quote in turn.text}
    if speakers == {Speaker.HUMAN}:
        return Origin.HUMAN
    return Origin.TOOL if speakers == {Speaker.TOOL} else Origin.ASSISTANT
