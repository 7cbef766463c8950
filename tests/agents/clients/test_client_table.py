"""Tests of agents/clients/client_table.py."""

import re
import sys
from pathlib import Path

import pytest

from palaver.agents.clients.client_table import CLIENTS, find_client
from palaver.core.errors import InvalidInput

from .config_samples import write

PAGE = Path(__file__).parents[3] / "docs" / "clients.md"


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "CLAUDE_CONFIG_DIR",
        "XDG_CONFIG_HOME",
        "GEMINI_CLI_HOME",
        "COPILOT_HOME",
        "KIMI_SHARE_DIR",
        "KIMI_CODE_HOME",
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(("platform", "column"), [("darwin", 0), ("linux", -1)])
def test_the_page_names_every_file(platform: str, column: int, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/clients.md lists the name, the files, and the key of each client, in the order of the table."""
    monkeypatch.setattr(sys, "platform", platform)
    rows = re.findall(r"^\| [^|]+ \| `([\w-]+)` \| (.+?) \| `(\w+)` \|", PAGE.read_text("utf-8"), re.MULTILINE)
    listed = [(name, re.findall(r"`(~/[^`]+)`", files)[column], key) for name, files, key in rows]

    assert listed == [
        (client.name, f"~/{client.path.relative_to(home).as_posix()}", client.section) for client in CLIENTS
    ]


@pytest.mark.parametrize(
    ("client", "variable", "file"),
    [
        ("claude-code", "CLAUDE_CONFIG_DIR", ".claude.json"),
        ("codex", "CODEX_HOME", "config.toml"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/settings.json"),
        ("copilot", "COPILOT_HOME", "mcp-config.json"),
        ("kimi", "KIMI_SHARE_DIR", "mcp.json"),
        ("kimi-code", "KIMI_CODE_HOME", "mcp.json"),
        ("opencode", "XDG_CONFIG_HOME", "opencode/opencode.json"),
        ("zed", "XDG_CONFIG_HOME", "zed/settings.json"),
        ("goose", "XDG_CONFIG_HOME", "goose/config.yaml"),
    ],
)
def test_variables_select_the_folder(
    client: str, variable: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment variable of a client selects the folder of its configuration."""
    monkeypatch.setenv(variable, str(tmp_path / "än other"))

    assert find_client(client).path == tmp_path / "än other" / file


def test_an_existing_jsonc_file_is_used(home: Path) -> None:
    """OpenCode's `opencode.jsonc` is changed if it is the only file."""
    folder = home / ".config" / "opencode"
    write(folder / "opencode.jsonc", "{}")
    assert find_client("opencode").path == folder / "opencode.jsonc"

    write(folder / "opencode.json", "{}")
    assert find_client("opencode").path == folder / "opencode.json"


def test_installed_clients_are_found(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client is installed if its configuration, its folder or its program exists."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [client.name for client in CLIENTS if client.is_installed] == []

    write(home / ".claude.json", "{}")
    (home / ".cursor").mkdir()
    (home / ".gemini" / "antigravity").mkdir(parents=True)
    program = write(tmp_path / "goose", "#!/bin/sh\n")
    program.chmod(0o755)
    assert [client.name for client in CLIENTS if client.is_installed] == ["claude-code", "cursor", "goose"]


def test_an_unknown_client_is_an_error() -> None:
    """The error for an unknown client names the known ones."""
    with pytest.raises(InvalidInput) as raised:
        find_client("emacs")

    assert all(client.name in raised.value.full_message for client in CLIENTS)


def test_another_file_follows_the_location_of_the_configuration(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A file beside the configuration file has its folder, also if a variable moves that folder."""
    monkeypatch.setenv("GEMINI_CLI_HOME", str(tmp_path))
    found = find_client("gemini").beside("commands/a.toml", "skills", ", command")

    assert (found.name, found.title) == ("gemini-skills", "Gemini CLI, command")
    assert found.path == tmp_path / ".gemini/commands/a.toml"
