"""Tests of time expressions in queries."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.core.conversation import day_end, day_start, now, show_day, show_instant
from palaver.core.query import Filters, Mode
from palaver.core.time_expressions import DateRange, extract
from palaver.search.query.query_analysis import AnalyzedQuery
from palaver.search.rank.engine import Engine
from palaver.templates.json_output import results_json

from ...cases import for_each
from ..history import History, Said

TODAY = date(2026, 3, 31)
"""Today: a Tuesday, the last day of its month."""
DAY = day_start("2026-02-18")
WEEK = 7 * 86_400_000


@for_each(
    "typed, left, expression, first, last",
    [
        ("what was decided on 18 february", "what was decided", "on 18 february", "2026-02-18", "2026-02-18"),
        ("On February 18th, 2026 we chose it", "we chose it", "On February 18th, 2026", "2026-02-18", "2026-02-18"),
        ("on 2026-02-18 we chose it", "we chose it", "on 2026-02-18", "2026-02-18", "2026-02-18"),
        ("on 18 may it broke again", "it broke again", "on 18 may", "2025-05-18", "2025-05-18"),
        ("the bug from  yesterday, again", "the bug, again", "from yesterday", "2026-03-30", "2026-03-30"),
        ("yesterday's migration bug", "migration bug", "yesterday", "2026-03-30", "2026-03-30"),
        ("what did we fix today?", "what did we fix?", "today", "2026-03-31", "2026-03-31"),
        ("what broke last tuesday", "what broke", "last tuesday", "2026-03-24", "2026-03-24"),
        ("what broke 3 days ago", "what broke", "3 days ago", "2026-03-28", "2026-03-28"),
        ("what broke two weeks ago", "what broke", "two weeks ago", "2026-03-14", "2026-03-20"),
        ("a couple of months ago it broke", "it broke", "a couple of months ago", "2026-01-16", "2026-02-15"),
        ("what broke A few days ago?", "what broke?", "A few days ago", "2026-03-26", "2026-03-30"),
        ("what broke in the last 2 weeks", "what broke", "in the last 2 weeks", "2026-03-17", "2026-03-31"),
        ("what broke over the past month", "what broke", "over the past month", "2026-02-28", "2026-03-31"),
        ("what broke last quarter", "what broke", "last quarter", "2025-10-01", "2025-12-31"),
        ("what did we ship in Q4 2025?", "what did we ship?", "in Q4 2025", "2025-10-01", "2025-12-31"),
        ("the plans from 2025-Q4 we made", "the plans we made", "from 2025-Q4", "2025-10-01", "2025-12-31"),
        ("what changed last year", "what changed", "last year", "2025-01-01", "2025-12-31"),
        ("what changed since monday", "what changed", "since monday", "2026-03-30", "2026-03-31"),
        ("what broke last week", "what broke", "last week", "2026-03-23", "2026-03-29"),
        ("what broke this month?", "what broke?", "this month", "2026-03-01", "2026-03-31"),
        ("what may break in march", "what may break", "in march", "2026-03-01", "2026-03-31"),
        ("february 2026 release plan", "release plan", "february 2026", "2026-02-01", "2026-02-28"),
        ('"on monday" the day of the cache last week', '"on monday" the day of the cache', "last week",
         "2026-03-23", "2026-03-29"),
    ],
)  # fmt: skip
def test_a_time_expression_is_extracted(typed: str, left: str, expression: str, first: str, last: str) -> None:
    """A query with one time expression and other words has a date range."""
    assert extract(typed, TODAY) == (left, expression, DateRange(date.fromisoformat(first), date.fromisoformat(last)))
    assert AnalyzedQuery.of(typed, dated=True).text == left


@for_each(
    "typed",
    [
        "yesterday", "bug yesterday", "18 february", '"what broke yesterday" was its title',
        "it says 'broke yesterday'",
        "what may break", "step 18 may fail", "this may be wrong", "on the second may run", "the march of progress",
        "dec 16 in hex", "sun sat mon columns", "the monday meeting notes", "on mondays it fails",
        "monday.com and others",
        "a spring bean fails", "what fell in spring 2026", "the Q3 2026 roadmap page", "a filter in q1 of it",
        "in the last week of the sprint", "the last quarter of the file", "deleted after 2 weeks ago",
        "version 2026.2 of it", "the year 2026 in tests", "src/2026-02-18/app.py is long", "plan 2026-02-18 of it",
        "2026-02-18 12:00:01 it cannot bind", "error: expired on 18 february", "def yesterday(day) is here",
        "if day == yesterday then stop", "a today button in calendars", "deadline by 18 february please",
        "before february it was another", "due on 31 february they say", "from monday to friday it ran",
        "between 3 february and 5 february", "yesterday and last week it broke", "the last week of the sprint",
        "a plan for last week", "every last friday it runs", "word " * 40 + "yesterday",
    ],
)  # fmt: skip
def test_ambiguous_dates_are_words(typed: str) -> None:
    """Bare dates, names, versions, code, logs, deadlines, quotes, recurring dates and pasted text are not time
    expressions.
    """
    assert extract(typed, TODAY) is None


@given(
    st.dates(date(1, 1, 1), date(9999, 12, 31)),
    st.text(alphabet="on18 february2026'ly\"tod?-", max_size=40)
    | st.sampled_from(["what broke a few months ago", "what broke 99 weeks ago", "what broke last quarter"]),
)
def test_any_text_can_be_analysed(today: date, typed: str) -> None:
    """Date analysis leaves any text unchanged or with at least one word, on any day."""
    found = extract(typed, today)

    assert found is None or (found[0].split() and found[2].first <= found[2].last)


@pytest.fixture
def conversations(history: History) -> History:
    """Return an archive of two similar conversations on different days, and one with the words of a date."""
    history.say("early", Said("the kettle whistles", "the brass kettle whistles loudly", DAY))
    history.say("late", Said("the kettle whistles", "the brass kettle whistles loudly again", DAY + WEEK))
    history.say("other", Said("a parade on 18 february", "the february parade", DAY + 2 * WEEK))
    history.embed()
    history.publish()
    return history


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("day", ["18", "25"])
def test_events_in_the_date_range_come_first(conversations: History, mode: Mode, day: str) -> None:
    """The date adds a part to the score, removes no hits, and its words are not searched."""
    plain = conversations.search("the brass kettle whistles", mode=mode)
    found = conversations.search(f"the brass kettle whistles on {day} february 2026", mode=mode)

    assert show_day(found.hits[0].at) == f"2026-02-{day}"
    assert {hit.id for hit in found.hits} == {hit.id for hit in plain.hits}
    assert [time.text for time in found.times] == [f"on {day} february 2026"]
    assert [part.value for hit in found.hits for part in hit.parts if part.name == "date"] == [
        float(show_day(hit.at) == f"2026-02-{day}") for hit in found.hits
    ]
    assert all(sum(part.points for part in hit.parts) == hit.score <= 1 for hit in found.hits)
    assert not any(part.name == "date" for hit in plain.hits for part in hit.parts)
    assert results_json(found)["times"] == [
        {
            "text": f"on {day} february 2026",
            "after": f"2026-02-{day}T00:00:00Z",
            "before": show_instant(day_end(f"2026-02-{day}")),
        }
    ]


def test_relative_dates_depend_on_now(history: History) -> None:
    """`today` and `7 days ago` are relative to the current time, as in filters."""
    at = now()
    [old, new] = [
        history.say(name, Said("the kettle whistles", at=when))[0] for name, when in (("a", at - WEEK), ("b", at))
    ]
    history.embed()

    found = [
        event.key for event in history.engine().find("the kettle whistles 7 days ago", Mode.BOTH, Filters()).events
    ]
    again = [event.key for event in history.engine().find("how the kettle whistles today", Mode.BOTH, Filters()).events]

    assert (found, again) == ([old, new], [new, old])


@pytest.mark.parametrize("mode", Mode)
def test_words_of_an_empty_date_range_are_searched(conversations: History, mode: Mode) -> None:
    """A date range without events is reported as empty, and its words are searched, whatever the filters."""
    found = conversations.search("the february parade on 18 february 1999", mode=mode)

    assert found.times == ()
    assert found.hits[0].session_id == "other"
    assert ([one.text for one in found.empty_times], found.newest) == (["on 18 february 1999"], DAY + 2 * WEEK)
    assert [each["text"] for each in results_json(found)["empty_times"]] == ["on 18 february 1999"]
    assert results_json(found)["newest"] == "2026-03-04T00:00:00Z"


def test_words_of_a_date_are_not_reported_as_unknown(history: History) -> None:
    """The explanation reports words of a date neither as missing nor as misspelled, but reports an empty date range."""
    history.say("weak", Said("a weak lost mouth", "the last kettle", DAY))
    history.embed()
    found = history.search("anything done last week?", filters=Filters(projects=("nowhere",)))

    assert found.explanation is not None
    assert not {"week", "week?"} & {word for word, _ in found.explanation.similar}
    assert not {"week", "week?"} & {*found.explanation.missing}
    assert [one.text for one in found.empty_times] == ["last week"]


def test_filters_do_not_change_the_date_range(conversations: History) -> None:
    """The date range is the same under date filters, even if they leave no event within it."""
    query = "the brass kettle whistles on 18 february 2026"
    every = conversations.search(query)
    late = conversations.search(query, filters=Filters(after=DAY + WEEK))

    assert late.times == every.times
    assert {hit.id for hit in late.hits} <= {hit.id for hit in every.hits}
    assert late.hits


def test_a_date_does_not_change_relevance(conversations: History) -> None:
    """Relevance and the threshold do not depend on the date."""
    engine = conversations.engine()
    dated = engine.find("the brass kettle whistles on 18 february 2026", Mode.BOTH, Filters())
    plain = engine.find("the brass kettle whistles", Mode.BOTH, Filters())

    assert dated.query.text == plain.query.text
    assert {event.key: event.plain for event in dated.events} == {event.key: event.plain for event in plain.events}
    assert (dated.threshold, dated.relevant) == (plain.threshold, plain.relevant)


def test_each_concept_can_have_a_date(conversations: History) -> None:
    """A conversation is in the date range if one of the concepts has that date range."""
    found = conversations.search("the brass kettle on 18 february 2026", "whistles")

    assert [hit.session_id for hit in found.hits] == ["early", "late"]
    assert [time.text for time in found.times] == ["on 18 february 2026"]


def test_recall_treats_dates_as_words(conversations: History) -> None:
    """In searches of memories and documents, dates are plain words, because such text mentions any date."""
    engine = Engine.of(conversations.store, conversations.generations, conversations.embedder, dated=False)

    assert engine.find("the parade on 18 february", Mode.BOTH, Filters()).query.times == ()
