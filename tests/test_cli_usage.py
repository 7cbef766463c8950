"""`palaver usage` shows tokens and list prices."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from palaver.archiver.ingest.transcripts import in_paths
from palaver.cli import main
from palaver.core.home import Home
from palaver.observe.pipeline import Pipeline

from .archiver.formats.claude_code.claude_lines import assistant, jsonl, progress, text, user
from .commands import unmarked

NAME, AT = "7d1e3bd4-93aa-4cf4-a8de-000000000001", "2026-04-03T10:00:00.000Z"


def palaver(*arguments: str, code: int = 0) -> str:
    ran = CliRunner().invoke(main, [*arguments, "--utc"])
    assert ran.exit_code == code, ran.output
    return ran.output


def reply(name: str, model: str, output: int) -> dict[str, object]:
    record = assistant(text(f"The bell rings {name}."), id=f"msg_{name}", requestId=f"req_{name}", uuid=f"uuid-{name}")
    record["timestamp"] = AT
    record["message"] |= {"model": model, "usage": {"input_tokens": 1_000, "output_tokens": output}}
    return record


@pytest.fixture
def counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Archive a session with three models, one of them without a price and one of a sub-agent, and a chat."""
    records: list[dict[str, object]] = [user("Ring the bell", uuid="uuid-0")]
    records += [reply("once", "claude-opus-5", 2_000), reply("twice", "bell-1", 5)]
    records += [progress(reply("thrice", "claude-haiku-5-5", 3), agent="a1b2c3", sessionId=NAME)]
    shared = {"sessionId": NAME, "cwd": "/home/demo/quay", "gitBranch": "main", "timestamp": AT}
    folder = tmp_path / "projects" / "-home-demo-quay"
    folder.mkdir(parents=True)
    (folder / f"{NAME}.jsonl").write_bytes(jsonl([record | shared for record in records]))
    home = Home(tmp_path / "palaver")
    with Pipeline(home) as pipeline:
        pipeline.run(in_paths([folder]))
    monkeypatch.setenv("PALAVER_HOME", str(home.root))
    return home.root


@pytest.mark.usefixtures("counted")
def test_a_report_names_the_prices_and_what_it_does_not_know() -> None:
    page = palaver("usage")
    (prices,) = [line for line in page.splitlines() if line.startswith("List price")]

    assert prices.startswith("List price, not your bill (price list of 20")
    assert unmarked(page).split("<recalled-N>\n")[1] == (
        "Input  Output  Cache reads  5 min writes  1 h writes  List price  Day\n"
        "3,000  2,008+            0             0           0      $0.06+  2026-04-03\n"
        "3,000  2,008+            0             0           0      $0.06+  total\n"
        "</recalled-N>\n"
        "+: at least. In 1 of 3 replies, the agent recorded only the beginning of the output.\n"
        "No price is known for bell-1 (1,005 tokens). Set it in the table `prices` of config.toml.\n"
    )


@pytest.mark.usefixtures("counted")
def test_rows_can_be_limited() -> None:
    page = palaver("usage", "--by", "model", "-n", "1")

    assert "  claude-opus-5\n" in page
    assert "bell-1\n" not in page
    assert "2 more: add -n 3." in page


@pytest.mark.usefixtures("counted")
def test_a_session_has_its_title_and_its_sub_agents() -> None:
    [row] = json.loads(palaver("usage", "--by", "session", "--json"))["rows"]

    assert (row["project"], row["replies"], row["partial_replies"]) == ("quay", 3, 1)
    assert NAME.startswith(row["name"])
    assert row["title"] == "Ring the bell"


def test_prices_can_be_set(counted: Path) -> None:
    (counted / "config.toml").write_text('[prices]\n"bell-1" = [2.0, 10.0]\n')
    report = json.loads(palaver("usage", "--by", "model", "--model", "bell-1", "--json"))

    assert (report["total"]["cost"], report["prices"], report["unpriced"]) == (0.00205, ["prices in config.toml"], {})


@pytest.mark.usefixtures("counted")
def test_nothing_is_explained() -> None:
    assert palaver("usage", "--since", "2026-05-01").startswith("No archived conversation with token counts matches. ")
    assert "no-such-agent" in palaver("usage", "--agent", "no-such-agent", code=2)


@pytest.mark.usefixtures("counted")
def test_a_read_only_archive_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PALAVER_READ_ONLY", "1")

    assert json.loads(palaver("usage", "--json"))["total"]["replies"] == 3
