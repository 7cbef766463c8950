"""The JSON that callers may rely on. Keys are only ever added."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, TypedDict

from msgspec.structs import replace

from ..core.clock import show_day, show_minute
from ..core.query import Grouping
from ..core.results import BUDGET, Detail, Hit, Results, ScorePart, TimeExpression, Timeline, ToolOutputMatches
from .absence_shapes import SpellingJson, WhyJson, spelling_json, why_json
from .budget import clip, fitting_details, fitting_hits, fitting_timeline
from .elsewhere import AlsoInJson, also_in_json
from .priced import PricedJson, priced
from .quote import clean

_ECHOED: Final = 300
"""Characters of what was asked that are said again."""
_NAMED: Final = 10
"""Words that were respelled, and phrases that are words now, that are named."""


class PartJson(TypedDict):
    """A part of a score: how much of something was found, and what that adds to the score."""

    name: str
    value: float
    points: float


class ExplanationJson(TypedDict):
    """What a score is made of: the points of the parts, added in order, are the score to the last bit."""

    score: float
    parts: list[PartJson]


class HitJson(TypedDict):
    """One result of layer 1. `date` is YYYY-MM-DD; `tokens` is what layer 2 costs for it."""

    id: str
    kind: str
    type: str
    title: str
    summary: str
    snippet: str
    project: str
    date: str
    score: float
    similarity: float | None
    session_id: str
    path: str
    start_line: int
    end_line: int
    tokens: int


class FurtherHitJson(HitJson, total=False):
    """What a result may have besides. `more` is how many other events of its session matched, where asked for."""

    more: int
    also_in: AlsoInJson
    explain: ExplanationJson


class OccasionJson(TypedDict):
    """A period that a query `said`, from its `first` day to its `last`, YYYY-MM-DD."""

    said: str
    first: str
    last: str


class VacancyJson(OccasionJson):
    """A period that nothing is of, and the day of the `newest` there is; null where nothing is dated."""

    newest: str | None


class ResultsJson(PricedJson):
    """Layer 1. `total` is the number of results given here; the budget left out `cut` of the `found` of this page. More
    follow where `next`, the cursor of the next page, is not null. `tokens` is what this object costs. Where nothing is
    clearly relevant, `results` is empty, `weak` has the nearest, and `why` says so. `respelled` words were searched in
    other spellings, the nearest of which `instead` tells; `reworded` was quoted and stands nowhere word for word, its
    words were searched in other forms; `loosened` was quoted and stands in no form, its words were searched. `beyond`
    is true on the last page where more may match than a search ranks. `occasions` were taken for time, and not searched
    as words: what is of then ranks higher. Nothing is of the `vacant` ones, which were searched as words; `newest` is
    the day of the newest there is.
    """

    results: list[HitJson]
    total: int
    query: str | list[str]
    index_lag: int
    searched: list[str]
    next: str | None
    beyond: bool
    cut: int
    found: int
    respelled: list[str]
    instead: list[SpellingJson]
    reworded: list[str]
    loosened: list[str]
    occasions: list[OccasionJson]
    vacant: list[VacancyJson]
    weak: list[HitJson]
    why: WhyJson | None


class EvidenceJson(TypedDict):
    """Lines of the archived transcript, and a quote from them."""

    start_line: int
    end_line: int
    quote: str


class DetailJson(TypedDict):
    """One observation of layer 2. Dates are YYYY-MM-DD HH:MM in UTC; `tokens` is what layer 3 costs for its lines.
    Later exchanges said it again `confirmed` times.
    """

    id: str
    kind: str
    type: str
    title: str
    subtitle: str
    narrative: str
    facts: list[str]
    concepts: list[str]
    files_read: list[str]
    files_modified: list[str]
    evidence: list[EvidenceJson]
    origin: str
    project: str
    branch: str
    date: str
    session_id: str
    session_title: str
    path: str
    start_line: int
    end_line: int
    tokens: int
    also_in: AlsoInJson
    confirmed: int
    last_confirmed: str


class DetailsJson(PricedJson):
    """Layer 2. `rest` are the ids that the budget left no room for."""

    observations: list[DetailJson]
    total: int
    rest: list[str]


class TimelineJson(PricedJson):
    """What was said and learned around a hit, in order; `anchor` is its id."""

    anchor: str
    session_id: str
    path: str
    results: list[HitJson]


def results_json(results: Results, *, explain: bool = False, budget: int = BUDGET) -> ResultsJson:
    """Layer 1 as JSON, as many hits as the budget has room for."""
    shape = _fitting(results, explain=explain, budget=budget)
    if shape["tokens"] <= budget and bool(shape["results"]) == bool(results.hits):
        return shape
    # Words that somebody sent can be as long as anything. What they are is known to whoever sent them.
    why = (
        replace(
            results.explanation,
            weak=(),
            spelling=(),
            unknown=(),
            phrases=(),
            present=(),
            apart=(),
            printed=ToolOutputMatches(),
            nowhere=(),
        )
        if results.explanation
        else None
    )
    return _fitting(
        replace(results, explanation=why, corrections=(), inexact=(), relaxed=(), times=(), empty_times=()),
        explain=explain,
        budget=budget,
    )


def _fitting(results: Results, *, explain: bool, budget: int) -> ResultsJson:
    given = results.explanation.weak if results.explanation and not results.hits else results.hits

    @lru_cache(1)  # what fits was made and counted to find that out
    def shown(some: tuple[Hit, ...]) -> ResultsJson:
        return _results(results, some, explain=explain)

    return shown(fitting_hits(given, lambda some: shown(some)["tokens"], budget))


def _results(results: Results, shown: tuple[Hit, ...], *, explain: bool) -> ResultsJson:
    """The answer with these of its hits, or with these of the weak ones where it has none."""
    grouped, why = results.query.by is Grouping.SESSION, results.explanation
    hits = [_hit(hit, explain=explain, grouped=grouped) for hit in shown]
    concepts = [clip(clean(concept), _ECHOED // len(results.query.concepts)) for concept in results.query.concepts]
    cut = len(results.hits) - len(hits) if results.hits else 0
    further = (shown[-1].cursor if shown else "") if cut else results.cursor
    shape = ResultsJson(
        results=hits if results.hits else [],
        total=len(hits) if results.hits else 0,
        query=concepts if len(concepts) > 1 else "".join(concepts),
        tokens=0,
        index_lag=results.index_lag,
        searched=list(results.engines),
        next=further or None,
        beyond=results.ranking_limit and not cut,
        cut=cut,
        found=len(results.hits),
        respelled=[clean(word) for word, _ in results.corrections[:_NAMED]],
        instead=spelling_json(results.corrections[:_NAMED]),
        reworded=[clean(phrase) for phrase in results.inexact[:_NAMED]],
        loosened=[clean(phrase) for phrase in results.relaxed[:_NAMED]],
        occasions=[_occasion(each) for each in results.times],
        vacant=[
            VacancyJson(**_occasion(each), newest=None if results.newest is None else show_day(results.newest))
            for each in results.empty_times
        ],
        weak=[] if results.hits else hits,
        why=why_json(why) if why else None,
    )
    return priced(shape)


def timeline_json(timeline: Timeline, *, budget: int = BUDGET) -> TimelineJson:
    """What was said around a hit as JSON, as much of it as the budget has room for."""
    return _timeline(fitting_timeline(timeline, lambda part: _timeline(part)["tokens"], budget))


def _timeline(timeline: Timeline) -> TimelineJson:
    shape = TimelineJson(
        anchor=timeline.anchor,
        session_id=clean(timeline.session_id),
        path=clean(timeline.path),
        results=[_hit(hit) for hit in timeline.hits],
        tokens=0,
    )
    return priced(shape)


def details_json(details: Sequence[Detail], *, budget: int = BUDGET) -> DetailsJson:
    """Layer 2 as JSON, as many observations as the budget has room for."""
    every = tuple(details)

    def shown(some: tuple[Detail, ...]) -> DetailsJson:
        rest = [detail.id for detail in every[len(some) :]]
        return priced(DetailsJson(observations=[_detail(one) for one in some], total=len(some), tokens=0, rest=rest))

    return shown(fitting_details(every, lambda some: shown(some)["tokens"], budget))


def _occasion(occasion: TimeExpression) -> OccasionJson:
    return OccasionJson(said=clean(occasion.text), first=show_day(occasion.after), last=show_day(occasion.before - 1))


def _part(part: ScorePart) -> PartJson:
    return PartJson(name=part.name, value=part.value, points=part.points)


def _hit(hit: Hit, *, explain: bool = False, grouped: bool = False) -> HitJson:
    shape = FurtherHitJson(
        id=hit.id,
        kind=hit.kind,
        type=hit.type,
        title=clean(hit.title),
        summary=clean("; ".join(hit.facts) or hit.title),
        snippet=clean(hit.snippet),
        project=clean(hit.project),
        date=show_day(hit.at),
        score=round(hit.score, 4),
        similarity=None if hit.similarity is None else round(hit.similarity, 4),
        session_id=clean(hit.session_id),
        path=clean(hit.path),
        start_line=hit.start_line,
        end_line=hit.end_line,
        tokens=hit.tokens,
    )
    if grouped:
        shape["more"] = hit.more
    if hit.also_in:
        shape["also_in"] = also_in_json(hit.also_in)
    if explain:
        shape["explain"] = ExplanationJson(score=hit.score, parts=[_part(part) for part in hit.parts])
    return shape


def _detail(detail: Detail) -> DetailJson:
    it = detail.observation
    return DetailJson(
        id=detail.id,
        kind=detail.kind,
        type=it.type.value,
        title=clean(it.title),
        subtitle=clean(it.subtitle),
        narrative=clean(it.narrative),
        facts=_all(it.facts),
        concepts=_all(it.concepts),
        files_read=_all(it.files_read),
        files_modified=_all(it.files_modified),
        evidence=[
            EvidenceJson(start_line=e.start_line, end_line=e.end_line, quote=clean(e.quote)) for e in it.evidence
        ],
        origin=it.origin,
        project=clean(detail.project),
        branch=clean(detail.branch),
        date=show_minute(it.at),
        session_id=clean(detail.session_id),
        session_title=clean(detail.session_title),
        path=clean(detail.path),
        start_line=detail.start_line,
        end_line=detail.end_line,
        tokens=detail.tokens,
        also_in=also_in_json(detail.also_in),
        confirmed=detail.confirmed,
        last_confirmed=show_minute(detail.confirmed_at) if detail.confirmed else "",
    )


def _all(texts: Sequence[str]) -> list[str]:
    return [clean(text) for text in texts]
