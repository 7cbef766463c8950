"""Tests for `palaver setup service`: display, installation, start and removal."""

import json
import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from palaver.cli import main

pytestmark = pytest.mark.skipif(sys.platform == "darwin", reason="these services are systemd's")

RECORDER = '#!/bin/sh\necho "$*" >> "{log}"\nexit {status}\n'


def service(*options: str) -> Result:
    return CliRunner().invoke(main, ["setup", "service", *options])


@pytest.fixture
def unit(home: Path) -> Path:
    return home / ".config" / "systemd" / "user" / "palaver.service"


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the log of `systemctl` calls, one per line."""
    return recorded(tmp_path, monkeypatch, 0)


def recorded(folder: Path, monkeypatch: pytest.MonkeyPatch, status: int) -> Path:
    log, program = folder / "calls", folder / "bin" / "systemctl"
    program.parent.mkdir(exist_ok=True)
    program.write_text(RECORDER.format(log=log, status=status))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    return log


def test_print_has_no_effect(unit: Path, calls: Path) -> None:
    """`--print` shows the unit and neither writes nor starts it."""
    shown = service("--print")
    reply = json.loads(service("--print", "--json").stdout)

    assert shown.exit_code == 0
    assert "ExecStart=" in shown.stdout
    assert reply == {"path": str(unit), "text": shown.stdout}
    assert not unit.exists()
    assert not calls.exists()


def test_unit_contains_settings_of_data_folders(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The unit contains the environment variables that locate data, and no others."""
    monkeypatch.setenv("CODEX_HOME", "/with space/codex")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")

    shown = service("--print").stdout

    assert 'Environment="CODEX_HOME=/with space/codex"\n' in shown
    assert f'Environment="PALAVER_HOME={home}/palaver"\n' in shown
    assert "secret" not in shown


def test_service_is_installed_and_started(unit: Path, calls: Path) -> None:
    """With `--yes` the unit is shown, written and started without a prompt, also when repeated."""
    shown = service("--yes")

    assert shown.exit_code == 0
    assert unit.read_text() == service("--print").stdout
    assert unit.read_text() in shown.stdout
    assert "Service started." in shown.stdout
    wanted = ["--user daemon-reload", "--user enable palaver.service", "--user restart palaver.service"]
    assert calls.read_text().splitlines() == wanted
    reply = json.loads(service("--yes", "--json").stdout)
    assert reply == {"path": str(unit), "started": True}


def test_without_a_terminal_nothing_is_installed(unit: Path, calls: Path) -> None:
    """Without a terminal and `--yes`, the unit is shown but not installed, and the output suggests `--yes`."""
    shown, reply = service(), json.loads(service("--json").stdout)

    assert shown.exit_code == 0
    assert "palaver setup service --yes" in shown.stdout
    assert reply == {"path": str(unit), "text": service("--print").stdout, "started": False}
    assert (unit.exists(), calls.exists()) == (False, False)


def test_a_failed_start_is_reported(unit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If systemd refuses, the unit stays written and the error lists the commands to run."""
    recorded(tmp_path, monkeypatch, 1)
    shown = service("--yes")

    assert shown.exit_code == 1
    assert (
        f"{unit} was written, but the service did not start: systemctl --user daemon-reload exited with 1"
        in shown.stderr
    )
    assert "systemctl --user enable palaver.service" in shown.stderr
    assert unit.exists()
    result = service("--yes", "--json")
    assert result.exit_code == 1
    failed = json.loads(result.stdout)["error"]
    assert (failed["kind"], "written, but the service did not start" in failed["message"]) == ("failed", True)
    assert "systemctl --user enable palaver.service" in failed["hint"]


def at_a_terminal(_: object) -> bool:
    """Return True, as the `isatty` method of a terminal does."""
    return True


@pytest.mark.parametrize(
    ("typed", "code", "message"), [("n\n", 0, "The service was not installed."), ("", 130, "stopped")]
)
def test_on_a_terminal_the_user_is_asked_first(
    typed: str, code: int, message: str, unit: Path, calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer `no` exits with 0 and the end of input with 130. Neither writes or starts anything."""
    monkeypatch.setattr(f"{CliRunner.__module__}._NamedTextIOWrapper.isatty", at_a_terminal)
    result = CliRunner().invoke(main, ["setup", "service"], input=typed)

    assert (result.exit_code, message in result.output) == (code, True)
    assert (unit.exists(), calls.exists()) == (False, False)


def test_service_is_removed(unit: Path, calls: Path) -> None:
    """`--remove` stops the service and deletes its unit. A missing service is reported."""
    service("--yes")
    calls.unlink()

    removed, again = service("--remove"), service("--remove")

    assert (removed.exit_code, again.exit_code) == (0, 0)
    assert not unit.exists()
    assert calls.read_text().splitlines() == ["--user disable --now palaver.service", "--user daemon-reload"]
    assert "removed" in removed.stdout
    assert "No service" in again.stdout
    assert json.loads(service("--remove", "--json").stdout) == {"path": str(unit), "removed": False}


def test_removal_without_systemctl_is_reported(unit: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without systemctl the unit is removed, and the output says why the service could not be stopped."""
    service("--yes")
    monkeypatch.setenv("PATH", "")
    removed = service("--remove")

    assert removed.exit_code == 0
    assert removed.stdout == f"Removed {unit}, but could not stop the service: systemctl: No such file or directory\n"
    assert not unit.exists()


def test_a_relative_home_is_rejected(monkeypatch: pytest.MonkeyPatch, unit: Path) -> None:
    """No service is written for a relative PALAVER_HOME."""
    monkeypatch.setenv("PALAVER_HOME", "relative")

    assert "not an absolute path" in service().stderr
    assert not unit.exists()
