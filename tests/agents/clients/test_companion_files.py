"""Files for Codex, Gemini CLI and OpenCode are written as a whole, and deleted without a trace."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from palaver.agents.clients.client_setup import ConfigChange, apply
from palaver.agents.clients.client_table import ServerEntry
from palaver.agents.clients.companion_files import (
    MARK,
    SKILL_FILES,
    CompanionFile,
    has_hook_file,
    hook_file,
    plan_file,
    plan_file_removal,
)
from palaver.core.errors import ClientConfigUnusable, InvalidInput
from palaver.core.hooks import HookEvent

from ... import demo

SERVER = ServerEntry("/home/zoë/my tools/palaver", ("mcp",), {"PALAVER_HOME": "/home/zoë/my archive"})
START = (HookEvent.SESSION_START,)
HOOKS = hook_file(SERVER, START)

every = pytest.mark.parametrize("file", [*SKILL_FILES, HOOKS], ids=lambda file: file.client.title)


def applied(change: ConfigChange) -> ConfigChange:
    apply(change)
    return change


def contents(home: Path) -> list[str]:
    return sorted(path.relative_to(home).as_posix() for path in home.rglob("*"))


@every
def test_removal_leaves_nothing(file: CompanionFile, home: Path) -> None:
    """A file is added once. Removal deletes the file and the folders that were created for it."""
    top = file.client.path.parents[file.folders]
    top.mkdir(parents=True)
    before = contents(home)

    assert applied(plan_file(file)).action == "add"
    assert file.client.path.read_text("utf-8") == file.text()
    assert plan_file(file).action == "keep"
    assert applied(plan_file_removal(file)).action == "remove"
    assert contents(home) == before
    assert plan_file_removal(file).action == "absent"


@every
def test_files_of_others_stay(file: CompanionFile) -> None:
    """A file that Palaver did not write is neither replaced nor deleted."""
    path = file.client.path
    path.parent.mkdir(parents=True)
    path.write_text(file.text().replace(MARK, "Mine"), "utf-8")

    with pytest.raises(ClientConfigUnusable, match="Palaver did not write"):
        plan_file(file)
    assert plan_file_removal(file).action == "absent"


@every
def test_an_older_version_is_updated(file: CompanionFile) -> None:
    """A changed file with the mark is updated, with a backup. Removal keeps other files in the folder."""
    apply(plan_file(file))
    path = file.client.path
    path.write_text(f"{file.text()}\nolder", "utf-8")
    (path.parent / "mine.md").write_text("mine", "utf-8")

    update = applied(plan_file(file))
    assert (update.action, path.read_text("utf-8")) == ("update", file.text())
    assert update.backup.read_text("utf-8").endswith("older")
    apply(plan_file_removal(file))
    assert [each.name for each in path.parent.iterdir()] == ["mine.md"]


def test_paths_are_those_of_the_versions_that_were_run(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Codex 0.169, Gemini CLI 0.61 and OpenCode 1.18 read the files at these paths."""
    monkeypatch.delenv("CODEX_HOME", raising=False)
    found = [each.client.path.relative_to(home).as_posix() for each in [*SKILL_FILES, HOOKS]]

    assert found == [
        ".codex/skills/past-sessions/SKILL.md",
        ".codex/agents/search-conversation.toml",
        ".gemini/skills/past-sessions/SKILL.md",
        ".gemini/agents/search-conversation.md",
        ".gemini/commands/palaver/ask.toml",
        ".gemini/commands/palaver/decisions.toml",
        ".gemini/commands/palaver/hooks.toml",
        ".config/opencode/skills/past-sessions/SKILL.md",
        ".config/opencode/agents/search-conversation.md",
        ".config/opencode/commands/palaver-ask.md",
        ".config/opencode/commands/palaver-decisions.md",
        ".config/opencode/commands/palaver-hooks.md",
        ".config/opencode/plugins/palaver.js",
    ]


def test_the_plugin_for_opencode_follows_the_setting() -> None:
    """The plugin lists only hooks that are on. If none of its hooks is on, it is not written."""
    text = hook_file(SERVER, list(HookEvent)).text()

    assert 'const EVENTS = ["session-start", "prompt"]' in text
    assert json.loads(text.partition("const COMMAND = ")[2].partition("\n")[0]) == [SERVER.command]
    with pytest.raises(InvalidInput, match="all hooks are off"):
        hook_file(SERVER, [HookEvent.TOOL]).text()


def test_the_plugin_for_opencode_is_found() -> None:
    """The status of the hooks includes OpenCode if the plugin is installed."""
    assert not has_hook_file()
    apply(plan_file(HOOKS))
    assert has_hook_file()


RUN = """
import { Palaver } from PLUGIN
const parents = { sub: "main" }
const client = { session: { get: async ({ path }) => ({ data: { parentID: parents[path.id] } }) } }
const hooks = await Palaver({ client, directory: "/home/demo/tide-clock" })
const counts = []
let added
async function send(sessionID) {
  const parts = [{ id: "prt_1", type: "text", text: "Why do we keep readings in SQLite?" }]
  await hooks["chat.message"]({ sessionID }, { message: { id: "msg_1" }, parts })
  counts.push(parts.length)
  added ||= parts[1]
}
await send("main")
await send("main")
await send("sub")
await hooks.event({ event: { type: "session.compacted", properties: { sessionID: "main" } } })
await send("main")
console.log(JSON.stringify({ counts, added }))
"""


def run_plugin(folder: Path, program: str) -> dict[str, Any]:
    """Run the plugin with four prompts, and return the number of parts of each prompt and the first added part."""
    home = demo.remembering(folder)
    server = ServerEntry(program, ("-m", "palaver", "mcp"), {"PALAVER_HOME": str(home.root)})
    plugin, script = folder / "palaver.mjs", folder / "run.mjs"
    plugin.write_text(hook_file(server, START).text(), "utf-8")
    script.write_text(RUN.replace("PLUGIN", json.dumps(str(plugin))), "utf-8")
    ran = subprocess.run(["node", str(script)], capture_output=True, text=True, check=True, env=os.environ)
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


with_node = pytest.mark.skipif(shutil.which("node") is None, reason="node runs the plugin in place of OpenCode")


@with_node
def test_the_plugin_adds_the_context_once(tmp_path: Path) -> None:
    """The plugin adds the context to the first prompt of a session and after a compaction, but not to a sub-agent."""
    found = run_plugin(tmp_path, sys.executable)

    assert found["counts"] == [2, 1, 1, 2]
    assert "SQLite" in found["added"]["text"]
    assert found["added"]["synthetic"] is True
    assert found["added"]["id"] > "prt_1"


@with_node
def test_without_the_program_prompts_stay_as_they_are(tmp_path: Path) -> None:
    """If Palaver was removed, the plugin adds nothing, and no error reaches OpenCode."""
    assert run_plugin(tmp_path, "/none/palaver") == {"counts": [1, 1, 1, 1]}
