"""Does an observation cost no more than layer 2 promises, whatever it would have said?"""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from palaver.core.observation import Evidence, Observation, ObservationType
from palaver.observe.rules.trimming import TOKENS_MAX, trim_to_budget


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
def test_layer_two_is_within_its_price(facts: int, read: int, modified: int, length: int) -> None:
    """Files that were only read go first; every fact that stays keeps its own proof, and some changed file stays."""
    one = whole(facts, read, modified, length)
    found = trim_to_budget(one)

    assert found.tokens <= TOKENS_MAX
    assert found.facts == one.facts[: len(found.facts)]
    assert all(proof.quote in fact for fact, proof in zip(found.facts, found.evidence, strict=False))
    assert found.evidence[len(found.facts) :] == one.evidence[len(one.facts) :]
    assert bool(found.files_modified) == bool(modified)


def test_a_long_narrative_is_cut_before_changed_files_go() -> None:
    """What was changed is worth more than the end of a long story."""
    one = replace(whole(1, 0, 12, 5), narrative="A sentence about the footer. " * 40)
    found = trim_to_budget(one)

    assert len(found.narrative) <= 500
    assert len(found.files_modified) >= 8


def test_what_is_affordable_stays_as_it_is() -> None:
    """An observation within its price is left alone."""
    assert trim_to_budget(whole(3, 2, 2, 5)) == whole(3, 2, 2, 5)
