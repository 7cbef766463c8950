"""Tests of templates/environment.py."""

import plistlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.templates.environment import launchd_agent, systemd_unit

PROGRAM = '/opt/with space/pala"ver%h'
WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


def unescaped(text: str) -> str:
    """Return the word that systemd reads between quotes (systemd.syntax(7))."""
    data = re.sub(
        rb"\\x([0-9a-f]{2})|\\(.)|%(%)|\$(\$)",
        lambda found: bytes([int(found[1], 16)]) if found[1] else found[2] or found[3] or found[4],
        text.encode(),
    )
    return data.decode()


def line(unit: str, name: str) -> str:
    [found] = [each for each in unit.splitlines() if each.startswith(f"{name}=")]
    return found.partition("=")[2]


@given(WORDS, WORDS)
def test_special_characters_are_preserved(argument: str, value: str) -> None:
    """Quotes, spaces, percent and dollar signs, line breaks and other alphabets are preserved in a unit."""
    unit = systemd_unit(["/bin/true", argument], {"PALAVER_HOME": value})

    assert unescaped(line(unit, "ExecStart")) == f'"/bin/true" "{argument}"'
    assert unescaped(line(unit, "Environment")).replace("$$", "$") == f'"PALAVER_HOME={value}"'.replace("$$", "$")
    agent = plistlib.loads(launchd_agent(["/bin/true", "a"], {"PALAVER_HOME": "b & <c>"}).encode())
    assert agent["ProgramArguments"] == ["/bin/true", "a"]
    assert agent["EnvironmentVariables"] == {"PALAVER_HOME": "b & <c>"}


def test_line_break_in_a_path_adds_no_setting() -> None:
    """A line break in a path does not add a line to the unit."""
    unit = systemd_unit(["/bin/true", "a\nExecStop=/bin/false"], {"HOME": "/x\nType=oneshot"})

    assert "\nExecStop" not in unit
    assert line(unit, "Type") == "exec"


def test_failed_service_is_restarted() -> None:
    """Both services start at log-in and after a failure, but not after the user stops them."""
    unit = systemd_unit(["/bin/true"], {})
    agent = plistlib.loads(launchd_agent(["/bin/true"], {}).encode())

    assert (line(unit, "Restart"), line(unit, "WantedBy")) == ("on-failure", "default.target")
    assert (agent["RunAtLoad"], agent["KeepAlive"]) == (True, {"SuccessfulExit": False})


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="without systemd nobody can say how it reads a unit")
@pytest.mark.parametrize("folder", ["plain", "with space 100%h", 'it\'s "quoted" for 5 $HOME \\ more'])
def test_systemd_accepts_the_unit(tmp_path: Path, folder: str) -> None:
    """Systemd accepts the unit for any program folder."""
    program = tmp_path / folder / "palaver"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = tmp_path / "palaver.service"
    unit.write_text(systemd_unit([str(program), "watch"], {"PALAVER_HOME": "/my home"}))
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)

    assert "palaver" not in done.stderr


def test_refused_program_name_is_started_by_the_shell() -> None:
    """A program name that systemd refuses is started through the shell."""
    program = '/opt/it\'s "quoted" for 5 $HOME \\ more/palaver'

    command = unescaped(line(systemd_unit([program, "watch"], {}), "ExecStart"))

    assert command == f'"/bin/sh" "-c" "exec "$0" "$@"" "{program}" "watch"'
