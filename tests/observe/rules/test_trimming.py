"""Observations stay within the token budget of layer 2."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from palaver.core.observation import Evidence, Observation, ObservationType
from palaver.observe.rules.user_request import TOKENS_MAX, trim_to_budget


def whole(facts: int, read: int, modified: int, length: int) -> Observation:
    return Observation(
        ObservationType.FEATURE,
        "Add a footer",
        narrative="A sentence about the footer. " * 20,
        facts=tuple(f"fact {number} " + "word " * length for number in range(facts)),
        files_read=tuple(f"src/some/folder/read_{number}.py" for number in range(read)),
        files_modified=tuple(f"src/some/folder/changed_{number}.py" for number in range(modified)),
        evidence=tuple(Evidence(number + 1, number + 1, f"fact {number} ") for number in range(facts + 2)),
    )


@given(st.integers(0, 8), st.integers(0, 8), st.integers(0, 30), st.integers(0, 60))
def test_trimmed_observation_fits(facts: int, read: int, modified: int, length: int) -> None:
    """Files that were read are dropped first, remaining facts keep their evidence, and at least one modified file
    remains.
    """
    one = whole(facts, read, modified, length)
    found = trim_to_budget(one)

    assert found.tokens <= TOKENS_MAX
    assert found.facts == one.facts[: len(found.facts)]
    assert all(proof.quote in fact for fact, proof in zip(found.facts, found.evidence, strict=False))
    assert found.evidence[len(found.facts) :] == one.evidence[len(one.facts) :]
    assert bool(found.files_modified) == bool(modified)


def test_narrative_is_trimmed_before_modified_files() -> None:
    """The end of a long narrative is dropped before modified files."""
    one = replace(whole(1, 0, 12, 5), narrative="A sentence about the footer. " * 40)
    found = trim_to_budget(one)

    assert len(found.narrative) <= 500
    assert len(found.files_modified) >= 8


def test_open_items_are_trimmed_last() -> None:
    """An open item stays longer than more salient facts, because no other text lists it."""
    one = whole(8, 0, 0, 60)
    found = trim_to_budget(replace(one, facts=(*one.facts[:-1], "Open: it is slow")))

    assert "Open: it is slow" in found.facts
    assert len(found.facts) < len(one.facts)


def test_small_observation_is_unchanged() -> None:
    """An observation within the budget stays unchanged."""
    assert trim_to_budget(whole(3, 2, 2, 5)) == whole(3, 2, 2, 5)


def test_fact_in_the_title_is_dropped_first() -> None:
    """A fact that the title states is dropped before others, although it is more salient."""
    stated = "`footer.py` now shows the address because every page needs it."
    one = replace(whole(7, 0, 0, 60), title="Add a footer: footer.py now shows the address because every page needs it")
    one = replace(one, facts=(stated.replace("`", ""), *one.facts[1:]))

    assert stated.replace("`", "") not in trim_to_budget(one).facts
