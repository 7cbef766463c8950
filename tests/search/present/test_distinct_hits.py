"""Observations with equal titles in several sessions are one hit that names the other sessions."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from palaver.archiver.ingest.transcripts import in_paths
from palaver.core.query import Query
from palaver.core.results import Results
from palaver.observe.pipeline import Pipeline
from palaver.search.archive_search import ArchiveSearch
from palaver.search.present.hits import Hits
from palaver.templates.render import Renderer

from ...archiver.formats.claude_code.claude_lines import assistant, result, text, tool, user
from ...archiver.history import History
from ..history import History as Conversations
from ..history import Said, learned

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


TITLE, WORDY = "Valve of the kettle", "the kettle valve, the valve of the kettle"


def found_by_title(history: Conversations, limit: int = 10, by: str = "event") -> Results:
    """Search for `TITLE` in other letters and with a space too many."""
    query = Query.parse(f" {TITLE.upper()}", mode="text", limit=limit, by=by)
    return Hits(history.store, history.engine()).search(query)


def test_observation_with_the_queried_title_comes_first(history: Conversations) -> None:
    """The observation whose title is the query comes before a hit with a higher score, on a page of any length."""
    [one, two] = history.say("one", Said("kettle"), Said("a pan"))
    [better] = history.learn(one, learned(WORDY, lines=(1, 1)))
    [titled] = history.learn(two, replace(learned(TITLE, lines=(4, 4)), narrative="The pan has no part in this. " * 20))

    hits = found_by_title(history).hits

    assert [hit.id for hit in hits] == [f"obs-{titled}", f"obs-{better}"]
    assert hits[0].score < hits[1].score
    assert found_by_title(history, limit=1).hits == hits[:1]


def test_session_with_the_queried_title_comes_first(history: Conversations) -> None:
    """The hits of the session whose title is the query come before a hit with a higher score."""
    history.say("one", Said(WORDY))
    [key] = history.say("two", Said("kettle" + " steam" * 50))
    with history.store.transaction():
        session = history.store.sessions.load(history.store.items.load([key])[key].session)
        history.store.sessions.save(replace(session, title=TITLE))

    hits = found_by_title(history).hits

    assert [hit.session_title for hit in hits] == [TITLE, "one"]
    assert hits[0].score < hits[1].score
    assert [hit.title for hit in found_by_title(history, by="session").hits] == [TITLE, "one"]
