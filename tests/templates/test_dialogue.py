"""Tests of templates/environment.py."""

from msgspec.structs import replace

from palaver.core.conversation import Exchange, Kind, Span, Speaker, Turn
from palaver.core.results import RESULT_MIN, RESULTS_MAX, StartedSubagent, result_limit
from palaver.templates.environment import Step, count_results, dialogues

from .samples import exchange


def steps(exchange: Exchange, limit: int | None) -> tuple[Step, ...]:
    """Return the steps of an exchange that is shown alone."""
    [(_, shown)] = dialogues([exchange], limit, {})
    return shown


def of(*turns: Turn) -> Exchange:
    """Return an exchange with the given turns."""
    return Exchange(1, Span(1, 9, 0, 9), turns, None, None)


def test_results_follow_their_calls() -> None:
    """Each parallel call is followed by its own result, even if results arrive in another order."""
    shown = steps(exchange(), None)

    calls = {step.said.text: step.result and step.result.text for step in shown if step.form == "call"}
    assert calls == {"pytest -q": "2 passed", "src/auth.ts": "no such file"}
    assert [step.said.text for step in shown if step.form == "result"] == ["left over"]


def test_subagents_are_beside_the_call_that_started_them() -> None:
    """If the call is not shown, they are beside its result."""
    call = Turn(1, Speaker.ASSISTANT, Kind.CALL, "Task: count", tool="Task", call="c1")
    answer = Turn(4, Speaker.TOOL, Kind.RESULT, "seven", tool="Task", call="c1")
    subagents = {"c1": (StartedSubagent("agent-a1", "claude-code/x/agent-a1.jsonl", 9),)}

    for turns in ((call, answer), (call,), (answer,)):
        [(_, shown)] = dialogues([of(*turns)], None, subagents)
        assert [step.subagents for step in shown] == [subagents["c1"]]


def test_tool_name_is_not_repeated() -> None:
    """The tool name at the beginning of a call's text is removed."""
    named, bare, plain = steps(
        of(
            Turn(1, Speaker.ASSISTANT, Kind.CALL, "Bash: ls", tool="Bash", call="c1"),
            Turn(2, Speaker.ASSISTANT, Kind.CALL, "Bash", tool="Bash", call="c2"),
            Turn(3, Speaker.ASSISTANT, Kind.CALL, "ls Bash: x", tool="Bash", call="c3"),
        ),
        None,
    )

    assert [step.said.text for step in (named, bare, plain)] == ["ls", "", "ls Bash: x"]


def test_speakers_are_named_where_they_change() -> None:
    """A label appears where the speaker changes, and at a rewound branch."""
    labels = [step.label for step in steps(exchange(), None)]

    assert labels == ["User", "Injected", "Assistant", "", "", "", "User", "Assistant"]


def test_a_sub_agents_prompt_is_a_task() -> None:
    """A prompt of a parent agent has the label Task."""
    assert steps(of(Turn(1, Speaker.HOST, Kind.PROMPT, "Look around")), None)[0].label == "Task"


def test_words_of_a_sub_agent_have_their_own_label() -> None:
    """Prose and calls of the host are from a sub-agent of the assistant."""
    turns = [Turn(n, speaker, Kind.PROSE, "x") for n, speaker in enumerate((Speaker.ASSISTANT, Speaker.HOST), 1)]
    shown = steps(of(*turns, Turn(3, Speaker.HOST, Kind.CALL, "ls"), turns[0]._replace(line=4)), None)

    assert [step.label for step in shown] == ["Assistant", "Sub-agent", "", "Assistant"]


def test_hidden_characters_are_counted() -> None:
    """The lengths of the shown text and the omitted text add up to the length of the whole text."""
    (step,) = steps(of(Turn(4, Speaker.TOOL, Kind.RESULT, "x" * 1000)), 300)

    assert (len(step.said.text), step.said.hidden, step.said.line) == (300, 700, 4)


def test_prompts_and_prose_are_never_shortened() -> None:
    """Only tool output, thinking and injected text are shortened."""
    long = [Turn(1, Speaker.HUMAN, Kind.PROMPT, "x" * 9000), Turn(2, Speaker.ASSISTANT, Kind.PROSE, "y" * 9000)]

    assert all(step.said.hidden == 0 for step in steps(of(*long), 10))


def test_tool_results_share_a_limit() -> None:
    """A few results can be long. Many results are shortened."""
    one = of(Turn(1, Speaker.TOOL, Kind.RESULT, "x"))

    assert result_limit(count_results([one])) == RESULTS_MAX
    assert result_limit(count_results([one] * 1000)) == RESULT_MIN
    assert result_limit(count_results([replace(one, turns=())])) == RESULTS_MAX


def test_a_late_result_is_shown_beside_its_call() -> None:
    """An agent can record a result after the next prompt. The later exchange then does not show it."""
    first = of(
        Turn(1, Speaker.HUMAN, Kind.PROMPT, "Ask"),
        Turn(2, Speaker.ASSISTANT, Kind.CALL, "Agent: limits", tool="Agent", call="c1"),
    )
    second = of(
        Turn(3, Speaker.HUMAN, Kind.PROMPT, "And?"),
        Turn(4, Speaker.TOOL, Kind.RESULT, "40 a minute", tool="Agent", call="c1"),
    )
    (_, before), (_, after) = dialogues([first, second], None, {})

    result = before[1].result
    assert result is not None
    assert (result.text, result.line) == ("40 a minute", 4)
    assert [step.form for step in after] == ["prose"]
    assert [step.tool for step in steps(second, None)] == ["", "Agent"]
