"""Content that several sessions repeat is one hit, and every layer lists the other sessions."""

# pyright: reportPrivateUsage=false

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from palaver.archiver.deletion.deletions import Deletions
from palaver.core.deletion import DeletionRequest
from palaver.core.query import Mode, Query
from palaver.core.results import Results
from palaver.search.archive_search import ArchiveSearch
from palaver.templates.json_output import details_json, results_json, transcript_json
from palaver.templates.render import Renderer

from ...archiver.history import FORK, ORIGINAL, History, talk

THIRD = "33333333-0000-4000-8000-000000000003"


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with History(tmp_path) as made:
        yield made


def fork() -> list[dict[str, Any]]:
    """Write a fork, which repeats the lines under its own session ID."""
    return [*talk("one", "two", session=FORK), *talk("apart", session=FORK)]


def resumed() -> list[dict[str, Any]]:
    """Write a resumed session in a new file, in which repeated lines keep the old session ID."""
    return [*talk("one", "two"), *talk("apart", session=FORK)]


def copied() -> list[dict[str, Any]]:
    """Copy the file of a session."""
    return talk("one", "two")


def search(history: History, word: str) -> Results:
    with ArchiveSearch(history.home) as layers:
        return layers.find(Query((word,), mode=Mode.TEXT))


def also_in(history: History, word: str) -> Sequence[str]:
    """Return the other sessions that contain the prompt with this word, as all layers report them."""
    with ArchiveSearch(history.home) as layers:
        hits = layers.find(Query((word,), mode=Mode.TEXT)).hits
        (hit,) = (hit for hit in hits if hit.title == f"{word}?")
        (detail,) = layers.details([hit.id])
        transcript = layers.read(hit.path, hit.start_line, hit.end_line)
    assert hit.also_in == detail.also_in == transcript.also_in
    return hit.also_in


def forget(history: History, session: str, *, erase: bool) -> None:
    deletions = Deletions(history.store, history.raw)
    deletions.delete(deletions.plan(DeletionRequest(targets=(session,), erase=erase)))
    history.ingest()


@pytest.mark.parametrize("again", [fork, resumed, copied])
def test_every_layer_lists_the_other_session(history: History, again: Any) -> None:
    """Forks, resumed sessions and copies are listed for repeated content only."""
    history.write(talk("one", "two"), at=1)
    history.write(talk("three"), THIRD, at=1)
    history.write(again(), FORK, at=2)
    history.ingest()

    assert also_in(history, "one") == also_in(history, "two") == (FORK,)
    assert also_in(history, "three") == ()
    if again is not copied:
        assert also_in(history, "apart") == ()


def test_a_second_file_of_a_session_is_not_another_session(history: History) -> None:
    """A session with files in two folders, as after a move of its project, lists no other session."""
    history.write(talk("one"), project="shop", at=1)
    history.write(talk("one", "two"), project="moved", at=2)
    history.ingest()

    assert also_in(history, "one") == ()


def test_a_growing_fork_remains_a_fork(history: History) -> None:
    """Repeated content is recognized after the fork has grown, in any order of ingest runs."""
    history.write(talk("one", "two"), at=1)
    history.write(talk("one", session=FORK), FORK, at=2)
    history.ingest()
    history.append(talk("apart", session=FORK), FORK, at=3)
    history.ingest()
    history.append(talk("two", session=FORK), FORK, at=4)
    history.ingest()

    assert also_in(history, "one") == also_in(history, "two") == (FORK,)
    assert also_in(history, "apart") == ()


def test_a_transcript_of_a_fork_lists_the_original_and_the_other_forks(history: History) -> None:
    """Layer 3 lists the original session and the other forks where lines are repeated."""
    history.write(talk("one", "two"), at=1)
    history.write(fork(), FORK, at=2)
    history.write(talk("one", session=THIRD), THIRD, at=3)
    history.ingest()
    path = history.source(FORK).archived
    with ArchiveSearch(history.home) as layers:
        parts = [layers.read(path, start, start + 1).also_in for start in (1, 3, 5)]

    assert parts == [(ORIGINAL, THIRD), (ORIGINAL,), ()]


@pytest.mark.parametrize("erase", [False, True])
@pytest.mark.parametrize("again", [fork, resumed])
def test_a_forgotten_fork_is_not_listed(history: History, erase: bool, again: Any) -> None:
    """No layer lists a fork that was forgotten or erased."""
    history.write(talk("one", "two"), at=1)
    history.write(again(), FORK, at=2)
    history.ingest()
    forget(history, FORK, erase=erase)

    assert also_in(history, "one") == ()


def test_an_older_archive_is_read_again(history: History) -> None:
    """Reading sources again adds the repetitions that an older archive lacks, and keeps every key."""
    history.write(talk("one", "two"), at=1)
    history.write(fork(), FORK, at=2)
    history.ingest()
    keys = history.store.items.all_keys()
    database = history.store._database
    database.run("DELETE FROM repetition")
    database.run("UPDATE source SET rules = '' WHERE coverage ->> '$.repeated' > 0")
    history.ingest()

    assert also_in(history, "one") == (FORK,)
    assert history.store.items.all_keys() == keys


def test_other_sessions_cost_few_tokens(history: History) -> None:
    """Layer 1 adds two words where content is repeated. Other layers list at most three sessions."""
    history.write(talk("one", "two"), at=1)
    others = [f"{number}4444444-0000-4000-8000-000000000004" for number in range(5)]
    for at, name in enumerate(others, 2):
        history.write(talk("one", session=name), name, at=at)
    history.ingest()
    found, alone = search(history, "one"), search(history, "two")
    with ArchiveSearch(history.home) as layers:
        details = layers.details([found.hits[0].id])
        transcript = layers.read(found.hits[0].path)
    page, label = Renderer(), f"in 5 sessions: {', '.join(others[:3])}, …"

    assert "(also in 5 sessions)\n" in page.search(found)
    assert "session" not in page.search(alone).partition("<recalled-")[2]
    assert f"Also {label}." in page.observations(details)
    assert f"# Also {label}".replace("Also in", "Also in:") in page.read(transcript)
    expected = {"sessions": 5, "ids": others[:3]}
    assert results_json(found)["results"][0].get("also_in") == expected
    assert "also_in" not in results_json(alone)["results"][0]
    assert details_json(details)["observations"][0]["also_in"] == expected == transcript_json(transcript)["also_in"]
