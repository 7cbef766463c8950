"""Calls of hooks are checked field by field."""

import json
from typing import Any

import pytest

from palaver.agents.hooks.hooks import INPUT_MAX, HookCall
from palaver.core.hooks import HookEvent


def parsed(event: HookEvent, **fields: Any) -> HookCall | None:
    return HookCall.parse(event, json.dumps({"cwd": "/home/demo/shop", **fields}).encode())


def test_fields_are_read() -> None:
    """A call has the session, the folder, and the command or the file of the tool."""
    tool = parsed(
        HookEvent.TOOL, session_id="s1", hook_event_name="PreToolUse", tool_input={"command": "ls", "file_path": "/a"}
    )
    notebook = parsed(HookEvent.TOOL, tool_input={"notebook_path": "/n.ipynb"})

    assert tool == HookCall(HookEvent.TOOL, "PreToolUse", "s1", "/home/demo/shop", command="ls", file="/a")
    assert notebook is not None
    assert notebook.file == "/n.ipynb"


@pytest.mark.parametrize(
    ("event", "given", "name"),
    [
        (HookEvent.PROMPT, "UserPromptSubmit", "UserPromptSubmit"),
        (HookEvent.PROMPT, "BeforeAgent", "BeforeAgent"),
        (HookEvent.PROMPT, "Stop", "UserPromptSubmit"),
        (HookEvent.SESSION_START, 7, "SessionStart"),
    ],
)
def test_the_reply_repeats_the_name_of_the_event(event: HookEvent, given: object, name: str) -> None:
    """The reply has the agent's name of the event. An unknown name is replaced by that of Claude Code."""
    found = parsed(event, hook_event_name=given)

    assert found is not None
    assert json.loads(found.reply("a\n<b>")) == {
        "hookSpecificOutput": {"hookEventName": name, "additionalContext": "a\n<b>"}
    }


@pytest.mark.parametrize("cwd", [None, 1, "", "here", "/a\0b", "/" + "x" * 5_000])
def test_calls_without_a_folder_are_refused(cwd: object) -> None:
    """A call without an absolute folder of possible length has no project."""
    assert parsed(HookEvent.PROMPT, cwd=cwd) is None


@pytest.mark.parametrize("command", ["{}", "apply_patch <<'EOF'\n{}\nEOF\n"], ids=["tool", "shell"])
def test_a_patch_is_an_edit(command: str) -> None:
    """A patch of Codex, as a tool or in a shell command, is an edit of its first file."""
    patch = "*** Begin Patch\n*** Update File: src/a.py\n-x\n+y\n*** Add File: b.py\n+z\n*** End Patch"
    found = parsed(HookEvent.TOOL, tool_input={"command": command.format(patch)})

    assert found is not None
    assert (found.command, found.file) == ("", "/home/demo/shop/src/a.py")


@pytest.mark.parametrize("tag", ["hook_context", "loaded_context"])
def test_added_text_is_not_part_of_the_prompt(tag: str) -> None:
    """Gemini CLI puts the text of an earlier hook, or loaded instructions, before the prompt. They are removed.

    Other agents add nothing, so there the user typed these tags.
    """
    prompt = f"<{tag}>{'x ' * 2_000}</{tag}>\n\nWhy do we use SQLite?"
    found = parsed(HookEvent.PROMPT, hook_event_name="BeforeAgent", prompt=prompt)
    typed = parsed(HookEvent.PROMPT, hook_event_name="UserPromptSubmit", prompt=prompt)

    assert found is not None
    assert found.prompt == "Why do we use SQLite?"
    assert typed is not None
    assert typed.prompt == prompt[:2_000]


def test_long_values_are_bounded() -> None:
    """A long prompt is cut, a long command is not searched, and an overlong call is refused."""
    found = parsed(HookEvent.TOOL, prompt="x" * 9_000, session_id="s" * 9_000, tool_input={"command": "y" * 9_000})

    assert found is not None
    assert (len(found.prompt), len(found.session_id), found.command) == (2_000, 4_000, "")
    assert HookCall.parse(HookEvent.TOOL, b" " * (INPUT_MAX + 1)) is None
