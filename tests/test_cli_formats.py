"""`palaver up`, `status`, `doctor`, the viewer and `formats report` name what is not read."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from palaver.cli import main
from palaver.core.home import Home

from .viewer.viewing import viewing

SECRET = "harbour"


def palaver(*arguments: str, code: int = 0) -> str:
    ran = CliRunner().invoke(main, [*arguments, "--utc"])
    assert ran.exit_code == code, ran.output
    return ran.output


@pytest.fixture
def archived(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Archive a session with a record of an unknown type."""
    chats = home / ".qwen" / "projects" / "-shop" / "chats"
    chats.mkdir(parents=True)
    own: dict[str, Any] = {"sessionId": "019f0000-0000-7000-8000-000000000001", "version": "0.21", "cwd": "/shop"}
    asked = {"message": {"role": "user", "parts": [{"text": "Fix the login"}]}}
    records = [
        own | asked | {"uuid": "a", "parentUuid": None, "type": "user", "timestamp": "2026-03-01T10:00:00Z"},
        own | {"uuid": "b", "parentUuid": "a", "type": "system", "subtype": "mind_map", "systemPayload": {"x": SECRET}},
    ]
    (chats / "a.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    monkeypatch.setenv("PALAVER_HOME", str(tmp_path / "palaver"))
    return Home(tmp_path / "palaver")


@pytest.mark.usefixtures("archived")
def test_every_report_names_the_agent_its_version_and_the_sign() -> None:
    """`up` lists the agents that it found. Only `formats report` has the shape of an unknown record."""
    line = "Formats: unknown records in qwen-code (1 line). Details: palaver formats report\n"
    pages = [palaver("up"), palaver("status"), palaver("doctor", code=1)]

    assert "Agents (with sub-agents): qwen-code 1 session (0.21)\n" in pages[0]
    assert [line in page for page in pages[:2]] == [True] * 2
    assert "qwen-code 0.21: records of the unknown type system/mind_map\n" in pages[2]
    assert "healthy" not in pages[2]
    assert [word in page for page in pages for word in (SECRET, "sessionId")] == [False] * 6


def test_a_report_for_the_developers_is_redacted(archived: Home) -> None:
    """`formats report` prints shapes of records. The option --agent accepts aliases."""
    palaver("up")
    report = palaver("formats", "report")
    found = json.loads(palaver("formats", "report", "--agent", "qwen", "--json"))

    assert "## qwen-code 0.21\n\n- records of the unknown type system/mind_map: 1 line\n" in report
    assert "systemPayload: {x: text}" in report
    assert SECRET not in report
    assert [sign["agent"] for sign in found["drift"]] == ["qwen-code"]
    assert json.loads(palaver("formats", "report", "--agent", "codex", "--json"))["drift"] == []
    assert palaver("formats", "report", "--agent", "codex").endswith("\n\nNo transcripts of codex are archived.\n")
    assert "Unknown agent: gose\nDid you mean goose or grok?" in palaver("formats", "report", "--agent", "gose", code=2)
    with viewing(archived) as viewer:
        page = viewer.enter().page("/archive")
        assert "records of the type <code>system/mind_map</code>" in page
        assert SECRET not in page


@pytest.mark.usefixtures("archived")
def test_a_report_of_one_agent_lists_unreadable_files(home: Path) -> None:
    """A store that cannot be read is reported, and nothing claims that everything is known."""
    store = home / ".local" / "share" / "goose" / "sessions" / "sessions.db"
    store.parent.mkdir(parents=True)
    store.write_bytes(b"encrypted")
    palaver("up", code=1)

    report = palaver("formats", "report", "--agent", "goose")
    assert "- sessions.db: the database cannot be read" in report
    assert "known type" not in report


@pytest.mark.parametrize("has_history", [True, False])
def test_encrypted_conversations_are_named(home: Path, archived: Home, *, has_history: bool) -> None:
    """Every report names what it found but cannot read. `up` does if it found no other conversation, too."""
    cascade = home / ".codeium" / "windsurf" / "cascade"
    cascade.mkdir(parents=True)
    for name in ("a.pb", "b.pb"):
        (cascade / name).write_bytes(b"\x00")
    database = home / ".config" / "Trae" / "ModularData" / "ai-agent" / "database.db"
    database.parent.mkdir(parents=True)
    database.write_bytes(b"\x00")
    if not has_history:
        shutil.rmtree(home / ".qwen")

    text = "conversations that only the agent can read: windsurf (2 files), trae (1 file). Details: docs/formats.md"
    assert f"Encrypted {text}\n" in palaver("up")
    assert archived.is_new is not has_history
    if has_history:
        assert f"\n\nEncrypted {text}\n\n" in palaver("status")
        assert f"encrypted       {text}\n" in palaver("doctor", code=1)
        with viewing(archived) as viewer:
            assert f"Encrypted {text}" in viewer.enter().page("/archive")


def test_a_newer_folder_is_named_even_without_a_known_one(home: Path, archived: Home) -> None:
    """A folder that only a newer version uses is reported, whether or not the known one exists."""
    (home / ".qwen" / "projects").rename(home / ".qwen" / "projects-v2")
    sign = "~/.qwen/projects-v2 may be a newer form of projects, which is read"

    assert f"Not read: qwen-code: {sign}. Update Palaver, or report this.\n" in palaver("archive", code=1)
    assert f"Not read: qwen-code: {sign}. Update Palaver, or report this.\n" in palaver("up")
    assert archived.is_new
    chats = home / ".qwen" / "projects" / "-shop" / "chats"
    chats.mkdir(parents=True)
    shutil.copy(home / ".qwen" / "projects-v2" / "-shop" / "chats" / "a.jsonl", chats)
    palaver("up")
    assert sign in palaver("formats", "report")


@pytest.mark.usefixtures("archived")
def test_versions_are_in_order_of_their_numbers(home: Path) -> None:
    """The newest session may be of an older version. Doctor reports only the newest version."""
    chats = home / ".qwen" / "projects" / "-shop" / "chats"
    records = (chats / "a.jsonl").read_text().splitlines()[0].replace('"a"', '"c"').replace("000000001", "000000002")
    (chats / "b.jsonl").write_text(records.replace("0.21", "0.100").replace("2026-03", "2026-02") + "\n")

    assert "Agents (with sub-agents): qwen-code 2 sessions (0.21 to 0.100)\n" in palaver("up")
    assert "newest versions read: qwen-code 0.100\n" in (page := palaver("doctor", code=1))
    assert "unknown type" not in page


@pytest.mark.usefixtures("archived")
def test_an_agent_may_be_called_by_an_alias() -> None:
    """Search, usage and deletions accept other names of an agent."""
    palaver("up")

    assert "Fix the login" in palaver("search", "login", "--agent", "qwen")
    assert "Fix the login" not in palaver("search", "login", "--agent", "claude")
    assert palaver("usage", "--agent", "Qwen Code")
