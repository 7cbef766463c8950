"""Search for the archived entries from which rules compose an answer."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ...core.query import Filters, HitKind, Query
from ...core.results import Detail, Hit, Results
from ...templates.labels import has_transcript
from .claims import Claim, claims_of
from .metered_archive import MeteredArchive
from .question_plan import key_words, names_only_a_time, plan
from .relevance import Relevance

_OPENED: Final = 6
"""Maximum number of conversations whose best entry is opened. A weak answer cites all of them."""
_CITED: Final = 4
"""Maximum number of conversations that are cited for the question itself.

Measured on 519 questions about 98 sessions: six conversations contain the correct one for 83 %, four for 81 %.
"""
_LISTED: Final = 6
"""Maximum number of entries that are listed for a question that names only a time."""
_SHARE: Final = 0.6
"""Minimum score of a conversation, as a share of the best score.

On the same questions, a share of 0.6 keeps every correct session among the first four, with 3.2 conversations on
average.
"""
WEAK: Final = 0.2
"""Minimum score of the best hit. Below it, the key terms are searched too, and the answer is marked as weak."""
WEAK_SHARE: Final = 0.25
"""Minimum share of the question's words in the best finding. Below it, the answer is marked as weak.

The share was chosen on half of the 519 questions about 98 sessions. On the other half, 69 % of the wrong best findings
are marked, and 22 % of the correct ones. With the score alone, these were 31 % and 7 %.
"""
_SECOND: Final = 0.1
"""Weight of the second hit of a conversation, which is added to the score of its first hit."""
_WORDS: Final = 0.15
"""Additional score of an entry with a sentence that contains all words of the question, as a share of its score."""
_WORDS_OF_KIND: Final = 0.2
"""Minimum share of the question's words in a sentence of an additional decision or fix."""
_SHARE_OF_KIND: Final = {False: 0.8, True: 0.4}
"""Minimum score of an additional decision or fix, as a share of the best score.

The key is True if the answer already cites its conversation.
"""


class FoundEvidence(Struct, frozen=True):
    """Entries that answer a question, best first.

    Attributes:
        details: The entries. If there are none, nothing was found.
        claims: Sentences of each entry, by its ID.
        relevance: Relevance of texts to the question, compared with all sentences of the entries.
        results: Reply to the search for the question itself. Without hits, it contains the explanation.
        absent: Words of the question that no entry of the archive contains.
        newest: True if the question names only a time, so that the newest entries of that time are the answer.
        has_user_filters: True if the user restricted the search.
    """

    details: tuple[Detail, ...]
    claims: Mapping[str, Sequence[Claim]]
    relevance: Relevance
    results: Results
    absent: tuple[str, ...] = ()
    newest: bool = False
    has_user_filters: bool = False


def find_evidence(archive: MeteredArchive, question: str, filters: Filters, here: str) -> FoundEvidence:
    """Return the best entries of different conversations.

    If a later observation replaced an entry, that observation is also returned. If the question names a time, such as
    "last week", only entries of that time are returned. If no word of the question occurs in the archive, no entry is
    returned. Similar vectors alone do not show that the archive contains its subject.

    Raises:
        InvalidInput: The question or a filter is invalid.
    """
    searches = plan(question, filters, here)
    results = archive.find(searches.question)
    words, absent = _absent(archive, question, results)
    newest = False
    if (dated := _with_time(filters, results)) != filters:
        searches = plan(question, dated, here)
        newest = names_only_a_time(question, [each.text for each in results.times])
        absent = () if newest else absent
        listed = replace(Query.newest(limit=_LISTED), filters=dated)
        results = replace(archive.find(listed if newest else searches.question), times=results.times)
    unknown = not newest and bool(words) and words <= set(absent)
    if not results.hits or results.empty_times or unknown:
        return FoundEvidence((), {}, Relevance(question, ()), results, absent, newest, bool(filters))
    found = results.hits
    if found[0].score < WEAK and searches.terms and not newest:
        found = _merged(found, archive.find(searches.terms).hits)
    scores = _scores(found)
    hits = _observations(found) if newest else [*_best(found, scores)][:_OPENED]
    extra = list[Hit]()
    for query in () if newest else searches.kinds:
        extra += _of_kind(archive.find(query).hits, [*hits, *extra])
    details = archive.details([hit.id for hit in (*hits, *extra)]) if hits else ()
    claims = {detail.id: claims_of(detail) for detail in details}
    texts = [claim.text for each in claims.values() for claim in each]
    relevance = Relevance(question, [*(detail.observation.title for detail in details), *texts])
    if not newest:
        details = _ranked(details, claims, relevance, {hit.id: scores[_name(hit)] for hit in hits})
    details = _with_replacements(archive, details)
    claims |= {detail.id: claims_of(detail) for detail in details if detail.id not in claims}
    return FoundEvidence(details, claims, relevance, results, absent, newest, bool(filters))


def _with_time(filters: Filters, results: Results) -> Filters:
    """Return the filters with the time range that the question names, unless they already have a time range."""
    if not results.times or filters.after is not None or filters.before is not None:
        return filters
    return replace(filters, after=results.times[0].after, before=results.times[0].before)


def _absent(archive: MeteredArchive, question: str, results: Results) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the words of the question without times, and those of them that no entry contains.

    A corrected word is not absent, because the archive contains its correction.
    """
    for time in (*results.times, *results.empty_times):
        question = question.replace(time.text, " ")
    corrected = {each.word for each in results.corrections}
    words = key_words(question)
    return frozenset(words), archive.archive.unknown_words([word for word in words if word not in corrected])


def _merged(hits: Sequence[Hit], others: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return the hits of two searches by descending score, each once with its higher score."""
    ordered = sorted((*hits, *others), key=lambda hit: -hit.score)
    best: dict[str, Hit] = {}
    for hit in ordered:
        best.setdefault(hit.id, hit)
    return tuple(best.values())


def _observations(hits: Sequence[Hit]) -> Sequence[Hit]:
    """Return the hits that are observations, or all hits if none is."""
    return [hit for hit in hits if hit.kind == HitKind.OBSERVATION] or hits


def _name(hit: Hit) -> str:
    """Return the path of a conversation, or the ID of a memory."""
    return hit.path if has_transcript(hit) else hit.id


def _scores(hits: Sequence[Hit]) -> dict[str, float]:
    """Return the score of each conversation and memory."""
    found: dict[str, list[float]] = {}
    for hit in hits:
        found.setdefault(_name(hit), []).append(hit.score)
    return {name: first + _SECOND * sum(others[:1]) for name, (first, *others) in found.items()}


def _best(hits: Sequence[Hit], scores: Mapping[str, float]) -> Iterator[Hit]:
    """Yield the first hit of each conversation with at least `_SHARE` of the best score, without documents and code.

    An observation comes before an exchange without observations, which is often a request without an answer.
    """
    first: dict[str, Hit] = {}
    for hit in sorted(hits, key=lambda each: each.kind == HitKind.EXCHANGE):
        if has_transcript(hit) or hit.kind == HitKind.MEMORY:
            first.setdefault(_name(hit), hit)
    best = max((scores[name] for name in first), default=0.0)
    for name in sorted(first, key=lambda each: -scores[each]):
        if scores[name] >= _SHARE * best:
            yield first[name]


def _of_kind(found: Sequence[Hit], hits: Sequence[Hit]) -> Sequence[Hit]:
    """Return the first new decision or fix in `found` whose score is high enough, or nothing.

    `hits` are the chosen hits. The required score is lower for a conversation of one of them.
    """
    known, paths, best = {hit.id for hit in hits}, {hit.path for hit in hits}, hits[0].score if hits else 0.0
    near = [hit for hit in found if hit.id not in known and hit.score >= _SHARE_OF_KIND[hit.path in paths] * best]
    return near[:1]


def _ranked(
    details: Sequence[Detail],
    claims: Mapping[str, Sequence[Claim]],
    relevance: Relevance,
    scores: Mapping[str, float],
) -> tuple[Detail, ...]:
    """Return the best entries with a score, and after them the additional decisions and fixes.

    If the best entry is a good match, at most `_CITED` are returned, and the others must have words of the question in
    a sentence. Otherwise, all entries with a score are returned, because any of them can be the answer. Entries that
    state nothing, such as a request without an answer, are left out, unless there are no other entries. Without an
    entry with a score, as in an archive of only documents, nothing is returned.
    """
    shares = {one.id: max(relevance.share(text) for text in texts_of(one, claims)) for one in details}

    def score(detail: Detail) -> float:
        return scores[detail.id] * (1 + _WORDS * shares[detail.id])

    stating = [detail for detail in details if detail.kind != HitKind.EXCHANGE or _states(claims[detail.id])]
    scored = [one for one in stating if one.id in scores] or [one for one in details if one.id in scores]
    if not scored:
        return ()
    best, *others = sorted(scored, key=score, reverse=True)
    is_weak = scores[best.id] < WEAK or shares[best.id] < WEAK_SHARE
    related = others if is_weak else [one for one in others if shares[one.id]][: _CITED - 1]
    return (best, *related, *(one for one in stating if one.id not in scores and shares[one.id] >= _WORDS_OF_KIND))


def _states(claims: Sequence[Claim]) -> bool:
    return not all(claim.is_request for claim in claims)


def texts_of(detail: Detail, claims: Mapping[str, Sequence[Claim]]) -> list[str]:
    """Return the title of an entry and its sentences."""
    return [detail.observation.title, *(claim.text for claim in claims[detail.id])]


def _with_replacements(archive: MeteredArchive, details: Sequence[Detail]) -> tuple[Detail, ...]:
    """Add the observations that replaced entries, each directly before the entry that it replaced."""
    known = {detail.id for detail in details}
    links = {detail.id: detail.replaced_by.id for detail in details if detail.replaced_by}
    wanted = [public for public in dict.fromkeys(links.values()) if public not in known]
    later = {detail.id: detail for detail in archive.details(wanted)} if wanted else {}
    found: dict[str, Detail] = {}
    for detail in details:
        newer = later.get(links.get(detail.id, ""))
        for each in (newer, detail):
            if each is not None:
                found.setdefault(each.id, each)
    return tuple(found.values())


def labels_of(details: Sequence[Detail]) -> dict[str, str]:
    """Return a distinct label for each path: the short session ID, or `ID#2` for its second transcript."""
    labels: dict[str, str] = {}
    for detail in details:
        if has_transcript(detail) and detail.path not in labels:
            same = sum(each.partition("#")[0] == detail.short_session_id for each in labels.values())
            labels[detail.path] = f"{detail.short_session_id}#{same + 1}" if same else detail.short_session_id
    return labels
