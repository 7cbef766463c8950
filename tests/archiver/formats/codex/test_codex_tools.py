"""Tool calls, their output, and the files of patches in Codex rollouts."""

import json
from typing import Any

import pytest

from palaver.archiver.lines import trim
from palaver.core.conversation import Kind

from ....cases import for_each
from .codex_lines import CALL, PATCH, completed_item, event, item, summary, tool_call, tool_output, turns


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("exec_command", '{"cmd":"make test","workdir":"/work"}', "exec_command: make test"),
        ("shell", '{"command":["bash","-lc","make test"]}', "shell: make test"),
        ("shell", '{"command":["git","status"]}', "shell: git status"),
        ("shell_command", {"command": "make"}, "shell_command: make"),
        ("write_stdin", '{"session_id":1,"chars":"y"}', "write_stdin: session_id=1, chars=y"),
        ("update_plan", '{"plan":[{"step":"Look","status":"pending"}]}', "update_plan: [pending] Look"),
        ("exec_command", '{"cmd": broken', 'exec_command: {"cmd": broken'),
        ("spawn_agent", None, "spawn_agent"),
    ],
)
def test_a_call_is_readable_text(name: str, arguments: object, text: str) -> None:
    """A call shows the command, the plan or the arguments. Invalid arguments are shown unchanged."""
    (turn,) = turns(tool_call(name, arguments))

    assert (turn.kind, turn.text, turn.tool, turn.call) == (Kind.CALL, text, name, CALL)


def test_a_tool_of_a_server_has_the_name_of_the_server() -> None:
    """The name of an MCP tool includes its server, in the usual form."""
    (turn,) = turns(item("function_call", name="_fetch", namespace="mcp__hub", arguments="{}", call_id=CALL))

    assert turn.tool == "mcp__hub__fetch"


@pytest.mark.parametrize(
    ("record", "text"),
    [
        (item("web_search_call", action={"type": "search", "query": "rust"}), "web_search: rust"),
        (item("web_search_call", action={"type": "open_page", "url": "https://x"}), "web_search: https://x"),
        (item("local_shell_call", call_id=CALL, action={"command": ["sh", "-c", "ls"]}), "local_shell: ls"),
        (item("custom_tool_call", name="exec", input="text(1)", call_id=CALL), "exec: text(1)"),
        (item("tool_search_call", arguments={"query": "pr"}, call_id=CALL), "tool_search: query=pr"),
    ],
)
def test_every_type_of_call_is_a_call(record: dict[str, Any], text: str) -> None:
    """Searches, scripts and shell calls have separate record types, and all are calls."""
    assert summary(record) == [(Kind.CALL, text)]


@for_each(
    "output, text, failed",
    [
        ("Chunk ID: a1\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\nok", "ok", False),
        ("Chunk ID: a1\nWall time: 0.1 seconds\nProcess exited with code 2\nOutput:\nno", "Exit code 2\nno", True),
        ("Exit code: 1\nWall time: 0 seconds\nOutput:\nno", "Exit code 1\nno", True),
        ('{"output":"no","metadata":{"exit_code":1,"duration_seconds":0.1}}', "Exit code 1\nno", True),
        ('{"output":"ok","metadata":{"exit_code":0}}', "ok", False),
        ({"content": "no", "success": False}, "no", True),
        ([{"text": "Script failed\nOutput:\n"}, {"text": "no"}], "no", True),
        ([{"type": "input_text", "text": "ok"}, {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}],
         "ok\n[image/png, 0 KB]", False),
        ("Wall time: 1 seconds\nOutput:\nok\nExit code: 1", "ok\nExit code: 1", False),
        ("the words Exit code: 1 in a text", "the words Exit code: 1 in a text", False),
        ('{"a": 1}', '{"a": 1}', False),
        ("execution error: timed out", "execution error: timed out", True),
    ],
)  # fmt: skip
def test_output_has_no_header_and_fails_by_its_exit_code(output: object, text: str, failed: bool) -> None:
    """Output headers are removed, and the header's exit code determines failure.

    Text that only mentions an exit code does not count as a failure.
    """
    result = turns(tool_call("exec_command", '{"cmd":"x"}'), tool_output(output))[-1]

    assert (result.kind, result.text, result.failed, result.tool) == (Kind.RESULT, text, failed, "exec_command")


def patch(**fields: Any) -> list[dict[str, Any]]:
    return [
        item("custom_tool_call", name="apply_patch", input=PATCH, call_id=CALL),
        event("patch_apply_end", call_id=CALL, **fields),
        item("custom_tool_call_output", call_id=CALL, output="Exit code: 0\nOutput:\nSuccess"),
    ]


def test_the_files_of_a_patch_come_from_the_event_that_ends_it() -> None:
    """The event that ends a patch lists its files, including moved files."""
    found = turns(*patch(success=True, changes={"/w/a.py": {"type": "update", "move_path": "/w/c.py"}}))

    assert [(turn.kind, turn.writes) for turn in found] == [(Kind.CALL, ()), (Kind.RESULT, ("/w/a.py", "/w/c.py"))]


def test_a_failed_patch_writes_no_files() -> None:
    """The paths of a failed patch do not count as written."""
    result = turns(*patch(success=False, stderr="no such line", changes={"/w/a.py": {}}))[-1]

    assert (result.writes, result.failed, result.text) == ((), True, "no such line")


def test_without_an_event_the_files_come_from_the_patch() -> None:
    """For older versions and shell commands, the file list comes from the patch text."""
    call, _, output = patch()
    shell = tool_call("shell", json.dumps({"command": ["bash", "-lc", f"apply_patch <<'E'\n{PATCH}\nE"]}))

    assert turns(call, output)[-1].writes == ("a.py", "b.py")
    assert turns(shell, tool_output("ok"))[-1].writes == ("a.py", "b.py")


def test_a_paginated_history_has_patches_and_commands_as_items() -> None:
    """In a paginated history, completed items replace the events of patches and commands."""
    changed = completed_item("FileChange", changes={"/w/a.py": {}}, status="completed")
    ran = completed_item("CommandExecution", command=["sh", "-c", "ls"], aggregated_output="a.py", exit_code=3)
    first, second = turns(changed, ran)

    assert first.writes == ("/w/a.py",)
    assert (second.text, second.failed) == ("Exit code 3\n$ ls\na.py", True)


def test_the_event_of_a_command_is_dropped_if_an_item_has_the_output() -> None:
    """Output that older versions recorded twice counts once."""
    end = event("exec_command_end", call_id=CALL, command=["ls"], aggregated_output="a.py", exit_code=0)

    assert summary(tool_call("exec_command", '{"cmd":"ls"}'), end, tool_output("a.py"))[1:] == [(Kind.RESULT, "a.py")]
    assert summary(tool_call("exec_command", '{"cmd":"ls"}'), end)[1:] == [(Kind.RESULT, "$ ls\na.py")]


@pytest.mark.parametrize(
    ("result", "text", "failed"),
    [
        ({"Ok": {"content": [{"type": "text", "text": "done"}]}}, "done", False),
        ({"Ok": {"content": [{"type": "text", "text": "no"}], "isError": True}}, "no", True),
        ({"Err": "timed out"}, "timed out", True),
    ],
)
def test_the_output_of_a_server_is_read_from_its_event(result: object, text: str, failed: bool) -> None:
    """The output of an MCP tool is read from its event if no item contains the output."""
    end = event("mcp_tool_call_end", call_id=CALL, invocation={"server": "hub", "tool": "get"}, result=result)
    (turn,) = turns(end)

    assert (turn.tool, turn.text, turn.failed) == ("mcp__hub__get", text, failed)


def test_found_tools_are_listed_by_name() -> None:
    """Tools found by a tool search are listed without their long descriptions."""
    output = item(
        "tool_search_output",
        call_id=CALL,
        tools=[{"name": "hub", "description": "x" * 999, "tools": [{"name": "get"}]}],
    )

    assert summary(output) == [(Kind.RESULT, "hub, get")]


def test_long_output_is_shortened_on_request() -> None:
    """Long output is shortened on request, while the archived line stays complete."""
    short, whole = (turns(tool_output("x" * 9000), shorten=shorten)[-1] for shorten in (True, False))

    assert len(trim(short.text)) < 2000
    assert len(whole.text) == 9000


def test_interruptions_and_errors_are_turns() -> None:
    """Interruptions and errors are turns that show why an exchange ended."""
    assert [(turn.text, turn.failed) for turn in turns(event("turn_aborted", reason="interrupted"))] == [
        ("Turn aborted: interrupted", True)
    ]
    assert summary(event("error", message="quota")) == [(Kind.INJECTED, "quota")]
