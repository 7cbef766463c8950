"""The hooks of the plugin run as subprocesses, exactly as hooks.json configures them."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from palaver import __version__
from palaver.agents.clients.client_table import ServerEntry
from palaver.agents.clients.hook_setup import HOOK_CLIENTS, HookClient, hooks_text
from palaver.archiver.store import Store
from palaver.core.config import Config, write_settings
from palaver.core.home import DEMO, Home, is_read_only_mode
from palaver.core.hooks import HookEvent
from palaver.core.tokens import count

from .. import demo, unprivileged
from ..observe.commands.shell_history import MISSING, ShellHistory

PLUGIN = Path(__file__).parents[2] / "agents"
HOOKS: dict[str, Any] = json.loads((PLUGIN / "hooks" / "hooks.json").read_text("utf-8"))["hooks"]
CALLS: dict[str, dict[str, Any]] = {
    "SessionStart": {"source": "startup"},
    "UserPromptSubmit": {"prompt": "do we keep the readings in SQLite or in JSON files"},
    "PreToolUse": {"tool_name": "Bash", "tool_input": {"command": "python -m pytest -q"}},
    "SessionEnd": {"reason": "other"},
}
PROJECT = "/home/demo/tide-clock"
HOSTILE = {
    "empty": b"",
    "broken": b'{"session_id": "s1", "cwd": "/home/demo/tide-clock"',
    "list": b"[1, 2, 3]",
    "wrong types": b'{"session_id": 7, "cwd": ["/"], "prompt": {}, "tool_input": "x", "transcript_path": 1}',
    "NUL": b'{"session_id": "s\\u0000", "cwd": "/home\\u0000/demo"}\0\0',
    "not UTF-8": b'{"session_id": "\xff\xfe", "cwd": "/home/demo/tide-clock"}',
    "huge": b'{"cwd": "/home/demo/tide-clock", "session_id": "' + b"x" * 3_000_000 + b'"}',
    "deep": b"[" * 100_000,
    "relative": b'{"session_id": "s1", "cwd": "../../etc"}',
    "no such folder": b'{"session_id": "s1", "cwd": "/nowhere/at/all", "source": "startup"}',
}


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an archived sample home with all hooks on."""
    home = demo.remembering(tmp_path_factory.mktemp("sample"))
    write_settings(home.config, {"hooks": list(HookEvent)})
    return home.root


@pytest.fixture
def archive(sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """Return a copy of the sample home, which the hooks use."""
    shutil.copytree(sample, tmp_path / "archive")
    monkeypatch.setenv("PALAVER_HOME", str(tmp_path / "archive"))
    yield Home(tmp_path / "archive")
    unprivileged.let_write(tmp_path / "archive")


def installed(folder: Path) -> Path:
    """Return a copy of the plugin's scripts in a folder without Palaver."""
    for name in ("hooks", "bin"):
        shutil.copytree(PLUGIN / name, folder / "agents" / name, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    return folder / "agents"


def call(event: str, **fields: object) -> bytes:
    """Return the call of a hook as Claude Code sends it."""
    common = {"session_id": "s1", "transcript_path": "/x.jsonl", "cwd": PROJECT, "hook_event_name": event}
    return json.dumps({**common, **CALLS[event], **fields}).encode()


def run(event: str, data: bytes, path: str | None = None, plugin: Path = PLUGIN) -> str:
    """Run the hook of an event with its configured command line, and return what it prints to standard output.

    It exits with 0 and prints nothing to standard error.
    """
    [group] = HOOKS[event]
    [hook] = group["hooks"]
    programs = f"{Path(sys.executable).parent}:/usr/bin:/bin" if path is None else path
    environment = {**os.environ, "CLAUDE_PLUGIN_ROOT": str(plugin), "PATH": programs}
    ran = subprocess.run(
        ["/bin/sh", "-c", hook["command"]],
        input=data, capture_output=True, env=environment, timeout=hook["timeout"], check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, b"")
    return ran.stdout.decode()


def injected(event: str, data: bytes) -> str:
    """Return the text that a hook injects."""
    output = run(event, data)
    if not output:
        return ""
    reply = json.loads(output)
    assert reply.keys() == {"hookSpecificOutput"}
    assert reply["hookSpecificOutput"].keys() == {"hookEventName", "additionalContext"}
    assert reply["hookSpecificOutput"]["hookEventName"] == event
    return str(reply["hookSpecificOutput"]["additionalContext"])


def test_session_start_injects_quoted_text_within_the_budget(archive: Home) -> None:
    """At the start of a session, the hook injects memories as quoted data, within its budget."""
    text = injected("SessionStart", call("SessionStart"))

    assert "SQLite" in text
    assert "<recalled-" in text
    assert count(text) <= HookEvent.SESSION_START.hook.budget
    with Store.open(archive.database) as store:
        [logged] = store.injections.of_session("s1")
    assert (logged.event, logged.project) == (HookEvent.SESSION_START, "project:tide-clock")
    assert logged.tokens == count(text)
    assert all(item in text for item in logged.items)


@pytest.mark.usefixtures("archive")
def test_a_resumed_session_gets_the_text_once() -> None:
    """A resumed session already contains the text. After a compaction, the text is injected again."""
    assert injected("SessionStart", call("SessionStart"))
    assert not run("SessionStart", call("SessionStart", source="resume"))
    assert injected("SessionStart", call("SessionStart", source="compact"))
    assert injected("SessionStart", call("SessionStart", source="resume", session_id="s2"))


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("event", HOOKS)
@pytest.mark.usefixtures("archive")
def test_hostile_input_injects_nothing(event: str, name: str) -> None:
    """For input that is not a call, a hook prints nothing and exits with 0."""
    assert not run(event, HOSTILE[name])


@pytest.mark.parametrize("event", HOOKS)
def test_hooks_are_silent_without_an_archive(event: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an archive, no hook prints or creates anything."""
    monkeypatch.setenv("PALAVER_HOME", str(tmp_path / "none"))

    assert not run(event, call(event))
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("event", HOOKS)
def test_hooks_are_silent_without_palaver(event: str, archive: Home, tmp_path: Path) -> None:
    """If the program `palaver` is not installed, a hook prints nothing and exits with 0."""
    plugin = installed(tmp_path / "plugins")

    assert not run(event, call(event), path="/usr/bin:/bin", plugin=plugin)
    assert not archive.ended_sessions.exists()


@pytest.mark.usefixtures("archive")
def test_hooks_find_palaver_in_the_environment_around_the_plugin(tmp_path: Path) -> None:
    """If `palaver` is not on PATH, a hook starts the one in the environment that contains the plugin."""
    plugin = installed(tmp_path / "venv" / "lib" / "python3" / "site-packages" / "palaver")
    (tmp_path / "venv" / "bin").mkdir()
    (tmp_path / "venv" / "bin" / "palaver").symlink_to(Path(sys.executable).with_name("palaver"))

    assert "SQLite" in run("SessionStart", call("SessionStart"), path="/usr/bin:/bin", plugin=plugin)


def test_the_script_on_path_starts_the_installed_program(tmp_path: Path) -> None:
    """The plugin's script `palaver` never starts itself. Without an installed program, it says how to install it."""
    plugin = installed(tmp_path / "plugins")
    without = {"PATH": f"{plugin}/bin:/usr/bin:/bin", "HOME": str(tmp_path)}
    with_it = {"PATH": f"{plugin}/bin:{Path(sys.executable).parent}:/usr/bin:/bin"}

    missing = subprocess.run(["palaver"], env=without, capture_output=True, check=False)
    found = subprocess.run([plugin / "bin" / "palaver", "--version"], env=with_it, capture_output=True, check=True)

    assert (missing.returncode, missing.stdout) == (127, b"")
    assert b"pipx install palaver-archive" in missing.stderr
    assert __version__.encode() in found.stdout


@pytest.mark.parametrize("event", HOOKS)
def test_a_damaged_archive_is_no_nuisance(event: str, archive: Home) -> None:
    """If the database cannot be read, a hook prints nothing and exits with 0."""
    archive.database.write_bytes(b"no database" * 1000)

    assert not run(event, call(event))


def test_a_folder_without_permission_still_gets_its_context(archive: Home) -> None:
    """In a home that cannot be written, the start of a session is answered, but not recorded."""
    unprivileged.let_read(archive.root)
    hook = str(PLUGIN / "hooks" / "palaver-hook.sh")
    script = f"import subprocess; subprocess.run(['sh', {hook!r}, 'session-start'])"
    programs = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    with unprivileged.start(script, PATH=programs) as process:
        output, _ = process.communicate(call("SessionStart").decode(), timeout=30)

    assert "SQLite" in json.loads(output)["hookSpecificOutput"]["additionalContext"]
    unprivileged.let_write(archive.root)
    with Store.open(archive.database) as store:
        assert store.injections.totals() == []


def test_read_only_mode_writes_nothing(archive: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """In read-only mode, the hooks change no byte of the home."""
    monkeypatch.setenv("PALAVER_READ_ONLY", "1")
    with Store.open(archive.database):  # Another process keeps the database open, as a server does.
        before = {path: path.read_bytes() for path in archive.root.rglob("*") if path.is_file()}

        assert injected("SessionStart", call("SessionStart"))
        assert not run("SessionEnd", call("SessionEnd"))

        assert {path: path.read_bytes() for path in archive.root.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("event", ["UserPromptSubmit", "PreToolUse"])
def test_hooks_are_off_by_default(event: str, archive: Home) -> None:
    """Without a setting, only the start of a session is answered. The other hooks do not even start Palaver."""
    archive.config.unlink()
    broken = archive.root / "bin"
    broken.mkdir()
    (broken / "palaver").write_text(f"#!/bin/sh\ntouch {archive.root}/started\n")
    (broken / "palaver").chmod(0o700)

    assert not run(event, call(event), path=f"{broken}:/usr/bin:/bin")
    assert not (archive.root / "started").exists()
    run("SessionStart", call("SessionStart"), path=f"{broken}:/usr/bin:/bin")
    assert (archive.root / "started").exists()


@pytest.mark.usefixtures("archive")
def test_a_prompt_gets_related_observations_once() -> None:
    """A prompt about earlier work gets at most three observations of the project. They are shown once a session."""
    text = injected("UserPromptSubmit", call("UserPromptSubmit"))

    assert "SQLite" in text
    assert count(text) <= HookEvent.PROMPT.hook.budget
    assert not run("UserPromptSubmit", call("UserPromptSubmit"))
    assert not run("UserPromptSubmit", call("UserPromptSubmit", prompt="go on"))
    assert not run("UserPromptSubmit", call("UserPromptSubmit", prompt="how do I bake sourdough bread at home"))


def test_a_locked_archive_does_not_stop_the_agent(archive: Home) -> None:
    """If another process keeps the database locked, a hook ends after its deadline without a reply."""
    with Store.open(archive.database) as store, store.transaction():
        begun = time.monotonic()

        assert not run("SessionStart", call("SessionStart"))
        assert time.monotonic() - begun < 8


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    """Return a transcript that is not archived yet."""
    [source] = DEMO.rglob("3a17e5d0*.jsonl")
    path = tmp_path / "new.jsonl"
    path.write_text(source.read_text("utf-8").replace("3a17e5d0-91f4", "3a17e5d0-0000"), "utf-8")
    return path


def is_archived(home: Home, transcript: Path) -> bool:
    """Wait until background processes have archived a transcript and emptied the queue."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with Store.open(home.database) as store:
            archived = any(each.path == transcript for each in store.sources.all())
        if archived and not any(home.root.glob("ended-sessions*")):
            return True
        time.sleep(0.05)
    return False


def test_session_end_is_recorded_in_a_moment(archive: Home, transcript: Path) -> None:
    """The end of a session takes less than 50 ms, and then archives the session in the background."""
    best = 60.0
    for _ in range(5):
        begun = time.monotonic()
        run("SessionEnd", call("SessionEnd", transcript_path=str(transcript)))
        best = min(best, time.monotonic() - begun)

    assert best < 0.05
    assert is_archived(archive, transcript)


@pytest.mark.parametrize("agent", HOOK_CLIENTS, ids=lambda agent: agent.client.name)
def test_other_agents_archive_at_the_end_of_a_session(agent: HookClient, archive: Home, transcript: Path) -> None:
    """The command line for the end of a session of Codex and Gemini CLI archives the session in the background."""
    server = ServerEntry(sys.executable, ("-m", "palaver", "mcp"), {"PALAVER_HOME": str(archive.root)})
    [group] = json.loads(hooks_text(agent, server, [HookEvent.SESSION_START]))["hooks"]["SessionEnd"]
    data = json.dumps(json.loads(call("SessionEnd", transcript_path=str(transcript))), indent=2).encode()

    ran = subprocess.run(["/bin/sh", "-c", group["hooks"][0]["command"]], input=data, capture_output=True, check=True)

    assert (ran.stdout, ran.stderr) == (b"", b"")
    assert is_archived(archive, transcript)


def test_the_next_start_archives_what_was_left(archive: Home, transcript: Path) -> None:
    """If the background process was ended with the agent, the next session start archives the session."""
    archive.ended_sessions.write_bytes(call("SessionEnd", transcript_path=str(transcript)) + b"\n")

    run("SessionStart", call("SessionStart"))

    assert is_archived(archive, transcript)


def test_a_call_in_several_parts_and_lines_is_recorded(archive: Home, transcript: Path) -> None:
    """A call that the agent writes in two parts, as JSON of several lines, archives the session."""
    data = json.dumps(json.loads(call("SessionEnd", transcript_path=str(transcript))), indent=2).encode()
    script = PLUGIN / "hooks" / "palaver-hook.sh"
    programs = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    with subprocess.Popen(
        ["/bin/sh", str(script), "session-end"], stdin=subprocess.PIPE, env={**os.environ, "PATH": programs}
    ) as process:
        assert process.stdin is not None
        process.stdin.write(data[:20])
        process.stdin.flush()
        time.sleep(0.2)  # The script reads the first part alone.
        process.stdin.write(data[20:])

    assert is_archived(archive, transcript)


def starts_palaver(event: str, archive: Home, **environment: str) -> bool:
    """Return whether the script starts Palaver for an event."""
    programs = archive.root / "bin"
    programs.mkdir(exist_ok=True)
    (programs / "palaver").write_text(f"#!/bin/sh\ntouch {archive.root}/started\n")
    (programs / "palaver").chmod(0o700)
    started = archive.root / "started"
    started.unlink(missing_ok=True)
    subprocess.run(
        ["/bin/sh", str(PLUGIN / "hooks" / "palaver-hook.sh"), event], input=call("PreToolUse"), check=True,
        env={**os.environ, "PATH": f"{programs}:/usr/bin:/bin", **environment},
    )  # fmt: skip
    return started.exists()


@pytest.mark.parametrize(
    ("setting", "on"),
    [
        ('hooks = ["tool"]', True),
        ('hooks=["session-start","tool"]', True),
        ('  hooks  =   ["tool"]', True),
        ('"hooks"\t= ["tool"]', True),
        ('hooks = [\n  "session-start",\n  "tool",\n]', True),
        ('hooks = ["tool"] # all but "prompt"', True),
        ('hooks_off = ["tool"]', False),
        ('hooks = ["session-start"]', False),
        ("hooks = []", False),
    ],
)
def test_every_form_of_the_setting_is_read(setting: str, on: bool, archive: Home) -> None:
    """The script starts Palaver for each form that TOML allows, so that Palaver can read the setting itself."""
    archive.config.write_text(setting)

    assert (HookEvent.TOOL in Config.read(archive.config).hooks) is on
    assert starts_palaver("tool", archive) is on


@pytest.mark.parametrize("value", ["", "0", "false", "False", "f", "n", "NO", "Off", "1", "true", "yes", "on", "x"])
def test_read_only_mode_has_one_rule(value: str, archive: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The script and Palaver read the variable PALAVER_READ_ONLY alike."""
    monkeypatch.setenv("PALAVER_READ_ONLY", value)

    starts_palaver("session-end", archive)

    assert archive.ended_sessions.exists() is not is_read_only_mode()
    assert is_read_only_mode() is (value in {"1", "true", "yes", "on", "x"})


def test_a_command_that_failed_before_gets_its_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a shell command that failed in past sessions, the configured hook injects the command that worked."""
    shell = ShellHistory(tmp_path, tmp_path / "palaver")
    for day in (2, 6):
        shell.session(("npm test", MISSING, True), ("bun run test", "12 pass", False), day=day)
    home = shell.archive()
    write_settings(home.config, {"hooks": ["tool"]})
    monkeypatch.setenv("PALAVER_HOME", str(home.root))
    data = call("PreToolUse", cwd="/home/demo/shop", tool_input={"command": "npm test"})

    text = injected("PreToolUse", data)

    assert "`npm test` failed 2 times; `bun run test` worked" in text
    assert count(text) <= HookEvent.TOOL.hook.budget
    assert not run("PreToolUse", data)
