"""Ranking of the conversations and entries for an answer, and whether the best one answers it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from ...core.query import HitKind
from ...core.results import Detail, Hit
from ...templates.labels import has_transcript
from .claims import Claim
from .relevance import Relevance

_CITED: Final = 4
"""Maximum number of conversations that are cited if the best match is good.

Additional decisions and fixes do not count. Measured on 519 questions about 98 sessions: the correct conversation is
among the first four for 81 %, and among the first six for 83 %.
"""
_SHARE: Final = 0.6
"""Minimum score of a conversation, as a share of the best score.

On 519 questions about 98 sessions, this share keeps every correct session that is among the first four, and cites 3.2
conversations on average.
"""
_SECOND: Final = 0.1
"""Weight of the second hit of a conversation, which is added to the score of its first hit."""
_WORDS: Final = 0.15
"""Additional score of an entry with a sentence that contains all words of the question, as a share of its score."""
_WEAK: Final = 0.28
"""Minimum score of a conversation that comes before the documents."""
_CONTAINED: Final = 0.3
"""Minimum share of the question's words in one sentence of the best conversation. Rare words weigh more."""
_MARGIN: Final = 0.8
"""Maximum score of any other conversation, as a share of the best score.

If both hold, and the archive contains each word of the question, the first finding is called the best answer. The
values were chosen on one half of 559 questions about 98 sessions (`python -m bench.ask`).
"""
_WORDS_OF_KIND: Final = 0.2
"""Minimum share of the question's words in a sentence of an additional decision or fix."""


class RankedEntries(NamedTuple):
    """Entries, best first. `is_certain` is True if the best entry probably answers the question."""

    details: tuple[Detail, ...]
    is_certain: bool


def only_observations(hits: Sequence[Hit]) -> Sequence[Hit]:
    """Return the hits that are observations, or all hits if none is."""
    return [hit for hit in hits if hit.kind == HitKind.OBSERVATION] or hits


def place_of(hit: Hit) -> str:
    """Return the key by which hits are grouped: the path of a transcript, or the ID of a hit without a transcript."""
    return hit.path if has_transcript(hit) else hit.id


def scores_of(hits: Sequence[Hit]) -> dict[str, float]:
    """Return a score for each key of `place_of`: the score of its first hit, plus a part of the score of its second."""
    found: dict[str, list[float]] = {}
    for hit in hits:
        found.setdefault(place_of(hit), []).append(hit.score)
    return {name: first + _SECOND * sum(others[:1]) for name, (first, *others) in found.items()}


def best_hits(hits: Sequence[Hit], scores: Mapping[str, float]) -> Iterator[Hit]:
    """Yield the first hit of each conversation with at least `_SHARE` of the best score.

    An observation comes before an exchange without observations, which is often a request without an answer.
    """
    first: dict[str, Hit] = {}
    for hit in sorted(hits, key=lambda each: each.kind == HitKind.EXCHANGE):
        first.setdefault(place_of(hit), hit)
    best = max((scores[name] for name in first), default=0.0)
    for name in sorted(first, key=lambda each: -scores[each]):
        if scores[name] >= _SHARE * best:
            yield first[name]


def second_hits(hits: Sequence[Hit], chosen: Sequence[Hit]) -> list[Hit]:
    """Return a second hit from the conversation of the first chosen hit, if there is one."""
    known = {hit.id for hit in chosen}
    return [hit for hit in hits if chosen and hit.id not in known and place_of(hit) == place_of(chosen[0])][:1]


def related_passages(passages: Sequence[Hit], hits: Sequence[Hit]) -> list[Hit]:
    """Return the passages of documents whose score is at least `_SHARE` of the best score of a hit."""
    best = max((hit.score for hit in hits), default=0.0)
    return [hit for hit in passages if hit.score >= _SHARE * best]


def ranked(
    details: Sequence[Detail],
    claims: Mapping[str, Sequence[Claim]],
    relevance: Relevance,
    scores: Mapping[str, float],
) -> RankedEntries:
    """Return the entries for an answer: the best entries in `scores`, then the additional decisions and fixes.

    If the best match is certain, at most `_CITED` entries of `scores` are returned. All but the best of these must
    share a word with the question. If it is uncertain, all entries of `scores` are returned, because any of them can be
    the answer.

    Exchanges that only repeat a prompt are left out, unless all entries of `scores` are like this. Documents come after
    the conversations that match well.
    """
    shares = {one.id: max(relevance.share(text) for text in texts_of(one, claims)) for one in details}
    matches = {name: score * (1 + _WORDS * shares[name]) for name, score in scores.items() if name in shares}
    stating = [detail for detail in details if detail.kind != HitKind.EXCHANGE or _states(claims[detail.id])]
    scored = [one for one in stating if one.id in matches] or [one for one in details if one.id in matches]
    if not scored:  # another process has just removed the entries
        return RankedEntries((), is_certain=False)

    def place(detail: Detail) -> tuple[bool, bool, float]:
        match = matches[detail.id]
        return match < _WEAK, detail.kind in {HitKind.DOCUMENT, HitKind.CODE}, -match

    best, *others = sorted(scored, key=place)
    next_score = max((score for name, score in scores.items() if name != best.id), default=0.0)
    contained = max(share for one, share in zip(details, shares.values(), strict=True) if one.path == best.path)
    is_certain = contained >= _CONTAINED and next_score <= _MARGIN * scores[best.id]
    related = [one for one in others if shares[one.id]][: _CITED - 1] if is_certain else others
    extra = [one for one in stating if one.id not in matches and shares[one.id] >= _WORDS_OF_KIND]
    return RankedEntries((best, *related, *extra), is_certain)


def _states(claims: Sequence[Claim]) -> bool:
    return not all(claim.is_request for claim in claims)


def texts_of(detail: Detail, claims: Mapping[str, Sequence[Claim]]) -> list[str]:
    """Return the title of an entry and its sentences."""
    return [detail.observation.title, *(claim.text for claim in claims[detail.id])]
