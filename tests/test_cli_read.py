"""`palaver read --budget` and the names that `read` accepts."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from palaver.archiver.ingest.transcripts import in_paths
from palaver.cli import main
from palaver.core.home import Home
from palaver.observe.pipeline import Pipeline

from .archiver.formats.claude_code.claude_lines import assistant, jsonl, result, text, tool, user

SESSION = "22222222-0000-4000-8000-000000000002"
TEXT = "The lock is shaded until the sun sets behind the harbour wall. " * 60


def palaver(*arguments: str, code: int = 0) -> Result:
    reply = CliRunner().invoke(main, arguments)
    assert reply.exit_code == code, reply.output
    return reply


@pytest.fixture
def long_session(home: Path) -> str:
    """Archive a session of about 50,000 tokens and return its ID."""
    path = home / "more" / "-code-shop" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    rows = [user("Is it late?", uuid="u0", cwd="/code/shop")]
    for number in range(40):
        rows += [
            assistant(tool("Bash", {"command": "make test"}, id=f"t{number}"), uuid=f"a{number}", id=f"m{number}"),
            {**result(TEXT, id=f"t{number}"), "uuid": f"r{number}"},
            assistant(text(f"{number}. {TEXT}"), uuid=f"b{number}", id=f"n{number}"),
        ]
    path.write_bytes(jsonl(rows))
    with Pipeline(Home(home / "palaver")) as pipeline:
        pipeline.run(in_paths([home / "more"]))
    return SESSION


def test_a_larger_budget_reads_more(long_session: str) -> None:
    """`--budget` is the only limit of a page: a page is filled, and a whole session fits a budget of its size."""
    for budget in (2_000, 10_000, 25_000):
        page = palaver("read", long_session, "--budget", str(budget)).stdout
        found = re.search(r"~(\d+) tokens\..* Truncated: continue with", page)
        assert found is not None
        assert budget * 0.7 < int(found[1]) <= budget

    page = palaver("read", long_session, "--budget", "200000").stdout
    assert "Truncated" not in page
    assert "shortened" not in page
    assert page.count(TEXT.strip()) == 80


def test_a_larger_budget_reads_more_in_json(long_session: str) -> None:
    """The same holds for JSON."""
    some, every = (
        json.loads(palaver("read", long_session, "--budget", budget, "--json").stdout) for budget in ("30000", "200000")
    )
    assert 20_000 < some["tokens"] <= 30_000
    assert some["next_line"] is not None
    assert every["next_line"] is None
