"""`palaver hooks` shows the hooks and switches them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from palaver.archiver.store import WATCHER, Store
from palaver.cli import main
from palaver.core.config import Config
from palaver.core.home import DEMO, Home
from palaver.core.hooks import HookEvent
from palaver.core.reports import Injection

from . import demo


def palaver(*arguments: str, code: int = 0, given: str = "") -> Result:
    result = CliRunner().invoke(main, ["hooks", *arguments], input=given)
    assert result.exit_code == code, result.output
    return result


def setting() -> Config:
    return Config.read(Home.find().config)


def answer(*arguments: str) -> Any:
    return json.loads(palaver(*arguments, "--json").stdout)


def test_only_the_start_of_a_session_is_on_by_default() -> None:
    """Without settings and an archive, `status` shows the default and no injections, and creates nothing."""
    assert answer("status") == {
        "events": {"session-start": True, "prompt": False, "tool": False},
        "installed_in": [],
        "hooks_off": [],
        "injections": [],
    }
    assert not Home.find().root.exists()


def test_one_command_switches_all_hooks_off_and_on() -> None:
    """`off` switches all hooks off, `on` restores the default, and `on EVENT` adds events in their usual order."""
    palaver("off")
    assert setting().hooks == ()
    assert "hooks = []" in Home.find().config.read_text()
    palaver("on")
    assert setting().hooks == ("session-start",)
    assert "hooks" not in Home.find().config.read_text()
    palaver("on", "tool", "prompt")
    assert setting().hooks == ("session-start", "prompt", "tool")
    palaver("off", "session-start")
    assert setting().hooks == ("prompt", "tool")
    palaver("on")
    assert setting().hooks == ("session-start",)


def test_hooks_are_switched_off_in_one_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`off --project .` adds the folder of the project, and `on --project .` removes it."""
    monkeypatch.setenv("PALAVER_HOME", str(demo.archived(tmp_path).root))
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    (tmp_path / "shop" / "src").mkdir()
    monkeypatch.chdir(tmp_path / "shop" / "src")

    palaver("off", "--project", ".")
    palaver("off", "--project", "tide-clock")
    assert setting().hooks_off == (str(tmp_path / "shop"), "tide-clock")
    assert "tide-clock" in palaver("status").stdout
    palaver("on", "--project", ".")
    assert setting().hooks_off == ("tide-clock",)
    assert "not off" in palaver("on", "--project", ".", code=2).output
    assert "Leave out the events" in palaver("off", "tool", "--project", ".", code=2).output


def test_an_unknown_project_is_not_switched_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`off --project` refuses a name and a folder that are unknown to the archive, but `on` removes any of them."""
    home = demo.archived(tmp_path)
    monkeypatch.setenv("PALAVER_HOME", str(home.root))
    monkeypatch.chdir(tmp_path)

    refused = palaver("off", "--project", "tide-clok", code=2).output
    assert "Unknown project: tide-clok" in refused
    assert "Did you mean tide-clock" in refused
    assert f"Unknown project: {tmp_path}" in palaver("off", "--project", ".", code=2).output
    assert setting().hooks_off == ()

    home.config.write_text(f'hooks_off = ["tide-clok", "{tmp_path}"]\n')
    assert f"Off in: tide-clok, {tmp_path}" in palaver("status").stdout
    palaver("on", "--project", "tide-clok")
    palaver("on", "--project", ".")
    assert setting().hooks_off == ()


@pytest.mark.parametrize("off", ["/home/demo/tide-clock", "/home/demo", "tide-clock"])
def test_a_project_that_is_off_gets_nothing(off: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project named by its folder, a folder above or its name gets no text, but another project does."""
    home = demo.remembering(tmp_path)
    monkeypatch.setenv("PALAVER_HOME", str(home.root))
    call = json.dumps({"session_id": "s1", "cwd": "/home/demo/tide-clock"})

    assert "SQLite" in palaver("run", "session-start", given=call).stdout
    palaver("off", "--project", off)

    assert palaver("run", "session-start", given=call.replace("s1", "s2")).stdout == ""
    other = palaver("run", "session-start", given=call.replace("tide-clock", "seed-library")).stdout
    assert bool(other) == (off != "/home/demo")


def test_injections_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`hooks status` counts the last 30 days, `stats` counts everything."""
    home = demo.remembering(tmp_path)
    monkeypatch.setenv("PALAVER_HOME", str(home.root))
    with Store.open(home.database) as store, store.transaction():
        store.injections.add(Injection(1_000, HookEvent.TOOL, "s1", "project:shop", 40, ("obs-1",)))
    call = json.dumps({"session_id": "s2", "cwd": "/home/demo/tide-clock"})
    palaver("run", "session-start", given=call)

    [recent] = answer("status")["injections"]
    assert (recent["event"], recent["injections"], recent["sessions"]) == ("session-start", 1, 1)
    page = CliRunner().invoke(main, ["stats"]).stdout
    assert "- tool: 1 injection in 1 session, ~40 tokens" in page
    assert f"- session-start: 1 injection in 1 session, ~{recent['tokens']} tokens" in page


def test_status_shows_where_the_hooks_are_installed(home: Path) -> None:
    """`status` lists the agents with hooks. After `on`, the output says how other agents get the new hook."""
    assert "Installed in: none. For Claude Code, `palaver install claude-code` prints" in palaver("status").stdout

    assert CliRunner().invoke(main, ["install", "codex-hooks", "--yes"]).exit_code == 0
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text('{"enabledPlugins": {"palaver@palaver": true, "other@palaver": true}}')
    assert "Installed in: Claude Code, Codex\n" in palaver("status").stdout
    assert "run `palaver install hooks` again" in palaver("on", "prompt").stdout

    settings.write_text('{"enabledPlugins": {"palaver@palaver": false}}')
    assert answer("status")["installed_in"] == ["Codex"]


def test_an_unknown_event_is_ignored() -> None:
    """`run` answers the event of a newer or older plugin with exit status 0 and no output."""
    assert palaver("run", "other").output == ""


@pytest.mark.parametrize("event", [*HookEvent, "session-end"])
def test_run_loads_no_large_library(event: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No hook imports torch, sentence-transformers, anthropic, mcp or pydantic. Only a prompt is embedded.

    Only the end of a session extracts observations.
    """
    home = demo.archived(tmp_path)
    monkeypatch.setenv("PALAVER_HOME", str(home.root))
    home.config.write_text('hooks = ["session-start", "prompt", "tool"]\n')
    call = {"session_id": "s1", "cwd": "/home/demo/tide-clock", "prompt": "do we keep the readings in SQLite or JSON"}
    start = f"from palaver.cli import main; main(['hooks', 'run', '{event}'], standalone_mode=False)"
    program = f"import sys; {start}; print(*sys.modules, file=sys.stderr)"

    ran = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(call | {"tool_input": {"command": "python -m pytest"}}),
        check=True, capture_output=True, text=True,
    )  # fmt: skip

    heavy = {"torch", "sentence_transformers", "anthropic", "genai_prices", "mcp", "pydantic"}
    heavy |= {"numpy", "onnxruntime"} if event in {HookEvent.SESSION_START, HookEvent.TOOL} else set()
    heavy |= set() if event == "session-end" else {"palaver.observe.rules.rule_extractor"}
    assert heavy.intersection(ran.stderr.split()) == set()


def test_the_watcher_archives_ended_sessions_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the background archiver runs, the end of a session only empties the queue."""
    home = demo.archived(tmp_path)
    monkeypatch.setenv("PALAVER_HOME", str(home.root))
    [source] = DEMO.rglob("3a17e5d0*.jsonl")
    new = tmp_path / "new.jsonl"
    new.write_text(source.read_text("utf-8").replace("3a17e5d0-91f4", "3a17e5d0-0000"), "utf-8")
    ended = json.dumps({"transcript_path": str(new)}) + "\n"

    def archived_by_hook() -> bool:
        home.ended_sessions.write_text(ended)
        palaver("run", "session-end")
        assert not home.ended_sessions.exists()
        with Store.open(home.database) as store:
            return any(each.path == new for each in store.sources.all())

    with Store.open(home.database) as store, store.leases.hold(WATCHER):
        assert not archived_by_hook()
    assert archived_by_hook()
