"""`palaver share`: a session as a file, and cards and observations as notes of a vault."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import yaml
from click.testing import CliRunner, Result

from palaver.archiver.ingest.transcripts import in_paths
from palaver.cli import main
from palaver.core.home import Home
from palaver.observe.pipeline import Pipeline

from .archiver.formats.claude_code.claude_lines import assistant, jsonl, text, user
from .archiver.history import FORK, ORIGINAL
from .observe.shared import NAME, SECRET, planted
from .observe.transcript.sessions import bash, conversation, edit

LINK = re.compile(r"(?<!\\)\]\(([^)]*)\)")


@pytest.fixture(autouse=True)
def folder(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Archive two sessions with cards and observations, and return the current folder."""
    ingest(home, planted()[:-1], ORIGINAL)
    ingest(home, door(), FORK)
    current = tmp_path / "current"
    current.mkdir()
    monkeypatch.chdir(current)
    return current


LATER = [
    user("The hinges squeak. Repair them."),
    *bash("oil hinges", "done", "b4"),
    *edit("hinges.py", "oil = False", "oil = True", "b5"),
    *bash("make test", "3 passed", "b6"),
    assistant(text("Fixed: the hinges squeaked because they had no oil."), id="a4"),
]
"""Later exchange of the session about a door."""


def door() -> list[dict[str, Any]]:
    """Return a session about a door, from which the rules extract a card and an observation."""
    cause = "the paint dried slowly because the heater was off, see [plan](plan.md)"
    return [
        user("Why does the paint dry so slowly? See [the notes](notes.md) and [[Paint]]."),
        assistant(text("I look at the heater first."), id="a1"),
        *bash("make test", "1 failed", "b1", failed=True),
        *edit("heater.py", "on = False", "on = True", "b2"),
        *bash("make test", "3 passed", "b3"),
        assistant(text(f"Fixed: {cause}.\n\n## Next steps\n- Paint the second side on Monday.\n"), id="a2"),
    ]


def ingest(home: Path, records: list[dict[str, Any]], session: str) -> None:
    path = home / "projects" / "shop" / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    dated = [
        {**record, **own, "sessionId": session, "uuid": f"{session[:8]}{record['uuid'][8:]}"[:-2] + f"{number:02}"}
        for number, (record, own) in enumerate(zip(conversation(*records), records, strict=True))
    ]
    path.write_bytes(jsonl(dated))
    with Pipeline(Home(home / "palaver")) as pipeline:
        pipeline.run(in_paths([path.parent]))


def palaver(*arguments: str, code: int = 0) -> Result:
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == code, done.output
    return done


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_nothing_is_written_before_the_question_is_answered(folder: Path) -> None:
    """Without a terminal, the preview is shown and --yes is required."""
    done = palaver("share", ORIGINAL, code=2)

    assert "Shared: 2 prompts, 2 answers, 3 calls, 1 image" in done.stdout
    assert "Not shared: 3 tool outputs" in done.stdout
    assert "Redacted: github-pat 1" in done.stdout
    assert "--yes" in done.stderr
    assert files(folder) == {}


@pytest.mark.parametrize(("answer", "written"), [("y", 1), ("n", 0)])
def test_a_terminal_is_asked(folder: Path, answer: str, written: int) -> None:
    parent, child = pty.openpty()
    command = [sys.executable, "-m", "palaver", "share", ORIGINAL]
    with subprocess.Popen(command, stdin=child, stdout=child, stderr=child, env={**os.environ, "PAGER": "cat"}) as run:
        os.close(child)
        os.write(parent, f"{answer}\n".encode())
        run.wait(60)
        shown = os.read(parent, 100_000).decode()
    os.close(parent)

    assert "Write " in shown
    assert run.returncode == (0 if written else 130)
    assert len(files(folder)) == written


def test_a_file_is_replaced_only_with_force(folder: Path) -> None:
    """Its default name is the title with the beginning of the ID."""
    palaver("share", ORIGINAL, "--yes")
    [(name, content)] = files(folder).items()
    assert name.endswith(f"-{ORIGINAL[:8]}.html")
    (folder / name).write_text("mine")

    refused = palaver("share", ORIGINAL, "--yes", code=2)
    assert f"{name} exists" in refused.stderr
    assert (folder / name).read_text() == "mine"

    palaver("share", ORIGINAL, "--yes", "--force")
    assert (folder / name).read_bytes() == content


def test_a_file_can_be_markdown_on_standard_output(folder: Path) -> None:
    done = palaver("share", FORK, "--markdown", "--to", "-", "--yes")

    assert done.stdout.startswith("# ")
    assert "> Why does the paint dry so slowly?" in done.stdout
    assert "Shared: 1 prompt" in done.stderr
    assert files(folder) == {}


def test_json_reports_and_writes_only_with_yes(folder: Path) -> None:
    report = json.loads(palaver("share", FORK, "--json", "--to", "a.html").stdout)
    assert (report["file"], report["report"]["prompts"]) == (None, 1)
    assert files(folder) == {}

    assert json.loads(palaver("share", FORK, "--json", "--to", "a.html", "--yes").stdout)["file"] == "a.html"
    assert files(folder).keys() == {"a.html"}


@pytest.mark.parametrize(
    "arguments",
    [
        ("share",),
        ("share", FORK, "--output", "--prompts-only"),
        ("share", FORK, "--vault", "v", "--output"),
        ("share", FORK, "1-2", "--vault", "v"),
        ("share", FORK, "--project", "shop"),
        ("share", FORK, "x"),
    ],
)
def test_a_wrong_call_is_refused(folder: Path, arguments: tuple[str, ...]) -> None:
    palaver(*arguments, code=2)
    assert files(folder) == {}


def test_a_vault_has_a_note_for_each_card_and_observation_without_secrets(folder: Path) -> None:
    palaver("share", "--vault", "vault", "--yes")
    notes = {name: content.decode() for name, content in files(folder / "vault").items() if name.endswith(".md")}

    assert len([name for name in notes if name.startswith("sessions/")]) == 2
    assert len([name for name in notes if name.startswith("observations/")]) >= 1
    for name, note in notes.items():
        assert SECRET[4:] not in note
        assert NAME not in note + name
        front_matter = yaml.safe_load(note.split("---\n")[1])
        assert front_matter["session"] in {ORIGINAL, FORK}
        assert front_matter["aliases"] == [front_matter["title"]]


def test_every_link_of_a_vault_resolves(folder: Path) -> None:
    """Links in archived text, which would lead nowhere, are no links."""
    palaver("share", "--vault", "vault", "--yes")
    links = [
        (path, unquote(target))
        for path in (folder / "vault").rglob("*.md")
        for target in LINK.findall(path.read_text())
    ]

    assert len(links) >= 2
    assert [target for path, target in links if not (path.parent / target).is_file()] == []
    assert not any("[[" in path.read_text().split("---\n", 2)[2] for path in (folder / "vault").rglob("*.md"))


def test_a_second_export_writes_nothing(folder: Path) -> None:
    palaver("share", "--vault", "vault", "--yes")
    before = {path: path.stat().st_mtime_ns for path in (folder / "vault").rglob("*")}

    done = palaver("share", "--vault", "vault")

    assert "Nothing to write" in done.stdout
    assert {path: path.stat().st_mtime_ns for path in (folder / "vault").rglob("*")} == before


def test_a_changed_session_rewrites_only_its_notes(folder: Path, home: Path) -> None:
    """The note of its card keeps its name."""
    palaver("share", "--vault", "vault", "--yes")
    before = files(folder / "vault")
    ingest(home, [*door(), *LATER], FORK)

    palaver("share", "--vault", "vault", "--yes")
    after = files(folder / "vault")

    other = [name for name, content in before.items() if ORIGINAL.encode() in content and name.endswith(".md")]
    assert other != []
    assert all(after[name] == before[name] for name in other)
    [card] = [name for name in after if name.startswith("sessions/") and name not in other]
    assert after[card] != before[card]
    assert b"hinges squeaked" in b"".join(after.values())


def test_an_edited_note_is_overwritten_only_with_force(folder: Path, home: Path) -> None:
    palaver("share", "--vault", "vault", "--yes")
    [card] = [path for path in (folder / "vault" / "sessions").iterdir() if FORK in path.read_text()]
    card.write_text("mine")
    ingest(home, [*door(), *LATER], FORK)

    done = palaver("share", FORK, "--vault", "vault", "--yes")
    assert f"Edited by you, so not changed (--force overwrites them):\n- sessions/{card.name}" in done.stdout
    assert card.read_text() == "mine"

    palaver("share", FORK, "--vault", "vault", "--yes", "--force")
    assert "hinges squeaked" in card.read_text()


def test_notes_of_a_forgotten_session_are_removed(folder: Path) -> None:
    """A note that the user edited stays."""
    palaver("share", "--vault", "vault", "--yes")
    [card] = [path for path in (folder / "vault" / "sessions").iterdir() if FORK in path.read_text()]
    token = json.loads(palaver("forget", FORK, "--json").stdout)["token"]
    palaver("forget", FORK, "--confirm", token)

    palaver("share", "--vault", "vault", "--yes")

    assert not card.exists()
    assert not any(FORK in path.read_text() for path in (folder / "vault").rglob("*.md"))


def test_notes_of_another_archive_stay(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    palaver("share", "--vault", "vault", "--yes")
    before = files(folder / "vault")
    other = folder.parent / "other"
    ingest(other, door(), "0a0a0a0a-1111-4222-8333-444444444444")
    monkeypatch.setenv("PALAVER_HOME", str(other / "palaver"))

    palaver("share", "--vault", "vault", "--yes")

    kept = {name: content for name, content in files(folder / "vault").items() if name in before}
    assert {name for name in before if name.startswith("sessions/")} <= kept.keys()


def test_a_list_of_notes_cannot_remove_other_files(folder: Path) -> None:
    """Names that are no notes of a vault are ignored."""
    (folder / "precious.md").write_text("")
    digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    (folder / "vault").mkdir()
    notes = {name: {"session": "gone", "sha256": digest} for name in ("../precious.md", "sessions/../../precious.md")}
    (folder / "vault" / ".palaver-vault.json").write_text(json.dumps({"notes": notes}))

    palaver("share", "--vault", "vault", "--yes")

    assert (folder / "precious.md").exists()


def test_a_private_project_is_left_out_of_a_vault(folder: Path, home: Path) -> None:
    (home / "palaver" / "config.toml").write_text('private_projects = ["app"]\n')

    done = palaver("share", "--vault", "vault", "--yes")

    assert "Left out: 1 session of private projects" in done.stdout
    assert not any(FORK in path.read_text() for path in (folder / "vault").rglob("*.md"))
