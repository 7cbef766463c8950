"""Plan of the searches for a question."""

import pytest

from palaver.agents.ask.question_plan import asks_for_newest, asks_for_open_items, names_no_topic, plan
from palaver.core.errors import InvalidInput
from palaver.core.query import Filters
from palaver.search.query.relevance import key_words


def test_question_decides_which_searches_are_made() -> None:
    """A question is searched as asked. Its words decide if decisions and fixes are searched."""
    searches = plan("why do we use sqlite for the readings of clocks?", Filters())

    assert searches.question.concepts == ("why do we use sqlite for the readings of clocks?",)
    assert [query.filters.types for query in searches.kinds] == [("decision",), ("bug-fix", "debug")]
    assert [query.filters.types for query in plan("sqlite or json", Filters()).kinds] == [("decision",)]
    assert plan("where is the catalogue", Filters()).kinds == ()


def test_few_key_terms_are_searched_alone() -> None:
    """One or two key terms are searched without the other words."""
    assert plan("did we ever use redis?", Filters()).question.concepts == ("redis",)
    assert plan("did we use redis on 2026-01-20", Filters()).question.concepts == ("did we use redis on 2026-01-20",)


@pytest.mark.parametrize("question", ["what did we do yesterday", "what did we decide in march"])
def test_a_time_keeps_the_words_around_it(question: str) -> None:
    """A question with a time expression is searched as asked, because the key terms alone are not a time."""
    assert plan(question, Filters()).question.concepts == (question,)


@pytest.mark.parametrize(
    ("question", "times", "is_empty"),
    [
        ("what did we do on 2026-01-20", ["on 2026-01-20"], True),
        ("what happened yesterday?", ["yesterday"], True),
        ("what did we decide yesterday", ["yesterday"], False),
        ("what did we do", [], True),
        ("what did we decide", [], False),
    ],
)
def test_question_can_name_no_topic(question: str, times: list[str], is_empty: bool) -> None:
    """A question about the activity of a time names no topic."""
    assert names_no_topic(question, times) is is_empty


@pytest.mark.parametrize("question", ["the", "how did we do it"])
def test_a_question_without_topic_is_an_error(question: str) -> None:
    """A question whose words name no topic is not searched."""
    with pytest.raises(InvalidInput, match="names no topic"):
        plan(question, Filters())


def test_filters_apply_to_every_search() -> None:
    """The filters of the question apply to all searches."""
    searches = plan("why do we use sqlite for clock readings", Filters(projects=("x",)))

    assert {query.filters.projects for query in (searches.question, *searches.kinds)} == {("x",)}


def test_names_stay_whole() -> None:
    """Paths, versions and names keep their punctuation."""
    assert key_words("what about src/store.py and v1.2-rc?") == ["src/store.py", "v1.2-rc"]


def test_questions_for_open_items_are_recognised() -> None:
    """A question for open items names no topic. Otherwise its topic is searched."""
    asking = ("what is still open", "what's next", "what should I do next", "unfinished tasks", "what is left to do")
    other = ("which pull requests are open", "what did we do last", "how do I open the database")

    assert [one for one in asking if not asks_for_open_items(one)] == []
    assert [one for one in other if asks_for_open_items(one)] == []


def test_questions_for_the_newest_match_are_recognised() -> None:
    """Words such as "latest" ask for the newest match. "Last" can have other meanings."""
    asking = ("the latest decision on names", "what did we do last", "most recent release", "last time we used redis")
    other = ("why is the last line missing", "what lasts longest")

    assert [one for one in asking if not asks_for_newest(one)] == []
    assert [one for one in other if asks_for_newest(one)] == []
