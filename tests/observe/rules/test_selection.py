"""Selected statements fit their budget and do not repeat other statements."""

from palaver.core.conversation import Kind, Speaker, Turn
from palaver.core.tokens import count
from palaver.observe.rules.exchange_analysis import (
    FACTS_CHARACTERS,
    FACTS_MAX,
    NARRATIVE_MAX,
    evidence,
    narrative,
    select,
)
from palaver.observe.rules.rule_extractor import observe
from palaver.observe.rules.statements import Statement, statements

from .exchange_script import Script, session


def stated(*sentences: str) -> list[Statement]:
    return list(statements(Turn(3, Speaker.ASSISTANT, Kind.PROSE, "\n".join(f"- {each}" for each in sentences))))


def test_most_salient_statements_are_selected_in_order() -> None:
    """The most salient statements are selected and keep their original order."""
    candidates = stated(
        "Looks a bit nicer now", "Added `a` to `b` because it was slow", "Some more words here", "Fixed `c` in `d.py`"
    )

    assert [each.text for each in select(candidates, count=2)] == [
        "Added a to b because it was slow",
        "Fixed c in d.py",
    ]


def test_repetitions_are_dropped() -> None:
    """A statement that contains no new word is dropped."""
    candidates = stated("Added `retry` with 3 attempts to the client", "Added `retry` with 3 attempts to the client.")

    assert [each.text for each in select(candidates)] == ["Added retry with 3 attempts to the client"]


def test_changed_value_is_not_a_repetition() -> None:
    """A statement with another number, name or colour is kept."""
    candidates = stated("`retry` is 3 now", "`retry` is 5 now")

    assert len(select(candidates)) == 2


def test_facts_stay_within_their_budget() -> None:
    """Facts stay within the maximum number of facts and of characters."""
    candidates = stated(
        *(f"Added `name_{number}` to `file_{number}.py` because {'reason ' * 30}{number}" for number in range(20))
    )

    facts = select(candidates)

    assert 0 < len(facts) <= FACTS_MAX
    assert sum(len(fact.text) for fact in facts) <= FACTS_CHARACTERS


def test_each_statement_has_its_evidence() -> None:
    """Evidence has the same order as the statements."""
    candidates = stated("One `a` thing", "Two `b` things")

    assert [proof.quote for proof in evidence(candidates)] == ["One `a` thing", "Two `b` things"]


def test_narrative_parts_are_complete_sentences() -> None:
    """Each part of a narrative ends with punctuation, and a part that does not fit is dropped completely."""
    assert narrative(["One", "", "two?", "Three:"]) == "One. two? Three:"
    assert narrative(["a" * 500, "b" * 500, "c"]) == f"{'a' * 500}. c."
    assert len(narrative(["word " * 100] * 9)) <= NARRATIVE_MAX


def test_layer_two_stays_within_its_budget() -> None:
    """Narrative and facts of the longest report have at most 500 tokens."""
    report = "\n".join(
        f"- **`src/module_{number}.py`**: added `Handler{number}` so that `queue_{number}` is drained before shutdown"
        for number in range(40)
    )

    (found,) = observe(
        Script().asked("Add handlers. " * 60).edited("src/a.py").said(report).exchange, session()
    ).observations

    assert 200 <= count(found.narrative + " ".join(found.facts)) <= 500
