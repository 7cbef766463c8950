"""Search for the archived entries from which rules compose an answer."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ...core.cited_answer import AnswerLabel
from ...core.query import Filters, HitKind, Query
from ...core.results import Detail, Hit, Results
from ...templates.labels import has_transcript
from .claims import Claim, claims_of
from .evidence_ranking import best_hits, only_observations, place_of, ranked, related_passages, scores_of, second_hits
from .metered_archive import MeteredArchive
from .question_plan import QuestionPlan, asks_for_newest, key_words, names_no_topic, plan, without_newest
from .relevance import Relevance
from .reversals import find_reversals, other_hits

_OPENED: Final = 6
"""Maximum number of conversations whose best entry is opened. A weak answer cites all of them."""
_CONVERSATIONS: Final = (HitKind.OBSERVATION, HitKind.EXCHANGE, HitKind.MEMORY)
_DOCUMENTS: Final = 2
"""Maximum number of indexed documents that are cited."""
_LISTED: Final = 6
"""Maximum number of entries that are listed for a question that names only a time or a project."""
_SHARE_OF_KIND: Final = {False: 0.8, True: 0.4}
"""Minimum score of an additional decision or fix, as a share of the best score.

The key is True if the answer already cites its conversation.
"""


class FoundEvidence(Struct, frozen=True):
    """Entries that answer a question, best first.

    Attributes:
        details: The entries. If there are none, nothing was found.
        claims: Sentences of each entry, by its ID.
        relevance: Measure of a text's relevance to the question. Words that are rare in the entries weigh more.
        reversals: IDs of entries, each with the ID of the later entry that states the opposite.
        results: Results of the search for the question. Without hits, they contain the explanation.
        absent: Words of the question that no entry of the archive contains.
        label: Whether the entries contain an answer, or are the newest entries.
        has_user_filters: True if the user restricted the search.
    """

    details: tuple[Detail, ...]
    claims: Mapping[str, Sequence[Claim]]
    relevance: Relevance
    results: Results
    reversals: Mapping[str, str] = {}
    absent: tuple[str, ...] = ()
    label: AnswerLabel = AnswerLabel.CLOSEST
    has_user_filters: bool = False


def find_evidence(
    archive: MeteredArchive, question: str, filters: Filters, here: str, also: Sequence[str] = ()
) -> FoundEvidence:
    """Return the best entries of different conversations, and the best passages of indexed documents.

    Of the best conversation, a second entry is returned. If the question asks for the latest match, as in "the latest
    decision about ...", the newest of the best entries comes first. `also` are other wordings of the question.

    Documents are searched separately, so that they do not displace conversations. If a later observation replaced an
    entry, that observation is also returned. If the question names a time, such as "last week", only entries of that
    time are returned.

    If the archive contains no word of the question, no entry is returned. Similar vectors alone do not prove that an
    entry is about the topic.

    Raises:
        InvalidInput: The question or a filter is invalid.
    """
    documents = archive.archive.store.documents.exist()
    conversations = replace(filters, kinds=_CONVERSATIONS) if documents else filters
    searches, results, newest = _search(archive, question, conversations, here, also)
    words, absent = _absent(archive, question, results)
    absent = () if newest else absent
    unknown = not newest and bool(words) and words <= set(absent)
    passages = _passages(archive, searches.question) if documents and not newest else ()
    if not (results.hits or passages) or results.empty_times or unknown:
        return FoundEvidence((), {}, Relevance(question, ()), results, absent=absent, has_user_filters=bool(filters))
    scores = scores_of((*results.hits, *passages))
    hits = [*only_observations(results.hits)] if newest else [*best_hits(results.hits, scores)][:_OPENED]
    hits += related_passages(passages, hits)
    extra = [] if newest else second_hits(results.hits, hits)
    for query in () if newest else searches.kinds:
        extra += _of_kind(archive.find(query).hits, [*hits, *extra])
    others = [] if newest else other_hits(results.hits, [*hits, *extra])
    details = archive.details([hit.id for hit in (*hits, *extra, *others)])
    claims = {detail.id: claims_of(detail) for detail in details}
    unchosen = {hit.id: detail for hit in others for detail in details if detail.id == hit.id}
    chosen = [detail for detail in details if detail.id not in unchosen]
    texts = [claim.text for detail in chosen for claim in claims[detail.id]]
    relevance = Relevance(question, [*(detail.observation.title for detail in chosen), *texts])
    label = AnswerLabel.LATEST
    reversals: Mapping[str, str] = {}
    if not newest:
        scores_by_hit = {hit.id: scores[place_of(hit)] for hit in hits}
        details, is_certain = ranked(chosen, claims, relevance, scores_by_hit)
        reversals = find_reversals([*details, *unchosen.values()], claims, relevance)
        if asks_for_newest(question):
            details = tuple(sorted(details, key=lambda detail: -(detail.observation.at or 0)))
        else:
            label = AnswerLabel.BEST if is_certain and not absent else AnswerLabel.CLOSEST
        details = _with_reversals(details, reversals, unchosen)
    details = _with_replacements(archive, details)
    claims |= {detail.id: claims_of(detail) for detail in details if detail.id not in claims}
    return FoundEvidence(details, claims, relevance, results, reversals, absent, label, bool(filters))


def _search(
    archive: MeteredArchive, question: str, filters: Filters, here: str, also: Sequence[str]
) -> tuple[QuestionPlan, Results, bool]:
    """Search for the question, or list the newest entries if it names only a time, or only what the filters name.

    Return the plan, the results, and True if the results are the newest entries.
    """
    if (filters or asks_for_newest(question)) and names_no_topic(question, filters.files):
        listed = replace(Query.newest(limit=_LISTED), filters=filters)
        return QuestionPlan(listed), archive.find(listed), True
    question = without_newest(question)
    searches = plan(question, filters, here, also)
    results = archive.find(searches.question)
    if (dated := _with_time(filters, results)) == filters:
        return searches, results, False
    searches = plan(question, dated, here, also)
    newest = names_no_topic(question, [each.text for each in results.times])
    listed = replace(Query.newest(limit=_LISTED), filters=dated)
    return searches, replace(archive.find(listed if newest else searches.question), times=results.times), newest


def _passages(archive: MeteredArchive, query: Query) -> Sequence[Hit]:
    """Return the best passages of up to `_DOCUMENTS` indexed documents and files of code."""
    wanted = replace(query.filters, kinds=(HitKind.DOCUMENT, HitKind.CODE))
    first: dict[str, Hit] = {}
    for hit in archive.find(replace(query, filters=wanted)).hits:
        first.setdefault(hit.path, hit)
    return [*first.values()][:_DOCUMENTS]


def _with_time(filters: Filters, results: Results) -> Filters:
    """Return the filters with the time range that the question names, unless they already have a time range."""
    if not results.times or filters.after is not None or filters.before is not None:
        return filters
    return replace(filters, after=results.times[0].after, before=results.times[0].before)


def _absent(archive: MeteredArchive, question: str, results: Results) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the key words of the question without its times, and those key words that the archive does not contain.

    A spell-corrected word is not absent, because the archive contains its correction.
    """
    for time in (*results.times, *results.empty_times):
        question = question.replace(time.text, " ")
    corrected = {each.word for each in results.corrections}
    words = key_words(question)
    return frozenset(words), archive.archive.unknown_words([word for word in words if word not in corrected])


def _of_kind(found: Sequence[Hit], hits: Sequence[Hit]) -> Sequence[Hit]:
    """Return the first new decision or fix in `found` whose score is high enough, or nothing.

    `hits` are the hits chosen so far. A hit from the conversation of one of them needs a lower score.
    """
    known, paths, best = {hit.id for hit in hits}, {hit.path for hit in hits}, hits[0].score if hits else 0.0
    near = [hit for hit in found if hit.id not in known and hit.score >= _SHARE_OF_KIND[hit.path in paths] * best]
    return near[:1]


def _with_reversals(
    details: Sequence[Detail], reversals: Mapping[str, str], unchosen: Mapping[str, Detail]
) -> tuple[Detail, ...]:
    """Return the entries, each after the entry that reverses it, and before the entries that it reverses."""
    by_id = {**unchosen, **{detail.id: detail for detail in details}}
    ordered: dict[str, Detail] = {}
    for detail in details:
        earlier = [older for older, newer in reversals.items() if newer == detail.id]
        for public in (reversals.get(detail.id), detail.id, *earlier):
            if public is not None:
                ordered.setdefault(public, by_id[public])
    return tuple(ordered.values())


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
    """Return a distinct label for each path: the short session ID, or `ID#2` for the second transcript of a session."""
    labels: dict[str, str] = {}
    for detail in details:
        if has_transcript(detail) and detail.path not in labels:
            same = sum(each.partition("#")[0] == detail.short_session_id for each in labels.values())
            labels[detail.path] = f"{detail.short_session_id}#{same + 1}" if same else detail.short_session_id
    return labels
