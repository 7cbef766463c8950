"""`palaver open` lists open items and next steps."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from palaver.archiver.ingest.transcripts import in_paths
from palaver.cli import main
from palaver.core.home import Home
from palaver.observe.pipeline import Pipeline

from .archiver.formats.claude_code.claude_lines import assistant, jsonl, text, user


def _session(folder: Path, number: int, said: list[tuple[str, str]]) -> None:
    name = f"7d1e3bd4-93aa-4cf4-a8de-{number:012d}"
    rows = [line for at, (ask, told) in enumerate(said) for line in (user(ask), assistant(text(told), id=f"m{at}"))]
    shared = {
        "sessionId": name,
        "cwd": "/home/demo/quay",
        "gitBranch": f"step-{number}",
        "timestamp": f"2026-04-{number:02d}T10:00:00.000Z",
    }
    (folder / f"{name}.jsonl").write_bytes(
        jsonl([{**row, **shared, "uuid": f"{number}-{at}"} for at, row in enumerate(rows)])
    )


@pytest.fixture
def listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Archive two sessions that end with next steps."""
    folder = tmp_path / "projects" / "-home-demo-quay"
    folder.mkdir(parents=True)
    for number, step in ((3, "Paint the harbour bell before the regatta."), (9, "Replace the rope of the pilot boat.")):
        said = [
            ("Repair the bell server", "The bell server rang twice because two timers were started in quay.py."),
            ("Finish", f"The bell server now rings once an hour.\n\n## Next steps\n\n- {step}"),
        ]
        _session(folder, number, said)
    home = Home(tmp_path / "palaver")
    with Pipeline(home) as pipeline:
        pipeline.run(in_paths([folder]))
    monkeypatch.setenv("PALAVER_HOME", str(home.root))


def palaver(*arguments: str) -> str:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.usefixtures("listed")
def test_items_are_listed_newest_first() -> None:
    """Each item has its label, and its session with the date."""
    items = json.loads(palaver("open", "--json"))["items"]

    assert [item["text"] for item in items] == [
        "Next: Replace the rope of the pilot boat.",
        "Next: Paint the harbour bell before the regatta.",
    ]
    assert "2026-04-09 [quay]" in palaver("open")
    assert len(json.loads(palaver("open", "--limit", "1", "--project", "quay", "--json"))["items"]) == 1


@pytest.mark.usefixtures("listed")
def test_a_question_for_next_steps_lists_them() -> None:
    """`ask` answers a question for open items from the same cards, and names the command."""
    page = palaver("ask", "what is still open")

    assert "**Open items**\n- 2026-04-09 Next: Replace the rope" in page
    assert "palaver open" in page


@pytest.mark.usefixtures("listed")
def test_search_lists_the_same_items() -> None:
    """`search --kind open` lists the same items, with words only those of matching sessions, each with its line."""
    items = json.loads(palaver("search", "--kind", "open", "--json"))["items"]
    assert items == json.loads(palaver("open", "--json"))["items"]

    [item] = json.loads(palaver("search", "harbour", "bell", "regatta", "--kind", "open", "-n", "1", "--json"))["items"]
    assert item["text"] == "Next: Paint the harbour bell before the regatta."
    assert "harbour bell before the regatta" in palaver("read", item["session"], str(item["line"]))
    page = palaver("search", "xyzzyplugh", "--kind", "open")
    assert page.startswith("No open item matches `xyzzyplugh`. The newest:\n")
    assert "rope of the pilot boat" in page


@pytest.mark.usefixtures("listed")
def test_a_search_without_words_lists_the_newest() -> None:
    """Without words and filters, the newest entries or sessions are listed; sessions have their next step."""
    assert "## Search Results (" in palaver("search")
    page = palaver("search", "--by", "session")
    assert page.index("Next: Replace the rope") < page.index("Next: Paint the harbour bell")
