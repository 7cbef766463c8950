"""Tests of the steps of an exchange."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from palaver.core.conversation import Kind, Speaker, Turn
from palaver.core.transcript_page import Outcome, StepKind
from palaver.observe.transcript.run_summary import summarize_run
from palaver.observe.transcript.steps import steps_of

CWD = "/code/app"
_TOOLS = st.sampled_from(["Bash", "Edit", "Task", "AskUserQuestion", "mcp__x__y", ""])
_SPEAKERS = {
    Kind.PROMPT: Speaker.HUMAN,
    Kind.PROSE: Speaker.ASSISTANT,
    Kind.THINKING: Speaker.ASSISTANT,
    Kind.CALL: Speaker.ASSISTANT,
    Kind.RESULT: Speaker.TOOL,
}


@st.composite
def turns(draw: st.DrawFn) -> list[Turn]:
    """Return turns of any kind in the order of their lines. Some lines contain several turns."""
    found, line = list[Turn](), 1
    for number in range(draw(st.integers(0, 25))):
        line += draw(st.integers(0, 1))
        kind = draw(st.sampled_from([*Kind]))
        speaker = _SPEAKERS.get(kind, Speaker.HOST)
        if kind is Kind.RESULT and draw(st.integers(0, 5)) == 0:
            speaker = Speaker.HUMAN
        call = f"call-{draw(st.integers(0, 4))}" if kind is Kind.RESULT else f"call-{number}"
        tool = draw(_TOOLS) if kind in {Kind.CALL, Kind.RESULT} else ""
        failed, active = draw(st.booleans()), draw(st.integers(0, 4)) > 0
        found.append(
            Turn(line, speaker, kind, f"text {number}", 1000 * line, call=call, tool=tool, failed=failed, active=active)
        )
    return found


def summaries(*of_turns: Turn) -> list[str]:
    """Return the summary of each run."""
    return [step.summary for step in steps_of(of_turns, CWD) if step.kind is StepKind.RUN]


def call(line: int, tool: str, body: str) -> Turn:
    return Turn(line, Speaker.ASSISTANT, Kind.CALL, f"{tool}: {body}", 1000 * line, tool=tool, call=f"call-{line}")


def done(
    line: int, text: str, of: int, *, failed: bool = False, writes: tuple[str, ...] = (), reads: tuple[str, ...] = ()
) -> Turn:
    return Turn(
        line, Speaker.TOOL, Kind.RESULT, text, 1000 * line, call=f"call-{of}", failed=failed, reads=reads, writes=writes
    )


def edited(line: int, path: str) -> list[Turn]:
    return [call(line, "Edit", f"{CWD}/{path}\n- a\n+ b"), done(line + 1, "ok", line, writes=(f"{CWD}/{path}",))]


@given(turns())
def test_every_call_and_every_text_is_in_one_step(given: list[Turn]) -> None:
    steps = steps_of(given, CWD)

    shown = [(each.line, each.position) for step in steps for each in step.calls]
    calls = [turn for turn in given if turn.kind is Kind.CALL]
    assert len(set(shown)) == len(shown)
    assert len(shown) >= len(calls)
    texts = [turn.text for turn in given if turn.kind in {Kind.PROMPT, Kind.PROSE, Kind.COMPACTION, Kind.RECAP}]
    assert [step.text for step in steps if step.text in texts] == texts


@given(turns())
def test_steps_are_in_the_order_of_their_lines(given: list[Turn]) -> None:
    steps = steps_of(given, CWD)

    assert [(step.line, step.position) for step in steps] == sorted({(step.line, step.position) for step in steps})
    assert all(step.line <= step.last_line for step in steps)


@given(turns())
def test_no_step_mixes_rewound_and_active_turns(given: list[Turn]) -> None:
    active = {(turn.line, turn.text): turn.active for turn in given}
    for step in steps_of(given, CWD):
        if step.text:
            assert active[step.line, step.text] is not step.rewound


def test_a_run_is_summarised_by_its_changes_and_checks() -> None:
    run = [
        *edited(1, "a.py"),
        *edited(3, "b.py"),
        *edited(5, "a.py"),
        *edited(7, "a.py"),
        call(9, "Bash", "make test"),
        done(10, "Exit code 2", 9, failed=True),
        call(11, "Bash", "make test"),
        done(12, "3 passed", 11),
        call(13, "Bash", "git status"),
        done(14, "clean", 13),
    ]

    assert summaries(*run) == ["7 calls: 4 edits in 2 files, tests failed, then passed, 1 command"]


def test_a_run_names_the_first_command_that_failed() -> None:
    long = f"cat {'x' * 60}"
    run = [
        call(1, "Bash", "git push"),
        done(2, "rejected", 1, failed=True),
        call(3, "Bash", "git pull"),
        done(4, "conflict", 3, failed=True),
        call(5, "Bash", "git status"),
        done(6, "clean", 5),
    ]
    clipped = [call(1, "Bash", long), done(2, "No file", 1, failed=True), call(3, "Bash", "ls"), done(4, "a", 3)]

    assert summaries(*run) == ["3 calls: 2 failed (git push, …), 1 command"]
    assert summaries(*clipped) == [f"2 calls: 1 failed ({long[:47]}…), 1 search"]


def test_thinking_between_calls_does_not_divide_a_run() -> None:
    thinking = Turn(3, Speaker.ASSISTANT, Kind.THINKING, "Hm.", 3000)
    run = [*edited(1, "a.py"), thinking, *edited(4, "a.py")]

    assert summaries(*run) == ["2 calls: 2 edits in a.py"]
    assert [step.kind for step in steps_of([thinking], CWD)] == [StepKind.THINKING]


@pytest.mark.parametrize("output", ["=== 2 failed, 3 passed ===", " 228 pass\n 15 fail"])
def test_output_that_went_through_a_filter_can_show_a_failure(output: str) -> None:
    run = [call(1, "Bash", "make test | tail -5"), done(2, output, 1)]
    [step] = steps_of(run, CWD)

    assert step.calls[0].outcome is Outcome.FAILED
    assert step.calls[0].checked == "tests"


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("npx jest --passWithNoTests", "No tests found, exiting with code 0"),
        ("npx jest --listTests", "/code/app/cart.test.js"),
        ("pytest --collect-only", "tests/test_cart.py::test_total\n1 test collected in 0.01s"),
        ("pytest tests/empty", "collected 0 items\n=== no tests ran in 0.01s ==="),
        ("go test ./cart", "?   app/cart [no test files]"),
        ("cargo test", "running 0 tests\ntest result: ok. 0 passed; 0 failed"),
        ("bun test", "error: unrecognized subcommand 'bun'"),
        ("npm test | tail -3", "> app@1.0.0 test\n> jest"),
    ],
)
def test_tests_that_did_not_run_are_not_said_to_pass(command: str, output: str) -> None:
    [step] = steps_of([call(1, "Bash", command), done(2, output, 1)], CWD)

    assert (step.calls[0].outcome, step.calls[0].checked) == (Outcome.DONE, "")


@pytest.mark.parametrize(
    "output",
    ["running 0 tests\n0 passed\nrunning 12 tests\n12 passed", "ok  app/cart 0.01s\n? [no test files]", "Done"],
)
def test_tests_that_ran_are_said_to_pass(output: str) -> None:
    [step] = steps_of([call(1, "Bash", "make test"), done(2, output, 1)], CWD)

    assert (step.calls[0].outcome, step.calls[0].checked) == (Outcome.DONE, "tests")


@pytest.mark.parametrize(
    ("tool", "body", "subject"),
    [
        (
            "exec",
            'const r = await tools.exec_command({"cmd":"mise run check","workdir":"/code/app"});',
            "mise run check",
        ),
        ("exec", "text(await tools.exec_command({workdir: '/code', cmd: 'ls -l'}))", "ls -l"),
        ("exec", "await tools.shell_command({command: `git status`})", "git status"),
        ("exec_command", "mise run check", "mise run check"),
        ("exec", 'await tools.write_stdin({"session_id":4,"chars":"","yield_time_ms":1000})', "waited for output"),
        ("write_stdin", "session_id=4, chars=, yield_time_ms=1000", "waited for output"),
        ("write_stdin", "session_id=4, yield_time_ms=1000", "waited for output"),
    ],
)
def test_a_call_of_codex_names_its_command(tool: str, body: str, subject: str) -> None:
    [step] = steps_of([call(1, tool, body), done(2, "ok", 1)], CWD)

    assert (step.calls[0].tool, step.calls[0].subject) == ("Shell", subject)


@pytest.mark.parametrize(("tool", "body"), [("write_stdin", "session_id=4, chars=y"), ("exec", "text(1)")])
def test_a_call_of_codex_without_a_command_shows_its_input(tool: str, body: str) -> None:
    [step] = steps_of([call(1, tool, body), done(2, "ok", 1)], CWD)

    assert step.calls[0].subject == body


def test_the_text_of_a_here_document_is_no_command() -> None:
    [step] = steps_of([call(1, "Bash", "cat > note <<'EOF'\nmake test\nEOF"), done(2, "", 1)], CWD)

    assert step.calls[0].checked == ""


def test_a_refused_call_is_followed_by_the_reason_of_the_user() -> None:
    refusal = Turn(2, Speaker.HUMAN, Kind.RESULT, "Use the other file.", 2000, call="call-1", failed=True)
    run, answer = steps_of([call(1, "Edit", f"{CWD}/a.py"), refusal], CWD)

    assert run.calls[0].outcome is Outcome.REFUSED
    assert (answer.kind, answer.text) == (StepKind.ANSWER, "Use the other file.")


def test_a_sub_agent_is_a_step_of_its_own() -> None:
    steps = steps_of(
        [
            *edited(1, "a.py"),
            call(3, "Task", "Explore · Find the bug\nLook at it."),
            done(4, "Found.", 3),
            *edited(5, "a.py"),
        ],
        CWD,
    )

    assert [step.kind for step in steps] == [StepKind.RUN, StepKind.SUBAGENT, StepKind.RUN]
    assert steps[1].calls[0].subject == "Explore · Find the bug"


def test_a_result_after_the_next_prompt_names_its_tool() -> None:
    late = done(2, "ready", 99)._replace(tool="Bash")
    [step] = steps_of([late], CWD)

    assert (step.calls[0].tool, step.calls[0].subject) == ("Bash", "result of an earlier call")


def test_lines_are_counted_only_where_there_are_some() -> None:
    [step] = steps_of(edited(1, "a.py"), CWD)
    edit = replace(step.calls[0], added=12, removed=0)

    assert summarize_run([edit]) == "1 call: 1 edit in a.py +12"
    assert summarize_run([edit, replace(edit, removed=3)]) == "2 calls: 2 edits in a.py +24 −3"
    assert summarize_run([edit, step.calls[0]]) == "2 calls: 2 edits in a.py"


def test_the_summary_of_no_known_tool_names_the_tools() -> None:
    calls = [steps_of([call(1, "mcp__github__get_issue", "number=1"), done(2, "x", 1)], CWD)[0].calls[0]] * 3

    assert summarize_run(calls) == "3 calls: 3 × github get_issue"
