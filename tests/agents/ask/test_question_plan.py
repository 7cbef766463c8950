"""Plan of the searches for a question."""

import pytest

from palaver.agents.ask.question_plan import key_words, plan
from palaver.core.errors import InvalidInput
from palaver.core.query import Filters


def test_plan_has_four_searches() -> None:
    """A question is searched as asked, by its key terms, and among decisions and fixes."""
    searches = plan("why do we use sqlite for the readings?", Filters())

    assert searches.question.concepts == ("why do we use sqlite for the readings?",)
    assert searches.terms is not None
    assert searches.terms.concepts == ("sqlite readings",)
    assert [query.filters.types for query in searches.kinds] == [("decision",), ("bug-fix", "debug")]


def test_key_terms_are_not_searched_twice() -> None:
    """A question that consists of key terms is searched once."""
    assert plan("sqlite readings", Filters()).terms is None


@pytest.mark.parametrize("question", ["the", "how did we do it"])
def test_a_question_without_topic_is_an_error(question: str) -> None:
    """A question whose words name no topic is not searched."""
    with pytest.raises(InvalidInput, match="names no topic"):
        plan(question, Filters())


def test_filters_apply_to_every_search() -> None:
    """The filters of the question apply to all searches."""
    searches = plan("why do we use sqlite", Filters(projects=("x",)))

    assert searches.terms is not None
    assert {query.filters.projects for query in (searches.question, searches.terms, *searches.kinds)} == {("x",)}


def test_names_stay_whole() -> None:
    """Paths, versions and names keep their punctuation."""
    assert key_words("what about src/store.py and v1.2-rc?") == ["src/store.py", "v1.2-rc"]
