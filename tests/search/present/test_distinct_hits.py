"""Observations with equal titles in several sessions are one hit that names the other sessions."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.archiver.ingest.transcripts import in_paths
from palaver.core.query import Query
from palaver.observe.pipeline import Pipeline
from palaver.search.archive_search import ArchiveSearch
from palaver.templates.render import Renderer

from ...archiver.formats.claude_code.claude_lines import assistant, result, text, tool, user
from ...archiver.history import History

SESSIONS = tuple(f"{number}1111111-0000-4000-8000-000000000001" for number in range(3))
PLAN = "Implement the following plan:\n\n# Show a badge on the kettle page\n\nThe {0} page needs a badge of {0}."


@pytest.fixture
def layers(tmp_path: Path) -> Iterator[ArchiveSearch]:
    """Return an archive of three sessions that carried out plans with the same heading."""
    with History(tmp_path) as history:
        for session, metal in zip(SESSIONS, ("copper", "silver", "bronze"), strict=True):
            place = {"sessionId": session, "cwd": "/home/demo/shop"}
            edit = tool("Write", {"file_path": f"/home/demo/shop/{metal}.py", "content": metal}, id=f"t{metal}")
            history.write(
                [
                    user(PLAN.format(metal), uuid=f"q{metal}", **place),
                    assistant(edit, id=f"m{metal}", uuid=f"c{metal}", **place),
                    result("ok", id=f"t{metal}", **place),
                    assistant(text(f"Added a badge of {metal} to `{metal}.py`."), id=f"e{metal}", **place),
                ],
                session,
            )
    with Pipeline(history.home) as pipeline:
        pipeline.run(in_paths([tmp_path]))
    with ArchiveSearch(history.home) as opened:
        yield opened


def test_equal_titles_are_one_hit(layers: ArchiveSearch) -> None:
    """The best hit stands for all of them, and names the sessions of the others."""
    found = layers.find(Query.parse("badge on the kettle page", mode="text"))

    [hit] = [hit for hit in found.hits if hit.kind == "observation"]
    assert {hit.session_id, *hit.also_in} == set(SESSIONS)
    assert "(also in 2 sessions)" in Renderer().search(found)


def test_any_number_of_hits_can_be_requested(layers: ArchiveSearch) -> None:
    """Without a limit, every hit is listed."""
    found = layers.find(Query.parse("badge on the kettle page", mode="text", per_session=0))

    assert len([hit for hit in found.hits if hit.kind == "observation"]) == len(SESSIONS)
