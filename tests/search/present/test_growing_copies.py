"""A conversation in several copies, each longer than the one before, is shown as one conversation."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.archiver.ingest.transcripts import in_paths
from palaver.core.query import Query
from palaver.observe.pipeline import Pipeline
from palaver.search.archive_search import ArchiveSearch

from ...archiver.formats.claude_code.claude_lines import assistant, text, user
from ...archiver.history import History

SESSION = "aaaa1111-0000-4000-8000-000000000001"
PROMPTS = ("Add a kettle page.", "Give it a badge.", "Publish the page.")


@pytest.fixture(params=["shortest first", "longest first"])
def layers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ArchiveSearch]:
    """Return an archive of three copies of a session: with its first exchange, with two exchanges, and with three."""
    place = {"sessionId": SESSION, "cwd": "/home/demo/shop"}
    lines: list[object] = []
    with History(tmp_path) as history, Pipeline(history.home) as pipeline:
        copies: list[Path] = []
        for number, prompt in enumerate(PROMPTS):
            lines.append(user(prompt, uuid=f"q{number}", **place))
            lines.append(assistant(text(f"Done, step {number}."), id=f"m{number}", uuid=f"c{number}", **place))
            copies.append(history.write(lines, f"copy-{number}"))
        for copy in copies if request.param == "shortest first" else reversed(copies):
            pipeline.run(in_paths([copy]))
    with ArchiveSearch(history.home) as opened:
        yield opened


def test_a_session_has_all_exchanges_of_its_longest_copy(layers: ArchiveSearch) -> None:
    """Exchanges that an earlier copy contains are included, each once and in order."""
    [listed] = layers.sessions(Query.newest(by="session")).sessions
    [detail] = layers.details([SESSION])
    timeline = layers.timeline(SESSION)

    assert listed.exchanges == len(PROMPTS)
    assert [detail.path, timeline.path] == ["claude-code/shop/copy-2.jsonl"] * 2
    assert [detail.start_line, detail.end_line] == [1, 6]
    assert len(timeline.hits) == len(PROMPTS)
    around = layers.timeline(timeline.hits[0].id, around=2)
    assert (around.anchor, len(around.hits), around.path) == (timeline.hits[0].id, len(PROMPTS), timeline.path)


def test_the_longest_copy_is_read(layers: ArchiveSearch) -> None:
    """Exchanges are numbered from the start of the conversation."""
    path, _ = layers.locate(SESSION)
    exchanges = layers.read(path).exchanges

    assert [each.prompt for each in exchanges] == list(PROMPTS)
    assert [each.ordinal for each in exchanges] == [0, 1, 2]
