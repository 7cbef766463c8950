"""The answer is found in the output of each agent, even if other text surrounds it."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.core.reports import Usage
from palaver.observe.llm.agent_command import AgentOutput, read_output

from . import agent

TEXT = '{"verdict": "nothing"}'
USED = Usage(900, 0, 1000, 200)


@pytest.mark.parametrize("envelope", [agent.claude, agent.codex, agent.gemini])
@pytest.mark.parametrize("before", ["", "Loaded {credentials}.\n[warning] Old settings\n", '{"level": "info"}\n'])
def test_answer_of_each_agent(envelope: Callable[[str], str], before: str) -> None:
    """The last answer and the tokens are read, also after other lines."""
    assert read_output(before + envelope(TEXT) + "\n") == AgentOutput(TEXT, USED)


def test_list_of_messages() -> None:
    """With verbose output, Claude Code prints a list whose last message is the result."""
    messages = [{"type": "system", "subtype": "init"}, json.loads(agent.claude(TEXT))]

    assert read_output(json.dumps(messages)) == AgentOutput(TEXT, USED)


@pytest.mark.parametrize("output", [TEXT, f"Here it is:\n{TEXT}\nDone.", "", "I cannot help with that."])
def test_other_output_is_the_answer(output: str) -> None:
    """An output without a known envelope is the answer."""
    assert read_output(output) == AgentOutput(output)


@pytest.mark.parametrize(
    ("output", "error"),
    [
        (agent.claude("Invalid API key", error=True), "Invalid API key"),
        ('{"type": "turn.failed", "error": {"message": "no credits"}}', "no credits"),
        ('{"session_id": "1", "error": {"type": "Auth", "message": "log in first"}}', "log in first"),
    ],
)
def test_errors_of_each_agent(output: str, error: str) -> None:
    """An error in the envelope is reported."""
    assert read_output(output).error == error


def test_reconnection_is_no_error() -> None:
    """An error that Codex reports before it completes its turn is ignored."""
    start, *rest = agent.codex(TEXT).splitlines()
    output = "\n".join([start, '{"type": "error", "message": "Reconnecting... 1/5"}', *rest])

    assert read_output(output) == AgentOutput(TEXT, USED)


@given(st.text())
def test_any_output_is_read(output: str) -> None:
    """No output is an error of the reader."""
    assert isinstance(read_output(output).text, str)
    assert isinstance(read_output(f'[{{"type": {json.dumps(output)}}}, 1]\n').text, str)


def test_numbers_with_too_many_digits_are_skipped() -> None:
    """A number that Python does not convert is no error of the reader, and the answer after it is found."""
    number = '{"level": ' + "9" * 5000 + "}"

    assert read_output(number) == AgentOutput(number)
    assert read_output(f"{number}\n{agent.claude(TEXT)}") == AgentOutput(TEXT, USED)
