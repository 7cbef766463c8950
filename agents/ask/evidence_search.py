"""Search for the archived entries from which rules compose an answer."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, zip_longest

from msgspec import Struct
from msgspec.structs import replace

from ...core.query import Filters
from ...core.results import Detail, Hit, Results
from ...templates.labels import has_transcript
from .metered_archive import MeteredArchive
from .question_plan import plan

_SESSIONS = 6
"""Maximum number of conversations that are taken from the searches for the question and for its key terms together."""
_SHARE = 0.6
"""Minimum score of a hit, as a share of the best score of its search.

Measured on 519 questions about 98 sessions: a share of 0.6 keeps every correct session among the first six hits, and
4.6 sessions on average. A share of 0.8 drops four correct sessions.
"""
_SHARE_OF_KIND = {False: 0.8, True: 0.4}
"""Minimum score of an additional decision or fix, as a share of the best score.

The key is True if the answer already cites its conversation.
"""


class FoundEvidence(Struct, frozen=True):
    """Entries that answer a question, best first, and the label of each cited conversation by its path.

    `results` is the reply to the search for the question itself. If there are no entries, it contains the explanation.
    `has_user_filters` is true if the user restricted the search.
    """

    details: tuple[Detail, ...]
    labels: Mapping[str, str]
    results: Results
    has_user_filters: bool = False


def find_evidence(archive: MeteredArchive, question: str, filters: Filters, here: str) -> FoundEvidence:
    """Return the best entries of different conversations.

    If a later observation replaced an entry, that observation is also returned. If the question names a time, such as
    "last week", only entries of that time are returned.

    Raises:
        InvalidInput: The question or a filter is invalid.
    """
    searches = plan(question, filters, here)
    results = archive.find(searches.question)
    dated = _with_time(filters, results)
    if dated != filters:
        searches = plan(question, dated, here)
        results = archive.find(searches.question)
    if not results.hits or results.empty_times:
        return FoundEvidence((), {}, results, bool(filters))
    by_terms = archive.find(searches.terms).hits if searches.terms else ()
    hits = list(_distinct_sessions(_alternating(_best(results.hits), _best(by_terms))))[:_SESSIONS]
    for query in searches.kinds:
        hits += _of_kind(archive.find(query).hits, hits)
    details = archive.details([hit.id for hit in hits]) if hits else ()
    return FoundEvidence(_with_replacements(archive, details), _labels(hits), results, bool(filters))


def _with_time(filters: Filters, results: Results) -> Filters:
    """Return the filters with the time range that the question names, unless they already have a time range."""
    if not results.times or filters.after is not None or filters.before is not None:
        return filters
    return replace(filters, after=results.times[0].after, before=results.times[0].before)


def _best(hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits with at least `_SHARE` of the best score, without documents and code."""
    said = [hit for hit in hits if has_transcript(hit) or hit.kind == "memory"]
    return [hit for hit in said if hit.score >= _SHARE * said[0].score]


def _of_kind(found: Sequence[Hit], hits: Sequence[Hit]) -> list[Hit]:
    """Return the first new decision or fix in `found` whose score is high enough, or an empty list.

    `hits` are the chosen hits. The required score is lower for a conversation of one of them.
    """
    known, paths, best = {hit.id for hit in hits}, {hit.path for hit in hits}, hits[0].score if hits else 0.0
    near = (hit for hit in found if hit.id not in known and hit.score >= _SHARE_OF_KIND[hit.path in paths] * best)
    return list(islice(near, 1))


def _alternating(one: Sequence[Hit], other: Sequence[Hit]) -> Iterator[Hit]:
    for pair in zip_longest(one, other):
        yield from (hit for hit in pair if hit is not None)


def _distinct_sessions(hits: Iterator[Hit]) -> Iterator[Hit]:
    """Yield the first hit of each conversation, and every distinct memory."""
    seen = set[str]()
    for hit in hits:
        name = hit.path if has_transcript(hit) else hit.id
        if name not in seen:
            seen.add(name)
            yield hit


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


def _labels(hits: Sequence[Hit]) -> dict[str, str]:
    """Return a distinct label for each path: the short session ID, or `ID#2` for its second transcript."""
    labels: dict[str, str] = {}
    for hit in hits:
        if has_transcript(hit) and hit.path not in labels:
            same = sum(each.partition("#")[0] == hit.short_session_id for each in labels.values())
            labels[hit.path] = f"{hit.short_session_id}#{same + 1}" if same else hit.short_session_id
    return labels
