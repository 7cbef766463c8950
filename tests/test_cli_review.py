"""`palaver memories review`: nothing becomes a memory or a golden rule before the user approves it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from palaver.cli import main
from palaver.core.home import Home
from palaver.core.memory import Memory
from palaver.observe.archive import Archive

from .archiver.formats.claude_code.claude_lines import assistant, jsonl, text, user

SESSION = "3a2d3bd4-93aa-4cf4-a8de-5ad6b4a12345"
RULES = ("From now on use tabs in all templates.", "Always write tests in the folder of the parser.")


def palaver(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == code, result.output
    return result


def answer(*arguments: str) -> dict[str, Any]:
    """Return the JSON output of a command."""
    found: dict[str, Any] = json.loads(palaver(*arguments, "--json").stdout)
    return found


@pytest.fixture
def waiting(home: Path, tmp_path: Path) -> list[str]:
    """Return the IDs of two stated preferences and of a proven memory of an agent."""
    place = {"sessionId": SESSION, "cwd": "/home/demo/shop", "gitBranch": "main"}
    lines = [
        {**line, **place}
        for number, rule in enumerate(RULES)
        for line in (
            user(rule, uuid=f"a{number}"),
            assistant(text("Understood."), id=f"m{number}", uuid=f"b{number}", parentUuid=f"a{number}"),
        )
    ]
    folder = tmp_path / "projects" / "-home-demo-shop"
    folder.mkdir(parents=True)
    (folder / f"{SESSION}.jsonl").write_bytes(jsonl(lines))
    palaver("archive", str(tmp_path / "projects"))
    with Archive(Home(home / "palaver")).memories as core:
        memory = core.remember(Memory("Retry uploads twice", "pattern", source="theo")).stored
        for number in range(8):
            core.feedback.outcome(memory.id, success=True, session_id=f"invented-{number}")
    return [each["id"] for each in answer("memories", "review")["waiting"]]


def test_proposals_are_shown_with_their_source(waiting: list[str]) -> None:
    """`observe --preferences` and `memories review` show proposals with their source and store nothing."""
    found = answer("memories", "review")["waiting"]
    assert [(each["kind"], each["content"]) for each in found] == [
        *(("preference", rule) for rule in RULES),
        ("golden_rule", "Retry uploads twice"),
    ]
    assert (found[0]["line"], found[0]["quote"]) == (1, RULES[0])
    assert found[0]["session_id"] == SESSION
    assert [each["id"] for each in answer("observe", "--preferences")["candidates"]] == waiting[:2]
    shown = palaver("memories", "review").stdout
    assert f"{waiting[0]}  Preference for project:" in shown
    assert f"Source: your words in session {SESSION}" in shown
    assert "Trust: high, because you typed it. It applies beyond the current task." in shown
    assert (found[0]["exchange"], found[0]["origin"], found[0]["trust"]) == ("ex-1", "human", "high")
    assert "These preferences are not stored yet" in palaver("observe", "--preferences").stdout
    assert answer("memories", "list", "--all")["total"] == 1


def test_approved_proposals_are_stored_and_declined_ones_never_return(waiting: list[str]) -> None:
    """Approved proposals are stored, declined proposals are not proposed again, and an unknown ID changes nothing."""
    first, second, proven = waiting
    assert (
        "cand_0 is not a proposal to review"
        in palaver("memories", "review", "--approve", first, "--approve", "cand_0", code=2).output
    )
    assert len(answer("memories", "review")["waiting"]) == 3
    done = answer("memories", "review", "--approve", first, "--decline", second, "--approve", proven)
    assert done == {"approved": {first: done["approved"][first], proven: proven}, "declined": [second]}

    assert palaver("memories", "review").stdout.startswith("No proposals to review. Run `palaver archive`")
    assert "No new preference" in palaver("observe", "--preferences").stdout
    stored = answer("memories", "list")["memories"]
    assert {each["content"]: each["type"] for each in stored} == {
        RULES[0]: "preference",
        "Retry uploads twice": "golden_rule",
    }


def test_a_proven_memory_is_no_rule_until_it_is_approved(waiting: list[str]) -> None:
    """A global memory of an agent is in the context of a project only after approval as a golden rule."""
    assert "Retry uploads twice" not in palaver("context", "--project", "shop").stdout
    palaver("memories", "review", "--approve", waiting[2])
    page = palaver("context", "--project", "shop").stdout
    assert page.index("### Golden Rules") < page.index("Retry uploads twice")


def reviewed(keys: bytes) -> str:
    """Return the output of `memories review` on a terminal where these keys are typed."""
    main_end, other_end = os.openpty()
    command = [sys.executable, "-m", "palaver", "memories", "review"]
    with subprocess.Popen(command, stdin=other_end, stdout=other_end, stderr=other_end) as process:
        os.close(other_end)
        os.write(main_end, keys)
        shown = b""
        try:
            while part := os.read(main_end, 4096):
                shown += part
        except OSError:  # the other end closed
            pass
    os.close(main_end)
    assert process.returncode == 0, shown
    return shown.decode()


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_terminal_asks_about_each_proposal(waiting: list[str]) -> None:
    """Each proposal can be approved, declined or skipped on a terminal, which shows the keys."""
    shown = reviewed(b"a\nDecline\n\n")

    assert "1 of 3" in shown
    assert "[a approve, d decline, s skip, q quit, ? help]" in shown
    assert "is stored as mem_" in shown
    assert "will not be proposed again" in shown
    assert "Skipped." in shown
    assert [each["id"] for each in answer("memories", "review")["waiting"]] == waiting[2:]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_question_mark_explains_the_keys_and_q_quits(waiting: list[str]) -> None:
    """`?` and unknown keys explain every key and ask again. `q` leaves the remaining proposals for later."""
    shown = reviewed(b"?\nyes\nd\nq\n")

    assert shown.count("quit: stop here; earlier decisions stay") == 2
    assert "Stopped. 2 proposals left. Run `palaver memories review` to continue." in shown
    assert [each["id"] for each in answer("memories", "review")["waiting"]] == waiting[1:]
