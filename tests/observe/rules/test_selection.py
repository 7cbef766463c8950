"""Does an observation stay within its price, and say nothing twice?"""

from palaver.core.conversation import Kind, Speaker, Turn
from palaver.core.tokens import count
from palaver.observe.rules import observe
from palaver.observe.rules.selection import FACTS_CHARACTERS, FACTS_MAX, NARRATIVE_MAX, evidence, narrative, select
from palaver.observe.rules.statements import Statement, statements

from .telling import Telling, session


def stated(*sentences: str) -> list[Statement]:
    return list(statements(Turn(3, Speaker.ASSISTANT, Kind.PROSE, "\n".join(f"- {said}" for said in sentences))))


def test_the_worthiest_are_chosen_in_the_order_they_were_made() -> None:
    """Where not all fit, the worthier stay, and the order stays too."""
    told = stated(
        "Looks a bit nicer now", "Added `a` to `b` because it was slow", "Some more words here", "Fixed `c` in `d.py`"
    )

    assert [said.text for said in select(told, count=2)] == ["Added a to b because it was slow", "Fixed c in d.py"]


def test_nothing_is_said_twice() -> None:
    """A statement whose words stood in an earlier one is left out; the first wording stays."""
    told = stated("Added `retry` with 3 attempts to the client", "Added `retry` with 3 attempts to the client.")

    assert [said.text for said in select(told)] == ["Added retry with 3 attempts to the client"]


def test_changed_value_is_not_a_repetition() -> None:
    """A short statement with another number, name or colour says something new."""
    told = stated("`retry` is 3 now", "`retry` is 5 now")

    assert len(select(told)) == 2


def test_facts_keep_to_their_budget() -> None:
    """However much was said, the facts fit their number and their characters."""
    told = stated(
        *(f"Added `name_{number}` to `file_{number}.py` because {'reason ' * 30}{number}" for number in range(20))
    )

    facts = select(told)

    assert 0 < len(facts) <= FACTS_MAX
    assert sum(len(fact.text) for fact in facts) <= FACTS_CHARACTERS


def test_each_statement_has_its_proof() -> None:
    """Proofs come in the order of the statements."""
    told = stated("One `a` thing", "Two `b` things")

    assert [proof.quote for proof in evidence(told)] == ["One `a` thing", "Two `b` things"]


def test_narrative_closes_its_sentences_within_its_limit() -> None:
    """Each part ends with a mark; a part that does not fit is left out whole."""
    assert narrative(["One", "", "two?", "Three:"]) == "One. two? Three:"
    assert narrative(["a" * 500, "b" * 500, "c"]) == f"{'a' * 500}. c."
    assert len(narrative(["word " * 100] * 9)) <= NARRATIVE_MAX


def test_layer_two_costs_at_most_what_was_agreed() -> None:
    """Narrative and facts of the longest report stay within 500 tokens."""
    report = "\n".join(
        f"- **`src/module_{number}.py`**: added `Handler{number}` so that `queue_{number}` is drained before shutdown"
        for number in range(40)
    )

    (found,) = observe(
        Telling().asked("Add handlers. " * 60).edited("src/a.py").said(report).exchange, session()
    ).observations

    assert 200 <= count(found.narrative + " ".join(found.facts)) <= 500
