"""Tests for `palaver install`: clients, the one question, and the background service."""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from palaver.agents.clients.client_setup import ConfigChange, apply
from palaver.agents.clients.client_table import CLIENTS
from palaver.cli import main

from . import demo

RECORDER = '#!/bin/sh\n[ "$2" = show-environment ] || echo "$*" >> "{log}"\nexit {status}\n'
linux = pytest.mark.skipif(sys.platform == "darwin", reason="these services are systemd's")


def install(*options: str, typed: str | None = None) -> Result:
    return CliRunner().invoke(main, ["install", *options], input=typed)


def answer(*options: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(install(*options, "--json").stdout)
    return found


def at_a_terminal(_: object) -> bool:
    """Return True, as the `isatty` method of a terminal does."""
    return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{CliRunner.__module__}._NamedTextIOWrapper.isatty", at_a_terminal)


@pytest.fixture
def unit(home: Path) -> Path:
    return home / ".config" / "systemd" / "user" / "palaver.service"


@pytest.fixture
def cursor(home: Path) -> Path:
    """Return the configuration file of Cursor, which is installed."""
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text('{\n  // mine\n  "mcpServers": {}\n}\n')
    return path


@pytest.fixture(autouse=True)
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the log of `systemctl` calls, one per line. No client is on PATH."""
    return recorded(tmp_path, monkeypatch, 0)


def recorded(folder: Path, monkeypatch: pytest.MonkeyPatch, status: int) -> Path:
    log, program = folder / "calls", folder / "bin" / "systemctl"
    program.parent.mkdir(exist_ok=True)
    program.write_text(RECORDER.format(log=log, status=status))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    return log


# Clients


@linux
@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize(
    ("typed", "written", "started"),
    [("\n", True, True), ("y\n", True, True), ("c\n", True, False), ("n\n", False, False)],
    ids=["default", "yes", "clients", "no"],
)
def test_one_question_covers_clients_and_service(
    typed: str, written: bool, started: bool, cursor: Path, unit: Path, calls: Path
) -> None:
    """One question offers all changes, only the clients, or none."""
    result = install(typed=typed)

    assert result.exit_code == 0
    assert result.output.count("?") == 1
    assert "Change 1 file and start the service? (y: yes, c: clients only, n: no)" in result.output
    assert ("palaver" in cursor.read_text(), unit.exists(), calls.exists()) == (written, started, started)
    assert ("Cursor: added. Restart Cursor to apply it." in result.output) == written
    assert ("The rest was not changed." in result.output) == (written and not started)
    assert ("Nothing was changed." in result.output) == (not written)


@pytest.mark.usefixtures("terminal")
def test_the_end_of_input_changes_nothing(cursor: Path, unit: Path) -> None:
    """The end of input at the question exits with 130 and changes nothing."""
    before = cursor.read_text()

    assert install(typed="").exit_code == 130
    assert (cursor.read_text(), unit.exists()) == (before, False)


def test_without_a_terminal_changes_are_only_shown(cursor: Path, unit: Path, calls: Path) -> None:
    """Without a terminal and `--yes`, the changes are shown, and the error requires `--yes`."""
    before = cursor.read_text()
    shown, reply = install("cursor"), answer()

    assert shown.exit_code == 1
    assert f"Cursor: add to {cursor}" in shown.stdout
    assert '  +      "command": ' in shown.stdout
    assert "--yes is required. Run `palaver install cursor --yes`" in shown.stderr
    assert [(row["client"], row["action"], row["done"]) for row in reply["clients"]] == [("cursor", "add", False)]
    assert reply["service"]["done"] is False
    assert (cursor.read_text(), unit.exists(), calls.exists()) == (before, False, False)


def test_named_clients_are_connected_without_the_service(home: Path) -> None:
    """Named clients are configured even if they are not installed, and nothing else is."""
    result = install("zed", "kiro", "--yes")

    assert result.exit_code == 0
    written = sorted(path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file())
    assert written == [".config/zed/settings.json", ".kiro/settings/mcp.json"]


def test_the_entry_of_a_yaml_file_is_shown(home: Path) -> None:
    """Palaver does not edit YAML: the entry is printed, nothing is written, and the command succeeds."""
    result = install("goose", "--yes")
    reply = json.loads(install("goose", "--yes", "--json").stdout)

    assert (result.exit_code, [*home.rglob("*.yaml*")]) == (0, [])
    assert f"Add this to {home}/.config/goose/config.yaml:\n\nextensions:\n  palaver:\n" in result.stdout
    [client] = reply["clients"]
    assert (client["action"], client["done"], client["error"]) == ("paste", False, None)
    assert client["snippet"].startswith("extensions:\n  palaver:\n")


def test_another_installation_at_the_same_time_is_no_error(cursor: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If another process adds the entry first, the client is connected, and nothing is reported as failed."""

    def applied_first_by_another(change: ConfigChange) -> None:
        if change.is_needed:
            apply(change)
        apply(change)

    monkeypatch.setattr("palaver.cli.install.apply", applied_first_by_another)
    result = install("cursor", "--yes")

    assert (result.exit_code, result.exception) == (0, None)
    assert '"palaver": {' in cursor.read_text()


def test_a_second_run_changes_nothing(cursor: Path) -> None:
    """A second run reports that the client is connected."""
    assert answer("--yes", "--no-service")["clients"][0]["done"] is True
    text = cursor.read_text()
    again = install("--yes", "--no-service")

    assert (again.exit_code, again.stdout) == (0, f"Cursor: already connected in {cursor}\n")
    assert cursor.read_text() == text


@pytest.mark.usefixtures("cursor")
def test_removal_restores_everything(home: Path) -> None:
    """`--remove` restores the files of all clients and removes the service."""
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    install("--yes")
    removed = install("--remove", "--yes")

    assert removed.exit_code == 0
    assert "Cursor: removed." in removed.stdout
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before


def test_a_broken_file_does_not_stop_the_others(cursor: Path, home: Path) -> None:
    """A file that cannot be parsed is reported and kept, other clients are connected, and the exit status is 1."""
    cursor.write_text("{")
    (home / ".factory").mkdir()
    shown, reply = install("--no-service"), answer("--yes", "--no-service")

    assert shown.exit_code == 1
    assert f"Cursor: not changed. {cursor}: invalid JSON" in shown.stdout
    errors = {row["client"]: row["error"] and row["error"]["kind"] for row in reply["clients"]}
    assert errors == {"cursor": "client_config_unusable", "droid": None}
    assert (cursor.read_text(), (home / ".factory" / "mcp.json").exists()) == ("{", True)
    alone = install("cursor", "--yes")
    assert (alone.exit_code, alone.stdout) == (1, "")


def test_secrets_beside_the_entry_are_not_shown(cursor: Path) -> None:
    """If the entry shares its line with a key of another server, the key is not shown."""
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    cursor.write_text(json.dumps({"mcpServers": {"x": {"env": {"GITHUB_TOKEN": key}}}}))
    shown, reply = install("cursor"), answer("cursor")

    assert key not in shown.stdout + json.dumps(reply)
    assert any(row.startswith("+") for row in reply["clients"][0]["diff"])
    install("cursor", "--yes")
    assert key in cursor.read_text()


def test_the_entry_in_a_file_of_one_row_is_shown_whole(cursor: Path) -> None:
    """Of a file without line breaks, only the entry to approve is shown, and it is not cut."""
    cursor.write_text(json.dumps({"theme": "dark " * 60, "mcpServers": {"a": {"command": "x"}}, "end": "e" * 200}))
    page = install("cursor").stdout

    assert re.search(r'\+….*"palaver": \{.*"args": \[.*"mcp"\]', page)
    assert "dark" not in page
    assert "eee" not in page


def test_a_client_that_rewrites_its_file_is_connected(cursor: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a client rewrites its file while the question is shown, the new file gets the entry."""

    def rewrite(*_: object, **__: object) -> tuple[bool, bool]:
        cursor.write_text('{"later": 1}')
        return True, True

    monkeypatch.setattr("palaver.cli.install._answer", rewrite)
    result = install("cursor")

    assert result.exit_code == 0
    assert json.loads(cursor.read_text()).keys() == {"later", "mcpServers"}


def test_toolsets_are_passed_to_the_server(cursor: Path) -> None:
    """`--toolset` is part of the written command, and an unknown toolset is an error."""
    install("cursor", "--yes", "--toolset", "conversation,fabric")

    [line] = [line for line in cursor.read_text().splitlines() if "conversation" in line]
    assert line.strip() == '"conversation,fabric"'
    assert install("cursor", "--toolset", "nonsense").exit_code == 2


def test_toolsets_with_a_common_tool_name_get_a_prefix() -> None:
    """If two toolsets define a tool of the same name, the written command has `--prefix`, without which it fails."""
    shown = json.loads(install("generic", "--toolset", "conversation, theo").stdout)

    assert shown["mcpServers"]["palaver"]["args"][-3:] == ["--toolset", "conversation,theo", "--prefix"]


def test_a_container_can_run_the_server(cursor: Path, home: Path) -> None:
    """`--docker` writes an entry that runs the image with the home mounted."""
    assert install("cursor", "--yes", "--docker").exit_code == 0

    assert f"type=bind,source={home}/palaver,target=/data" in cursor.read_text()


@pytest.mark.parametrize("client", [*CLIENTS], ids=lambda client: client.name)
def test_entries_can_be_printed(client: Any, home: Path) -> None:
    """`--print` prints the entry of a client and writes nothing."""
    shown = install(client.name, "--print")
    [text] = answer(client.name, "--print")["texts"]

    assert text == {"client": client.name, "path": str(client.path), "text": shown.stdout}
    assert "palaver" in shown.stdout
    assert list(home.rglob("*")) == []


@pytest.mark.usefixtures("cursor")
def test_print_shows_installed_clients() -> None:
    """`--print` without names shows the installed clients, and `--all --print` all of them without an empty path."""
    every = [each["client"] for each in answer("--print", "--all")["texts"]]

    assert [each["client"] for each in answer("--print")["texts"]] == ["cursor"]
    assert {"cursor", "zed", "generic", "codex-hooks"} < set(every)
    assert "\ngeneric\n" in install("--print", "--all").stdout


def test_print_without_a_client_is_an_error() -> None:
    """Without an installed client, `--print` says that a client must be named."""
    result = install("--print")

    assert (result.exit_code, "CLIENT`: claude-code" in result.output) == (2, True)


def test_settings_for_other_clients_are_printed() -> None:
    """`generic` prints the common JSON setting, and `docker` one text per client."""
    shown, texts = install("generic"), answer("docker")["texts"]

    assert json.loads(shown.stdout)["mcpServers"]["palaver"]["args"][-1] == "mcp"
    assert [text["client"] for text in texts] == [f"docker, {client.name}" for client in CLIENTS]
    assert all("palaver-archive" in text["text"] for text in texts)


def test_no_installed_client_is_reported() -> None:
    """Without any client, the names of all clients are listed."""
    result = install("--no-service")

    assert result.exit_code == 0
    assert result.stdout.startswith(
        "No installed client found. To connect one, run `palaver install CLIENT`: claude-code, claude, cursor,"
    )


@pytest.mark.parametrize("options", [["emacs"], ["--all", "cursor"], ["--print", "--remove"]], ids=" ".join)
def test_wrong_arguments_are_usage_errors(options: list[str]) -> None:
    """An unknown client or contradictory options are usage errors."""
    assert install(*options).exit_code == 2


def test_a_temporary_environment_is_refused(cursor: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program in the cache of uvx is not written, because uv deletes it. It can remove entries."""
    monkeypatch.setattr(sys, "prefix", "/home/zoë/.cache/uv/archive-v0/Xy")
    result = install("cursor", "--yes")

    assert (result.exit_code, "uv tool install palaver-archive" in result.stderr) == (1, True)
    assert "palaver" not in cursor.read_text()
    assert install("--remove", "--yes").exit_code == 0


@linux
def test_the_sample_archive_gets_no_service(
    cursor: Path, unit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For the sample archive, clients are connected but no service is offered, because it would archive into it."""
    monkeypatch.setenv("PALAVER_HOME", str(demo.archived(tmp_path / "sample").root))
    assert install("--yes").exit_code == 0
    assert unit.exists()  # This home has another name than the sample's, so it is the user's own.
    install("service", "--remove", "--yes")
    (tmp_path / "sample").rename(tmp_path / "other")
    home = next(path.parent for path in (tmp_path / "other").rglob("palaver.db"))
    home.rename(tmp_path / "demo")
    monkeypatch.setenv("PALAVER_HOME", str(tmp_path / "demo"))

    assert answer("--yes")["service"] is None
    assert (str(tmp_path / "demo") in cursor.read_text(), unit.exists()) == (True, False)


# Service


@linux
def test_print_has_no_effect(unit: Path, calls: Path) -> None:
    """`--print` shows the unit and neither writes nor starts it."""
    shown = install("service", "--print")
    [text] = answer("service", "--print")["texts"]

    assert shown.exit_code == 0
    assert "ExecStart=" in shown.stdout
    assert text == {"client": "service", "path": str(unit), "text": shown.stdout}
    assert (unit.exists(), calls.exists()) == (False, False)


@linux
def test_unit_contains_settings_of_data_folders(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The unit contains the environment variables that locate data, and no others."""
    monkeypatch.setenv("CODEX_HOME", "/with space/codex")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")

    shown = install("service", "--print").stdout

    assert 'Environment="CODEX_HOME=/with space/codex"\n' in shown
    assert f'Environment="PALAVER_HOME={home}/palaver"\n' in shown
    assert "secret" not in shown


@linux
def test_service_is_installed_and_started(unit: Path, calls: Path) -> None:
    """With `--yes` the unit is shown, written and started without a prompt, also when repeated."""
    shown = install("service", "--yes")

    assert shown.exit_code == 0
    assert unit.read_text() == install("service", "--print").stdout
    assert unit.read_text() in shown.stdout
    assert "Service started." in shown.stdout
    wanted = ["--user daemon-reload", "--user enable palaver.service", "--user restart palaver.service"]
    assert calls.read_text().splitlines() == wanted
    service = answer("service", "--yes")["service"]
    assert (service["path"], service["action"], service["done"]) == (str(unit), "add", True)
    assert answer("--yes")["service"]["action"] == "keep"


@linux
def test_a_failed_start_is_reported(unit: Path, cursor: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If systemd refuses, clients are connected, the unit stays written, and the second line has the commands."""
    recorded(tmp_path, monkeypatch, 1)
    shown = install("--yes")

    assert shown.exit_code == 1
    problem = "The service did not start: systemctl --user daemon-reload exited with 1"
    assert f"palaver: {problem}\nStart it with: systemctl --user daemon-reload && " in shown.stderr
    assert "systemctl --user enable palaver.service" in shown.stderr
    assert (unit.exists(), "palaver" in cursor.read_text()) == (True, True)
    unit.unlink()
    reply = answer("--yes")
    assert problem in reply["service"]["error"]["message"]
    assert reply["clients"][0]["action"] == "keep"


@linux
@pytest.mark.parametrize(
    "problem",
    [
        "Failed to connect to bus: No medium found",
        "Failed to connect to user scope bus via local transport: No such file or directory",
        "$DBUS_SESSION_BUS_ADDRESS and $XDG_RUNTIME_DIR not defined (consider using --machine=<user>@.host --user)",
    ],
)
def test_without_a_user_bus_watch_is_offered(
    problem: str, unit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where systemd has no user bus, `palaver watch` is offered, each time. Only a named service is an error."""
    log = recorded(tmp_path, monkeypatch, 1)
    (log.parent / "bin" / "systemctl").write_text(f"#!/bin/sh\necho '{problem}' >&2\nexit 1\n")
    named, first, second = install("service", "--yes"), install("--yes"), install("--yes")

    assert named.stderr == "palaver: The service needs a user bus of systemd\nRun `palaver watch` instead.\n"
    assert (named.exit_code, unit.exists()) == (1, False)
    for shown in (first, second):
        assert "service: not available without a user bus of systemd. Run `palaver watch` instead.\n" in shown.stdout
        assert (shown.exit_code, shown.stderr) == (0, "")


@linux
@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize(("typed", "code", "message"), [("n\n", 0, "Nothing was changed."), ("", 130, "stopped")])
def test_the_user_is_asked_before_the_service_starts(
    typed: str, code: int, message: str, unit: Path, calls: Path
) -> None:
    """The answer `no` exits with 0 and the end of input with 130. Neither writes or starts anything."""
    result = install("service", typed=typed)

    assert (result.exit_code, message in result.output) == (code, True)
    assert (unit.exists(), calls.exists()) == (False, False)


@linux
def test_service_is_removed(unit: Path, calls: Path) -> None:
    """`--remove` stops the service and deletes its unit. A missing service is reported."""
    install("service", "--yes")
    calls.unlink()

    removed, again = (install("service", "--remove", "--yes") for _ in range(2))

    assert (removed.exit_code, again.exit_code) == (0, 0)
    assert not unit.exists()
    assert calls.read_text().splitlines() == ["--user disable --now palaver.service", "--user daemon-reload"]
    assert f"Stopped and removed {unit}." in removed.stdout
    assert "No service" in again.stdout


@linux
def test_without_systemctl_the_service_is_not_offered(
    unit: Path, cursor: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without systemctl only clients are connected. An installed unit can still be removed."""
    install("service", "--yes")
    monkeypatch.setenv("PATH", os.devnull)
    removed = install("service", "--remove", "--yes")
    shown = install("--yes")

    problem = f"Removed {unit}, but could not stop the service: systemctl: No such file or directory\n"
    assert removed.stdout.endswith(problem) or "systemctl: " in removed.stdout
    assert not unit.exists()
    assert (shown.exit_code, "Run `palaver watch` instead." in shown.stdout) == (0, True)
    assert "palaver" in cursor.read_text()


def test_a_relative_home_is_rejected(monkeypatch: pytest.MonkeyPatch, cursor: Path, unit: Path) -> None:
    """Nothing is written for a relative PALAVER_HOME."""
    monkeypatch.setenv("PALAVER_HOME", "relative")
    before = cursor.read_text()

    assert "not an absolute path" in install("--yes").stderr
    assert (unit.exists(), cursor.read_text()) == (False, before)


def test_hooks_are_installed_only_when_named(home: Path) -> None:
    """`install hooks` adds the hooks of installed agents, `install` alone does not, and `--remove` removes them."""
    (home / ".codex").mkdir()
    hooks = home / ".codex" / "hooks.json"

    install("--yes", "--no-service")
    assert not hooks.exists()
    named = install("hooks", "--yes")
    assert "Codex hooks: added. Restart Codex to apply it." in named.stdout
    assert "/hooks in Codex" in named.stdout
    assert "Gemini" not in named.stdout
    assert json.loads(hooks.read_text())["hooks"].keys() == {"SessionStart", "SessionEnd"}
    assert json.loads(install("codex-hooks", "--print").stdout)["hooks"].keys() == {"SessionStart", "SessionEnd"}
    assert f"\nCodex hooks: {hooks}\n" in install("--print").stdout

    removed = install("--remove", "--yes", "--no-service")
    assert not hooks.exists(), removed.output
    assert not (home / ".codex" / "config.toml").exists()


def test_claude_code_gets_a_hint_about_the_plugin(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For Claude Code, the commands that install the plugin are printed. The folder in them lists the plugin."""
    (home / ".claude").mkdir()
    monkeypatch.delenv("PALAVER_HOME", raising=False)

    shown = install("claude-code", "--yes").stdout

    [folder] = re.findall(r"claude plugin marketplace add (\S+) && claude plugin install palaver@palaver", shown)
    market = json.loads((Path(folder) / ".claude-plugin" / "marketplace.json").read_text())
    assert (Path(folder) / market["plugins"][0]["source"] / ".claude-plugin" / "plugin.json").is_file()
    assert shown.rstrip().endswith("install claude-code --remove")
    assert "plugin" not in install("claude-code", "--remove", "--yes").stdout
    assert "plugin" not in install("cursor", "--yes").stdout


def test_the_hint_reports_tools_that_the_plugin_lists_too(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the plugin is enabled, the hint says how to remove the entry. With PALAVER_HOME, there is no hint."""
    (home / ".claude").mkdir()
    (home / ".claude" / "settings.json").write_text('{"enabledPlugins": {"palaver@palaver": true}}')
    monkeypatch.delenv("PALAVER_HOME", raising=False)

    shown = install("claude-code", "--yes").stdout

    assert "Claude Code: the plugin lists the tools too. Remove this entry:" in shown
    assert "marketplace" not in shown
    monkeypatch.setenv("PALAVER_HOME", str(home / "other"))
    assert "plugin" not in install("claude-code", "--yes").stdout


# Skill, agent and slash commands


def test_skills_are_installed_only_when_named(home: Path) -> None:
    """`install skills` adds the files of installed agents, `install` alone does not, and `--remove` deletes them."""
    (home / ".codex").mkdir()
    agent = home / ".codex" / "agents" / "search-conversation.toml"

    plain = install("--yes", "--no-service")
    assert not agent.exists()
    assert "Codex: to add a skill, an agent and hooks, run `palaver install skills hooks`." in plain.stdout
    named = install("skills", "--yes")
    assert f"Codex, agent: write {agent}" in named.stdout
    assert "Codex, skill: added.\nCodex, agent: added. Restart Codex to apply it.\n" in named.stdout
    assert "Gemini" not in named.stdout
    assert "to add a skill" not in install("codex").stdout
    again = install("codex-skills")
    assert (again.exit_code, again.stdout.count("already written")) == (0, 2)

    removed = install("--remove", "--yes")
    assert [each.name for each in agent.parents[1].iterdir()] == [], removed.output


def test_a_connected_client_gets_its_skills(home: Path) -> None:
    """A client without a file of its own gets the skill after it was connected. The hint then disappears."""
    (home / ".gemini").mkdir()
    assert "run `palaver install skills hooks`" in install("gemini", "--yes").stdout

    assert "Gemini CLI, skill: added." in install("skills", "--yes").stdout
    assert "palaver install skills" not in install("gemini", "--yes").stdout


def test_skills_are_printed(home: Path) -> None:
    """`--print` prints the files of a named agent, or of the installed agents, and writes nothing."""
    (home / ".codex").mkdir()

    shown = answer("codex-skills", "skills", "--print")["texts"]
    grouped = answer("skills", "--print")["texts"]

    assert [each["path"].rpartition("/")[2] for each in shown] == ["SKILL.md", "search-conversation.toml"]
    assert grouped == shown
    assert list((home / ".codex").iterdir()) == []
