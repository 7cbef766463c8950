"""Tests of the approximate cost of reading turns."""

import pytest

from palaver.core.conversation import Kind, Speaker, Turn
from palaver.core.results import ASIDE_MAX, BUDGET, EXCERPT_BUDGET, RESULTS_MAX, read_cost, turn_costs
from palaver.core.tokens import count


def cost(*turns: tuple[int, Kind, str], single: bool = False) -> int:
    """Return the cost of reading these turns."""
    return read_cost(turn_costs(Turn(line, Speaker.TOOL, kind, text) for line, kind, text in turns), single=single)


def test_what_a_page_shortens_costs_less() -> None:
    """Prompts and prose cost all of their tokens. Results, calls and asides cost those that the page shows."""
    text = "pear " * RESULTS_MAX
    shown = {Kind.PROSE: len(text), Kind.RESULT: RESULTS_MAX, Kind.CALL: RESULTS_MAX, Kind.THINKING: ASIDE_MAX}
    for kind, length in shown.items():
        added = cost((1, Kind.PROMPT, "Why?"), (1, kind, text[: len(text) // 4])) - cost((1, Kind.PROMPT, "Why?"))
        assert added == pytest.approx(count(text[: min(length, len(text) // 4)]), abs=30), kind
    assert cost((1, Kind.RESULT, text[:8000]), single=True) > cost((1, Kind.RESULT, text[:8000]))


def test_a_page_has_an_end() -> None:
    """Lines after the budget of an excerpt cost nothing. No page exceeds the budget of a reply."""
    half = "pear " * (EXCERPT_BUDGET // 2)

    assert cost() == 0
    assert cost((1, Kind.PROSE, half), (2, Kind.PROSE, half), (3, Kind.PROSE, half)) == cost((1, Kind.PROSE, half))
    assert cost((1, Kind.PROSE, half * 3)) == BUDGET
