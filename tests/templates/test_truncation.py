"""Tests of templates/truncation.py: every reply is within its budget and explains how to continue."""

import re

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from palaver.core.conversation import Kind, Span, Speaker, Turn
from palaver.core.memory import Memory, MemoryState, MemoryStats, StoredMemory
from palaver.core.observation import Evidence, Observation, ObservationType
from palaver.core.query import HitKind, Query
from palaver.core.results import (
    ConceptHits,
    Correction,
    Detail,
    Hit,
    Results,
    TimeExpression,
    Timeline,
    TranscriptExcerpt,
    UnknownName,
    ZeroResultExplanation,
)
from palaver.core.tokens import count
from palaver.templates.json_output import details_json, results_json, timeline_json, transcript_json
from palaver.templates.render import Renderer
from palaver.templates.truncation import MIN_BUDGET, fit_rows, largest_fitting

from ..cases import for_each
from .samples import detail, exchange, hit, results, transcript

LONG = "words that go on and on " * 3_000
HARD = '{"🚀":"检索","a":[1,2]}\n## x\n' * 400
SIZES = (0, 3, 70, 900, 3_000)
SHORT = 70
TIMES = (TimeExpression("on the 18th of september 2026", 1_790_000_000_000, 1_790_086_400_000),) * 5
BUDGETS = st.sampled_from([MIN_BUDGET, 800, 3_000, 10_000])


def several(number: int) -> tuple[Detail, ...]:
    long = replace(detail().observation, narrative=LONG[:2_000], facts=(LONG[:1_000],) * 3)
    return tuple(replace(detail(), id=f"obs-{place}", observation=long) for place in range(number))


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Generate texts of several lengths, of words or of expensive characters."""
    return draw(st.sampled_from([LONG, HARD]))[: draw(st.sampled_from(SIZES))]


@st.composite
def many(draw: st.DrawFn) -> tuple[str, ...]:
    """Generate a few long texts or many short ones."""
    text, number = draw(texts()), draw(st.sampled_from([0, 1, 5, 60]))
    return (text[:SHORT] if number > 5 else text,) * number


@st.composite
def hits(draw: st.DrawFn) -> tuple[Hit, ...]:
    """Generate hits of every kind."""
    one = replace(
        hit(),
        kind=draw(st.sampled_from(HitKind)),
        title=draw(texts()),
        snippet=draw(texts()),
        project=draw(texts()),
        facts=draw(many()),
        also_in=("11111111-0000-4000-8000-000000000001",) * draw(st.sampled_from([0, 1, 300])),
        cursor="9QlWwgY",
    )
    return tuple(replace(one, id=f"obs-{place}") for place in range(draw(st.sampled_from([1, 3, 8]))))


@st.composite
def details(draw: st.DrawFn) -> tuple[Detail, ...]:
    """Generate details of every kind."""
    quotes = draw(many())
    generated = Observation(
        type=draw(st.sampled_from(ObservationType)),
        title=draw(texts()),
        subtitle=draw(texts()),
        narrative=draw(texts()),
        facts=draw(many()),
        concepts=draw(many()),
        files_read=draw(many()),
        files_modified=draw(many()),
        evidence=tuple(Evidence(1, 2, quote) for quote in quotes),
    )
    one = replace(
        detail(),
        kind=draw(st.sampled_from(HitKind)),
        observation=generated,
        project=draw(texts()),
        branch=draw(texts()),
        session_title=draw(texts()),
    )
    return tuple(replace(one, id=f"obs-{place}") for place in range(draw(st.sampled_from([1, 3, 8]))))


@st.composite
def transcripts(draw: st.DrawFn) -> TranscriptExcerpt:
    """Generate transcripts with short and long lines, of few or many turns."""
    kind, (lines, pieces) = draw(st.sampled_from(Kind)), draw(st.sampled_from([(1, 1), (3, 3), (60, 1), (1, 200)]))
    text = draw(texts())
    turns = tuple(
        Turn(
            line, Speaker.ASSISTANT, kind, text if lines * pieces < 10 else text[:900], tool=text[:50], call=str(place)
        )
        for line in range(1, lines + 1)
        for place in range(pieces)
    )
    shown_exchange = replace(exchange(), span=Span(1, lines, 0, 10), turns=turns)
    return replace(
        transcript(),
        exchanges=(shown_exchange,),
        title=draw(texts()),
        cwd=draw(texts()),
        branch=draw(texts()),
        project=draw(texts()),
    )


@st.composite
def empty_results(draw: st.DrawFn) -> Results:
    """Generate empty results with all kinds of explanations."""
    word = draw(texts())
    why = ZeroResultExplanation(
        weak=draw(hits())[:3],
        without=tuple((name, 7) for name in ("dates", "projects", "types", "concepts", "files")),
        similar=(Correction(word, word),) * 5,
        unknown=(UnknownName("projects", word, (word,) * 3, 95),) * 5,
        missing=(word,) * 5,
        without_missing=7,
        phrases=(word,) * 5,
        concepts=(ConceptHits(word, 7),) * 5,
        disjoint=((word, word),) * 10,
    )
    result = results(query=Query((word or "ab",)))
    return replace(result, explanation=why, corrections=(Correction(word, word),) * 30, empty_times=TIMES, newest=7)


@given(st.lists(st.integers(0, 9), max_size=40), st.integers(0, 200))
def test_the_largest_number_within_the_budget_is_found(costs: list[int], budget: int) -> None:
    """`largest_fitting` returns the largest number of items whose cost is within the budget."""
    kept = largest_fitting(lambda number: sum(costs[:number]), len(costs), budget)

    assert sum(costs[:kept]) <= budget
    assert kept == len(costs) or sum(costs[: kept + 1]) > budget


def cost(shape: object) -> int:
    return count(orjson.dumps(shape).decode())


@settings(max_examples=4)
@given(BUDGETS, st.booleans(), hits(), st.booleans(), st.booleans())
def test_lists_keep_to_the_budget(
    budget: int, full_titles: bool, found: tuple[Hit, ...], facts: bool, several_concepts: bool
) -> None:
    """Every form of a layer-1 reply is within the budget."""
    answer = results(*found, query=Query(("ab", "cd") if several_concepts else ("ab",)))
    page, around = (
        Renderer(budget=budget, full_titles=full_titles),
        Timeline(found[-1].id, found, "5e0c", "claude-code/5e0c.jsonl"),
    )
    shapes = [results_json(answer, budget=budget, explain=True), timeline_json(around, budget=budget)]

    assert count(page.search(answer, facts=facts, snippets=True, explain=True)) <= budget
    assert count(page.timeline(around)) <= budget
    assert [shape for shape in shapes if cost(shape) > budget or abs(cost(shape) - shape["tokens"]) > 1] == []


@settings(max_examples=4)
@given(BUDGETS, texts())
def test_corrections_do_not_displace_hits(budget: int, sent: str) -> None:
    """Long corrected words and phrases do not displace hits."""
    answer = replace(
        results(hit(1)),
        corrections=(Correction(sent, sent),) * 9,
        inexact=(sent,) * 9,
        relaxed=(sent,) * 9,
        times=TIMES,
        empty_times=TIMES,
        newest=7,
    )
    shape = results_json(answer, budget=budget)

    assert count(Renderer(budget=budget).search(answer)) <= budget
    assert (cost(shape) <= budget, shape["total"]) == (True, 1)


@settings(max_examples=4)
@given(BUDGETS, details())
def test_details_keep_to_the_budget(budget: int, entries: tuple[Detail, ...]) -> None:
    """Layer-2 replies are within the budget for texts and lists of any length."""
    shape = details_json(entries, budget=budget)

    assert count(Renderer(budget=budget).observations(entries)) <= budget
    assert (cost(shape) <= budget, shape["total"] + len(shape["rest"])) == (True, len(entries))


@settings(max_examples=4)
@given(BUDGETS, transcripts())
def test_transcripts_keep_to_the_budget(budget: int, excerpt: TranscriptExcerpt) -> None:
    """Layer-3 replies are within the budget for any lines and turns."""
    assert count(Renderer(budget=budget).read(excerpt)) <= budget
    assert cost(transcript_json(excerpt, budget=budget)) <= budget


@settings(max_examples=4)
@given(BUDGETS, st.booleans(), empty_results())
def test_explanations_keep_to_the_budget(budget: int, full_titles: bool, nothing: Results) -> None:
    """A zero-result explanation is within the budget."""
    assert count(Renderer(budget=budget, full_titles=full_titles, at_shell=True).search(nothing)) <= budget
    assert cost(results_json(nothing, budget=budget)) <= budget


def test_every_page_keeps_to_the_budget() -> None:
    """Other pages are truncated at the end, with a note outside the quoted text."""
    long_memory = StoredMemory(1, Memory("word\n" * 20_000, "fact"), MemoryStats(), MemoryState.ACTIVE, 0, 0)
    memory = Renderer(budget=1_000, at_shell=True).render("memory", stored=long_memory, edges=())

    assert count(memory) <= 1_000
    assert re.split(r"</recalled-\d+>\n", memory)[-1].endswith(
        "more rows do not fit into 1000 tokens; --json has all.]\n"
    )


@for_each("budget", range(40, 130, 5))
def test_truncated_page_closes_every_quoted_block(budget: int) -> None:
    """A truncated page closes every block of quoted text that it opens."""
    quote = "<recalled>\n" + "a row of words\n" * 10 + "</recalled>\n"
    rows = fit_rows(f"First\n{quote}Second\n{quote}", budget, "</recalled>").split("\n")

    assert rows.count("<recalled>") == rows.count("</recalled>")
    assert not ("Second" in rows and rows.index("</recalled>") > rows.index("Second"))


def test_truncated_replies_tell_how_to_continue() -> None:
    """Truncated pages contain the cursor, the remaining IDs, or the next line."""
    found = results(*(replace(hit(n), facts=(LONG[:300],), cursor=f"c{n}") for n in range(50)))
    shape, rest = results_json(found, budget=2_000), details_json(several(20), budget=2_000)["rest"]

    assert shape["next"] == f"c{shape['total'] - 1}"
    assert (shape["found"], shape["cut"]) == (50, 50 - shape["total"])
    assert f"--cursor c{Renderer(at_shell=True, budget=800).search(found).count('obs-') - 1}" in (
        Renderer(at_shell=True, budget=800).search(found)
    )
    assert rest[-1] == "obs-19"
    assert ", ".join(rest) in Renderer(budget=2_000).observations(several(20)) or len(rest) < 20
    assert "Truncated" in Renderer(budget=500).read(transcript(LONG))


@pytest.mark.parametrize(("length", "option"), [(4_000, "--budget 3000"), (len(LONG), "--raw")])
def test_a_truncated_line_can_be_read_in_full(length: int, option: str) -> None:
    """The reply contains the command that prints the full text of a truncated line."""
    turns = tuple(Turn(line, Speaker.HUMAN, Kind.PROMPT, LONG[:length]) for line in (3, 4))
    whole = replace(transcript(), exchanges=(replace(exchange(), span=Span(3, 4, 0, 10), turns=turns),))

    cut = Renderer(at_shell=True, budget=600).read(whole)

    rest = transcript_json(whole, budget=600)["rest"]
    full = f"For the full text of line 3, run: palaver read PATH 3 {option}."
    assert f"{full} Truncated: continue with palaver read PATH 4-." in cut
    assert rest == {
        "line": 3,
        "tokens": count(LONG[:length]),
        "command": f"palaver read claude-code/my-api/5e0c.jsonl 3 {option}",
    }
    assert "full text of line" not in Renderer(at_shell=True, budget=50_000).read(whole)
    assert transcript_json(whole, budget=100_000)["rest"] is None
    if option != "--raw":
        alone = replace(whole, start_line=3, end_line=3, exchanges=(replace(whole.exchanges[0], turns=turns[:1]),))
        assert LONG[:length].strip() in Renderer(at_shell=True, budget=int(option.split()[1])).read(alone)


@pytest.mark.parametrize("kept", [1, 7, 40])
def test_truncated_timeline_keeps_entries_near_the_hit(kept: int) -> None:
    """A truncated timeline keeps the entries nearest to the anchor."""
    every = tuple(replace(hit(n), id=f"obs-{n}") for n in range(41))
    around = Timeline("obs-20", every, "5e0c", "claude-code/5e0c.jsonl")
    budget = timeline_json(replace(around, hits=every[20 - kept // 2 : 20 + (kept + 1) // 2]))["tokens"] + 2
    ids = [one["id"] for one in timeline_json(around, budget=max(budget, MIN_BUDGET))["results"]]

    assert "obs-20" in ids
    assert ids == [f"obs-{n}" for n in range(int(ids[0][4:]), int(ids[0][4:]) + len(ids))]


def test_truncated_lists_count_missing_entries() -> None:
    """A truncated list counts its missing entries."""
    many_files = replace(
        detail().observation, files_read=tuple(f"/w/{n}/{LONG[:200]}" for n in range(400)), narrative=""
    )
    [one] = details_json([replace(detail(), observation=many_files)], budget=1_500)["observations"]

    shown = len(one["files_read"]) - 1
    assert one["files_read"][-1] == f"… [{400 - shown} more left out]"
