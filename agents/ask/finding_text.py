"""Composition of a finding: the title of an entry and its most relevant sentences, with their lines."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from ...core.cited_answer import CitedSource, Finding
from ...core.observation import SUMMARY, ObservationType
from ...core.results import Detail
from ...core.sentences import truncate
from .claims import Claim, lines_of
from .finding_kinds import kind_of
from .relevance import Relevance, repeats


class FindingExtent(NamedTuple):
    """Limits of a finding: maximum characters, maximum number of claims, and minimum gain of each claim."""

    characters: int
    claims: int
    gain: float


BEST, OTHER = FindingExtent(420, 4, 0), FindingExtent(200, 1, 0.04)
_PASSAGE: Final = 140
"""Maximum characters of a passage, of which it is uncertain whether it answers the question."""
_ASKED: Final = 140
"""Maximum characters of a quoted prompt, which is the title of an exchange without observations."""
_ANSWER: Final = "? → "
"""Separator between an agent's question and the user's answer in the facts of a decision."""
_REQUEST: Final = 0.3
"""Factor for the gain of a sentence that repeats a prompt."""
_REASON: Final = re.compile(
    r"\b(?:root cause|the (?:fix|cause|problem|reason|bug) (?:is|was)|turns? out)\b", re.IGNORECASE
)
_REASON_GAIN: Final = 0.1
"""Additional gain of a sentence that states a cause or a fix."""
_ROOM: Final = 80
"""Minimum characters that must be left to add a shortened claim."""


def finding_of(
    detail: Detail, claims: Sequence[Claim], relevance: Relevance, labels: Mapping[str, str], extent: FindingExtent
) -> Finding:
    """Return the finding of an entry: its title and the claims with the highest gain, in their original order."""
    title = _title(detail, claims)
    chosen = _chosen(title, claims, relevance, extent)
    if not (title or chosen):
        title = detail.observation.title
    texts = [*filter(None, [title]), *(claim.text for claim in chosen)]
    text = " ".join(map(_sentence, texts))
    places = [lines_of(title, detail.observation.evidence, detail), *(claim[1:] for claim in chosen)]
    kind = kind_of(detail, text)
    return Finding(kind, text, tuple(_sources(detail, labels, places)), detail.observation.at)


def passage_of(detail: Detail, claims: Sequence[Claim], relevance: Relevance, labels: Mapping[str, str]) -> Finding:
    """Return the most relevant sentence of an entry, or its title if no sentence is more relevant, with its lines."""
    title = _title(detail, claims) or detail.observation.title
    texts = [Claim(title, *lines_of(title, detail.observation.evidence, detail)), *claims]
    best = max(texts, key=lambda claim: relevance.share(claim.text))
    sources = tuple(_sources(detail, labels, [(best.start_line, best.end_line)]))
    text = _sentence(shortened(best.text, _PASSAGE))
    return Finding(kind_of(detail, text), text, sources, detail.observation.at)


def _chosen(title: str, claims: Sequence[Claim], relevance: Relevance, extent: FindingExtent) -> list[Claim]:
    chosen: dict[int, Claim] = {}
    left = extent.characters - len(title)
    for _ in range(extent.claims if title else extent.claims + 1):
        known = [*filter(None, [title]), *(claim.text for claim in chosen.values())]
        gains = {place: _gain(claim, known, relevance) for place, claim in enumerate(claims)}
        useful = [place for place, gain in gains.items() if gain is not None and gain >= extent.gain]
        best = max(useful, key=lambda place: gains[place] or 0.0, default=None)
        if best is None or left < min(_ROOM, len(claims[best].text)):
            break
        chosen[best] = claims[best]._replace(text=shortened(claims[best].text, left))
        left -= len(chosen[best].text)
    return [chosen[place] for place in sorted(chosen)]


def _gain(claim: Claim, known: Sequence[str], relevance: Relevance) -> float | None:
    """Return the relevance that a claim adds to the known texts, or None if it only repeats them."""
    if repeats(claim.text, known) or (claim.is_request and any(repeats(each, [claim.text]) for each in known)):
        return None
    reason = _REASON_GAIN if _REASON.search(claim.text) else 0.0
    return (relevance.gain(claim.text, known) + reason) * (_REQUEST if claim.is_request else 1)


def _title(detail: Detail, claims: Sequence[Claim]) -> str:
    """Return the title of an observation, or the prompt of an exchange.

    For a decision that the user made by answering an agent's questions, the title is empty, because each fact contains
    its question.
    """
    observation = detail.observation
    if observation.type is ObservationType.DECISION and any(_ANSWER in claim.text for claim in claims):
        return ""
    if detail.kind == "exchange" and observation.origin == "human":
        return f"Asked: “{shortened(observation.subtitle or observation.title, _ASKED)}”"
    return observation.title.removeprefix(SUMMARY)


def _sources(detail: Detail, labels: Mapping[str, str], places: Sequence[tuple[int, int]]) -> Iterator[CitedSource]:
    """Yield a source for each distinct range of lines, or one for the whole entry if no range is more exact."""
    if detail.path not in labels:
        yield CitedSource(id=detail.id, session_id=detail.session_id)
        return
    whole = (detail.start_line, detail.end_line)
    exact = sorted(set(places) - {whole}) or [whole]
    for number, (first, last) in enumerate(exact):
        public = "" if number else detail.id
        yield CitedSource(public, detail.session_id, labels[detail.path], detail.path, first, last)


def shortened(text: str, characters: int) -> str:
    """Return the text, or its beginning of at most `characters` characters, truncated after a sentence or clause."""
    short = truncate(text, characters)
    if short == text:
        return text
    closing = "”" if short.count("“") > short.count("”") else ""
    return f"{short.rstrip(' .,;:')}…{closing}"


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…", "”", ":")) else f"{text}."
