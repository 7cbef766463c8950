"""Results that are recorded after the next prompt of the user."""

from collections.abc import Sequence

from palaver.archiver.reading.exchanges import link_late_results
from palaver.core.conversation import Exchange, Kind, Span, Speaker, Turn

from ..formats.claude_code.claude_lines import assistant, result, tool
from ..history import History, talk

CALL = Turn(2, Speaker.ASSISTANT, Kind.CALL, "Agent: limits", tool="Agent", call="c1")
RESULT = Turn(4, Speaker.TOOL, Kind.RESULT, "40 a minute", call="c1")


def of(*turns: Turn) -> Exchange:
    return Exchange(0, Span(1, 9, 0, 9), turns, None, None)


def tools(exchanges: Sequence[Exchange]) -> list[str]:
    return [turn.tool for exchange in exchanges for turn in exchange.turns]


def test_a_late_result_gets_the_tool_of_its_call() -> None:
    """The call can be in an earlier exchange of the same reading, or stored by an earlier run."""
    assert tools(link_late_results([of(CALL), of(RESULT)], lambda _: {})) == ["Agent", "Agent"]
    assert tools(link_late_results([of(RESULT)], lambda wanted: {"c1": CALL} if wanted == {"c1"} else {})) == ["Agent"]


def test_a_result_without_a_call_stays_as_it_is() -> None:
    """A call that is unknown, or that follows the result, does not give the result a tool."""
    assert tools(link_late_results([of(RESULT), of(CALL)], lambda _: {})) == ["", "Agent"]


def test_a_result_in_a_later_run_gets_its_tool(history: History) -> None:
    """The call was stored by an earlier run, and only the last exchange is read again."""
    history.write([*talk("one"), assistant(tool("Agent", {"prompt": "x"}, id="toolu_9"), id="m"), *talk("two")])
    history.ingest()
    history.append([result("done", id="toolu_9"), *talk("three")])
    history.ingest()

    assert history.prompts() == ["one?", "two?", "three?"]
    assert [turn.tool for stored in history.stored() for turn in stored.exchange.turns if turn.call] == ["Agent"] * 2
