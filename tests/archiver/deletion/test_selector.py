"""A request selects whole exchanges by ID, path, lines or text."""

import pytest

from palaver.core.deletion import DeletionRequest
from palaver.core.errors import InvalidInput

from ..history import History, talk
from .steps import OTHER, all_prompts, copied_bytes, exchange, forget, plan, undo


def test_deleted_content_can_be_selected_only_for_erasure(history: History) -> None:
    """Deleted sessions and deleted text can be selected for erasure, but not for another deletion."""
    history.write(talk("one", "canary"), at=1)
    history.write(talk("other", session=OTHER), OTHER, at=2)
    history.ingest()
    number = forget(history, exchange(history, "canary?"))
    forget(history, OTHER)
    with pytest.raises(InvalidInput, match="No match in the archive for"):
        plan(history, DeletionRequest((OTHER,)))
    assert plan(history, DeletionRequest(mentions="canary")).sources == []

    forget(history, OTHER, erase=True)
    forget(history, mentions="canary", erase=True)

    assert b"other?" not in copied_bytes(history)
    assert b"canary" not in copied_bytes(history)
    assert all_prompts(history) == ["one?"]
    with pytest.raises(InvalidInput, match="erased"):
        undo(history, number)


def test_a_title_is_deleted_with_its_prompt(history: History) -> None:
    """If the prompt that is a session's title is deleted, the next remaining prompt becomes the title."""
    history.write(talk("secret", "two"))
    history.ingest()
    assert history.session().title == "secret?"

    forget(history, exchange(history, "secret?"))

    assert history.session().title == "two?"


def test_mentions_selects_exchanges_by_text(history: History) -> None:
    """`mentions` selects the exchanges that contain a text, ignoring case."""
    history.write(talk("one", "Canary"), at=1)
    history.write(talk("other", "xCANARYx", session=OTHER), OTHER, at=2)
    history.ingest()

    forget(history, mentions="canary", erase=True)

    assert sorted(all_prompts(history)) == ["one?", "other?"]
    assert b"canary" not in copied_bytes(history).lower()


def test_a_path_with_lines_selects_exchanges(history: History) -> None:
    """A path with a line range selects the exchanges on these lines."""
    path = history.write(talk("one", "two", "three"))
    history.ingest()

    forget(history, f"{path}:3-4")

    assert history.prompts() == ["one?", "three?"]


def test_unknown_names_are_refused(history: History) -> None:
    """Unknown names, IDs of fewer than four characters and empty requests raise an error."""
    history.write(talk("one"), at=1)
    history.write(talk("other", session=OTHER), OTHER, at=2)
    history.ingest()

    for target in ("ex-999", "mem_1", "obs-1", "nowhere.jsonl", "111", "../../etc/passwd", "'; DROP TABLE item"):
        with pytest.raises(InvalidInput, match="No match in the archive for"):
            plan(history, DeletionRequest((target,)))
    with pytest.raises(InvalidInput, match="No content to delete was given"):
        plan(history, DeletionRequest())
