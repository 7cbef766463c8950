"""A best answer contains the words of the question, or replies to the same question, and has no rival."""

import pytest

from palaver.core.results import AnswerLabel
from palaver.search.query.relevance import alternatives

from .conftest import Ask, Said

GAUGE: Said = ("Check the gauge", "The tide gauge of the north pier sends its level every ten minutes.", 3)
BUOY: Said = ("Check the buoy", "The mooring buoy is red, and the ferry passes it on the left.", 4)
RIVAL: Said = ("And the gauge again", "The tide gauge of the north pier sends its level in metres.", 5)


@pytest.mark.parametrize(
    ("question", "label"),
    [
        ("when does the tide gauge of the north pier send its level", AnswerLabel.BEST),
        ("does the tide gauge send a salinity", AnswerLabel.CLOSEST),
        ("which ferry reads the tide gauge", AnswerLabel.CLOSEST),
    ],
)
def test_an_answer_has_the_words_of_the_question(ask: Ask, question: str, label: AnswerLabel) -> None:
    """One sentence must contain the words of the question that matter, not only one of them."""
    assert ask(question, [[GAUGE], [BUOY]]).label is label


def test_an_answer_has_no_rival(ask: Ask) -> None:
    """If another conversation has a sentence that is about as good, no answer is called the best one."""
    assert ask("what does the tide gauge of the north pier send", [[GAUGE], [RIVAL]]).label is AnswerLabel.CLOSEST


def test_the_reply_to_the_same_question_answers(ask: Ask) -> None:
    """The reply to a prompt that asked the same question is the answer, even with none of its words."""
    asked: Said = ("Which colour has the mooring buoy at the quay?", "Red. Green ones are on the other side.", 4)
    answer = ask("which colour has the mooring buoy at the quay", [[GAUGE, asked]])

    assert answer.label is AnswerLabel.BEST
    assert "Red. Green ones are on the other side." in answer.findings[0].text


def test_alternatives_need_one_word() -> None:
    """Two alternatives are one group, of which an answer contains one."""
    assert alternatives("sqlite or json files") == [["sqlite", "json"], ["files"]]
    assert alternatives("rows vs. files") == [["rows", "files"]]
