"""Hooks are added to the files of Codex and Gemini CLI, and removed without a trace."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from palaver.agents.clients.client_setup import ConfigChange, apply
from palaver.agents.clients.client_table import ServerEntry
from palaver.agents.clients.hook_setup import HOOK_CLIENTS, HookClient, hooks_text, plan_hooks, plan_hooks_removal
from palaver.core.errors import ClientConfigUnusable, InvalidInput
from palaver.core.hooks import HookEvent

from ... import demo

SERVER = ServerEntry("/home/zoë/my tools/palaver", ("mcp",), {"PALAVER_HOME": "/home/zoë/my archive"})
START = (HookEvent.SESSION_START,)
CODEX, GEMINI = HOOK_CLIENTS
RICH = """\
{
    // my settings
    "mcpServers": {"github": {"command": "gh"}},
    "hooks": {
        "SessionStart": [{"matcher": "startup", "hooks": [{"type": "command", "command": "date"}]}],
        "Stop": []
    },
    "theme": "dark"
}
"""

# Events of the programs, with true if a hook can add text to the session at this event.
EVENTS = {
    "codex-hooks": {  # from the schemas in Codex 0.169.0
        "SessionStart": True, "UserPromptSubmit": True, "PreToolUse": True, "PostToolUse": True, "SubagentStart": True,
        "SessionEnd": False, "PermissionRequest": False, "PreCompact": False, "PostCompact": False, "Stop": False,
        "SubagentStop": False, "Interrupt": False,
    },
    "gemini-hooks": {  # from the documentation in Gemini CLI 0.61.0
        "SessionStart": True, "BeforeAgent": True, "AfterTool": True, "BeforeTool": False, "AfterAgent": False,
        "BeforeModel": False, "AfterModel": False, "BeforeToolSelection": False, "PreCompress": False,
        "Notification": False, "SessionEnd": False,
    },
}  # fmt: skip

both = pytest.mark.parametrize("hooks", HOOK_CLIENTS, ids=lambda hooks: hooks.client.name)


def install(hooks: HookClient, *events: str, server: ServerEntry = SERVER) -> ConfigChange:
    change = plan_hooks(hooks, server, events or START)
    apply(change)
    return change


def remove(hooks: HookClient) -> ConfigChange:
    change = plan_hooks_removal(hooks)
    apply(change)
    return change


def write(hooks: HookClient, text: str) -> Path:
    hooks.client.path.parent.mkdir(parents=True, exist_ok=True)
    hooks.client.path.write_text(text, "utf-8")
    return hooks.client.path


def section(hooks: HookClient) -> dict[str, Any]:
    text = hooks.client.path.read_text("utf-8").replace("// my settings", "")
    found: dict[str, Any] = json.loads(text)["hooks"]
    return found


@both
@pytest.mark.parametrize("before", [None, "", "{}\n", RICH], ids=["missing", "empty", "object", "rich"])
def test_removal_restores_the_bytes(hooks: HookClient, before: str | None) -> None:
    """A second installation changes nothing. Removal restores the bytes, or deletes a file that did not exist."""
    if before is not None:
        write(hooks, before)

    assert install(hooks).action == "add"
    assert plan_hooks(hooks, SERVER, START).action == "keep"
    assert remove(hooks).action == "remove"
    path = hooks.client.path
    assert (path.read_text("utf-8") if path.exists() else None) == before
    assert [each.name for each in path.parent.iterdir()] == ([] if before is None else [path.name])
    assert plan_hooks_removal(hooks).action == "absent"


@both
def test_other_hooks_are_kept(hooks: HookClient) -> None:
    """Hooks of the user stay before and after, also if the file changes in between."""
    path = write(hooks, RICH)
    install(hooks)
    date, own = section(hooks)["SessionStart"]
    assert date["hooks"][0]["command"] == "date"
    assert own["hooks"][0]["timeout"] == 10 * hooks.second

    path.write_text(path.read_text("utf-8").replace('"dark"', '"light"'), "utf-8")
    remove(hooks)

    assert section(hooks) == {"SessionStart": [date], "Stop": []}
    assert '"light"' in path.read_text("utf-8")
    assert "// my settings" in path.read_text("utf-8")


@both
def test_events_follow_the_setting(hooks: HookClient) -> None:
    """Only chosen events are added. An event that was switched off is removed by the next installation."""
    install(hooks, *HookEvent)
    assert section(hooks).keys() == set(hooks.events.values())
    assert install(hooks).action == "update"
    assert section(hooks).keys() == {"SessionStart", "SessionEnd"}
    with pytest.raises(InvalidInput, match="all hooks are off"):
        plan_hooks(hooks, SERVER, ())


@both
@pytest.mark.parametrize("before", [None, "{}\n"], ids=["missing", "object"])
def test_removal_after_updates_deletes_only_a_new_file(hooks: HookClient, before: str | None) -> None:
    """After other events were added and removed, only a file that did not exist before is deleted."""
    if before is not None:
        write(hooks, before)
    for events in (START, tuple(HookEvent), START):
        install(hooks, *events)
    remove(hooks)

    path = hooks.client.path
    assert path.exists() == (before is not None)
    assert [each.name for each in path.parent.iterdir()] == ([] if before is None else [path.name])


def test_the_tool_hook_of_codex_runs_for_commands_and_patches() -> None:
    """Codex runs the hook `tool` before shell commands and patches only, and ends the last hook after three seconds."""
    install(CODEX, *HookEvent)

    [tool], [end] = section(CODEX)["PreToolUse"], section(CODEX)["SessionEnd"]
    assert tool["matcher"] == "Bash|apply_patch"
    assert end["hooks"][0]["timeout"] == 3


@both
def test_hooks_with_text_use_events_that_accept_it(hooks: HookClient) -> None:
    """Each event exists in the program. Where a hook of Palaver adds text, the program adds it to the session."""
    known = EVENTS[hooks.client.name]

    assert set(hooks.events.values()) <= known.keys()
    assert all(known[name] for event, name in hooks.events.items() if event in list(HookEvent))


@both
def test_a_moved_program_is_updated(hooks: HookClient) -> None:
    """Another path of the program replaces the old one."""
    install(hooks)
    install(hooks, server=ServerEntry("/opt/palaver", ("mcp",), {}))

    [group] = section(hooks)["SessionStart"]
    assert group["hooks"][0]["command"].startswith("/opt/palaver hooks run session-start")


@both
@pytest.mark.parametrize("text", ["{", '{"hooks": []}', '{"hooks": {"SessionStart": {}}}', "[]"])
def test_an_unusable_file_stays_unchanged(hooks: HookClient, text: str) -> None:
    """A file that is invalid, or has other values in place of hooks, is refused."""
    path = write(hooks, text)

    with pytest.raises(ClientConfigUnusable):
        plan_hooks(hooks, SERVER, START)
    assert path.read_text("utf-8") == text


@both
def test_the_command_line_answers_the_hook(hooks: HookClient, tmp_path: Path) -> None:
    """The configured command line runs with a shell, and answers in the agent's protocol. It succeeds if it fails."""
    home = demo.remembering(tmp_path)
    server = ServerEntry(sys.executable, ("-m", "palaver", "mcp"), {"PALAVER_HOME": str(home.root)})
    [group] = json.loads(hooks_text(hooks, server, START))["hooks"]["SessionStart"]
    command = group["hooks"][0]["command"]
    call = {"session_id": "s1", "cwd": "/home/demo/tide-clock", "hook_event_name": "SessionStart", "source": "startup"}

    def run(line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["/bin/sh", "-c", line], input=json.dumps(call), capture_output=True, text=True, check=True, env=os.environ
        )

    answered, missing = run(command), run(command.replace(sys.executable, "/none/palaver"))

    assert "SQLite" in json.loads(answered.stdout)["hookSpecificOutput"]["additionalContext"]
    assert (answered.stderr, missing.stdout, missing.stderr) == ("", "", "")
