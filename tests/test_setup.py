"""Tests for `palaver setup service`: what is shown, written, started and removed."""

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
    """What `systemctl` is asked to do, a line each."""
    return recorded(tmp_path, monkeypatch, 0)


def recorded(folder: Path, monkeypatch: pytest.MonkeyPatch, status: int) -> Path:
    log, program = folder / "calls", folder / "bin" / "systemctl"
    program.parent.mkdir(exist_ok=True)
    program.write_text(RECORDER.format(log=log, status=status))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    return log


def test_printing_does_nothing(unit: Path, calls: Path) -> None:
    """`--print` shows the unit, and nothing is written or started."""
    shown = service("--print")
    told = json.loads(service("--print", "--json").stdout)

    assert shown.exit_code == 0
    assert "ExecStart=" in shown.stdout
    assert told == {"path": str(unit), "text": shown.stdout}
    assert not unit.exists()
    assert not calls.exists()


def test_where_data_lies_is_carried_along(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service does not see this shell's settings: those that lead to data stand in the unit, and no others."""
    monkeypatch.setenv("CODEX_HOME", "/with space/codex")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")

    shown = service("--print").stdout

    assert 'Environment="CODEX_HOME=/with space/codex"\n' in shown
    assert f'Environment="PALAVER_HOME={home}/palaver"\n' in shown
    assert "secret" not in shown


def test_installing(unit: Path, calls: Path) -> None:
    """With `--yes` nothing is asked: the unit is shown, written, and started; doing it twice is fine."""
    shown = service("--yes")

    assert shown.exit_code == 0
    assert unit.read_text() == service("--print").stdout
    assert unit.read_text() in shown.stdout
    assert "Started" in shown.stdout
    wanted = ["--user daemon-reload", "--user enable palaver.service", "--user restart palaver.service"]
    assert calls.read_text().splitlines() == wanted
    told = json.loads(service("--yes", "--json").stdout)
    assert told == {"path": str(unit), "started": True}


def test_without_a_terminal_it_only_shows(unit: Path, calls: Path) -> None:
    """A script or an agent that looks changes nothing, and learns what would."""
    shown, told = service(), json.loads(service("--json").stdout)

    assert shown.exit_code == 0
    assert "palaver setup service --yes" in shown.stdout
    assert told == {"path": str(unit), "text": service("--print").stdout, "started": False}
    assert (unit.exists(), calls.exists()) == (False, False)


def test_what_cannot_be_started(unit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where systemd refuses, the unit stays written and the person learns what to type."""
    recorded(tmp_path, monkeypatch, 1)
    shown = service("--yes")

    assert shown.exit_code == 1
    assert f"{unit} was written, but not started: systemctl --user daemon-reload exited with 1" in shown.stderr
    assert "systemctl --user enable palaver.service" in shown.stderr
    assert unit.exists()
    told = service("--yes", "--json")
    assert told.exit_code == 1
    failed = json.loads(told.stdout)["error"]
    assert (failed["kind"], "written, but not started" in failed["message"]) == ("failed", True)
    assert "systemctl --user enable palaver.service" in failed["hint"]


def at_a_terminal(_: object) -> bool:
    """What a stream says that leads to one."""
    return True


@pytest.mark.parametrize(
    ("typed", "code", "told"), [("n\n", 0, "Nothing was written or started."), ("", 130, "stopped")]
)
def test_at_a_terminal_it_asks_first(
    typed: str, code: int, told: str, unit: Path, calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A no is an answer as good as any; no answer at all ends as Ctrl-C does. Neither writes a thing."""
    monkeypatch.setattr(f"{CliRunner.__module__}._NamedTextIOWrapper.isatty", at_a_terminal)
    result = CliRunner().invoke(main, ["setup", "service"], input=typed)

    assert (result.exit_code, told in result.output) == (code, True)
    assert (unit.exists(), calls.exists()) == (False, False)


def test_removing(unit: Path, calls: Path) -> None:
    """`--remove` stops the service and takes its file away; where there is none it says so."""
    service("--yes")
    calls.unlink()

    removed, again = service("--remove"), service("--remove")

    assert (removed.exit_code, again.exit_code) == (0, 0)
    assert not unit.exists()
    assert calls.read_text().splitlines() == ["--user disable --now palaver.service", "--user daemon-reload"]
    assert "removed" in removed.stdout
    assert "No service" in again.stdout
    assert json.loads(service("--remove", "--json").stdout) == {"path": str(unit), "removed": False}


def test_what_never_ran_is_not_said_to_be_stopped(unit: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where no systemd runs: the file goes, and why nothing was stopped is said."""
    service("--yes")
    monkeypatch.setenv("PATH", "")
    removed = service("--remove")

    assert removed.exit_code == 0
    assert removed.stdout == f"Removed {unit}, but could not stop the service: systemctl: No such file or directory\n"
    assert not unit.exists()


def test_a_home_that_is_no_place(monkeypatch: pytest.MonkeyPatch, unit: Path) -> None:
    """A service is not written for a home that no service could find."""
    monkeypatch.setenv("PALAVER_HOME", "relative")

    assert "not an absolute path" in service().stderr
    assert not unit.exists()
