"""`palaver export` says which secrets it writes, and writes none with --redacted."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from palaver.cli import main

SESSION = "7d3f0a52-90cb-4c1e-8a14-3b6e2f915c07"
KEY = "\n".join(
    [
        "-----BEGIN EC PRIVATE KEY-----",
        *["MHcCAQEEIBkg4LVWM9nuwNSk3yByxZpYRTBnVJk5oTqXw8vJ"] * 3,
        "-----END EC PRIVATE KEY-----",
    ]
)


def palaver(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


@pytest.fixture(autouse=True)
def _archived(tmp_path: Path) -> None:
    """Archive one session in which the user pasted a private key twice."""
    folder = tmp_path / "projects" / "kiln"
    folder.mkdir(parents=True)
    rows = [
        {
            "type": "user",
            "uuid": f"u{number}",
            "sessionId": SESSION,
            "cwd": "/code/kiln",
            "timestamp": f"2026-03-01T10:0{number}:00Z",
            "message": {"role": "user", "content": f"Use this key for the kiln:\n{KEY}"},
        }
        for number in range(2)
    ]
    rows.append({**rows[0], "uuid": "u2", "message": {"role": "user", "content": "Thank you. <planning_context>"}})
    (folder / f"{SESSION}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert palaver("archive", str(tmp_path / "projects")).exit_code == 0


def test_an_export_names_the_secrets_that_it_writes(tmp_path: Path) -> None:
    """Original files are byte-exact. The kinds of their secrets are counted, in a report or on standard error."""
    everything = palaver("export", "--all", str(tmp_path / "out"))
    assert "The original text contains 1 secret that `palaver read` hides: private-key 1." in everything.stdout
    one = palaver("export", SESSION)
    assert KEY.splitlines()[1] in one.stdout
    assert "contains 1 secret" in one.stderr
    found = json.loads(palaver("export", SESSION, str(tmp_path / "one"), "--json").stdout)
    assert found["secrets"] == {"private-key": 1}


def test_raw_lines_name_the_secrets_that_they_contain() -> None:
    """`palaver read --raw` prints original lines, and counts the secrets of these lines on standard error."""
    raw = palaver("read", SESSION, "1", "--raw")
    assert KEY.splitlines()[1] in raw.stdout
    assert "contains 1 secret that `palaver read` hides: private-key 1. To hide them, leave out --raw." in raw.stderr
    assert palaver("read", SESSION, "3", "--raw").stderr == ""


def test_a_redacted_export_contains_what_read_shows(tmp_path: Path) -> None:
    """Each conversation is one Markdown file without secrets. A second export changes nothing."""
    out = tmp_path / "out"
    assert palaver("export", "--all", str(out), "--redacted").exit_code == 0
    [page] = (path for path in out.rglob("*") if path.is_file())
    assert page.suffix == ".md"
    text = page.read_text()
    assert "PRIVATE KEY" not in text
    assert text.count("[secret:private-key:") >= 2
    shown = palaver("read", SESSION).stdout
    assert text.splitlines()[:7] == shown.splitlines()[1:8]
    assert "<planning_context>" in text
    assert "recalled" not in text

    again = json.loads(palaver("export", "--all", str(out), "--redacted", "--json").stdout)
    assert (again["present"], again["problems"], again["secrets"]) == (1, [], None)
    assert palaver("export", SESSION, "--redacted").stdout == text
    page.write_text("changed by the user")
    assert palaver("export", "--all", str(out), "--redacted").exit_code == 1
    assert page.read_text() == "changed by the user"
