"""Tests of drafts: an index that is written during the first ingest run."""

# pyright: reportPrivateUsage=false

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.core.errors import IndexUnwritable
from palaver.search.index import generation as drafts
from palaver.search.index.indexer import Indexer
from palaver.search.index.text_index import TextIndex, TextWriter

from ..history import History, Said

WORDS = ["alpha", "beta", "gamma", "delta"]
SAID = st.lists(st.sampled_from(WORDS), max_size=3).map(lambda words: Said(" ".join(words) or "nothing"))
STEPS = st.lists(st.tuples(st.integers(0, 2), st.lists(SAID, max_size=3), st.sampled_from(WORDS)), max_size=6)


@pytest.fixture
def indexer(history: History) -> Indexer:
    """Return an indexer of an empty archive."""
    return Indexer(history.store, history.generations, history.embedder)


def contents(history: History) -> Counter[tuple[int, int]]:
    """Return every entry of the published index."""
    current = history.generations.current()
    assert current is not None
    assert current.manifest.entries == len(TextIndex.open(current.text))
    return TextIndex.open(current.text).contents()


@settings(max_examples=15)
@given(steps=STEPS)
def test_a_draft_equals_a_rebuilt_index(steps: list[tuple[int, list[Said], str]]) -> None:
    """After sessions grow, shrink, change or move, the draft has the same entries as a rebuilt index."""
    with TemporaryDirectory() as folder:
        history = History(Path(folder))
        indexer = Indexer(history.store, history.generations, history.embedder)
        with indexer.draft() as draft:
            for name, exchanges, project in steps:
                history.say(f"s{name}", *exchanges, project=project)
                draft.add_changes()
            indexer.publish(draft)
        drafted = contents(history)
        indexer.rebuild()

        assert drafted == contents(history)


def test_a_draft_is_published(history: History, indexer: Indexer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries of a draft are not written again when it is published, and its folder is removed."""
    with indexer.draft() as draft:
        history.say("one", Said("a question"))
        draft.add_changes()
        history.say("two", Said("another question"))
        monkeypatch.setattr(Indexer, "_build_text", None)
        published = indexer.publish(draft)

    assert published is not None
    assert published.manifest.entries == 2
    assert {path.name for path in history.generations.root.iterdir()} == {"CURRENT", "gen-1"}


def test_only_an_empty_archive_has_a_draft(history: History, indexer: Indexer) -> None:
    """If the archive already has items, no draft is written."""
    history.say("one", Said("a question"))
    with indexer.draft() as draft:
        history.say("two", Said("another question"))
        draft.add_changes()

        assert not history.generations.root.exists()


def test_a_full_disk_ends_only_the_draft(history: History, indexer: Indexer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A draft that cannot be written raises no error during ingest, and the index is built afterwards."""

    def refuse(*_: object) -> None:
        raise IndexUnwritable("disk full")

    with indexer.draft() as draft:
        history.say("one", Said("a question"))
        monkeypatch.setattr(TextWriter, "replace", refuse)
        draft.add_changes()
        monkeypatch.undo()
        history.say("two", Said("another question"))
        draft.add_changes()
        published = indexer.publish(draft)

    assert published is not None
    assert published.manifest.entries == 2
    assert {path.name for path in history.generations.root.iterdir()} == {"CURRENT", "gen-1"}


def test_an_index_of_another_process_replaces_the_draft(history: History, indexer: Indexer) -> None:
    """If another process published an index meanwhile, that index is updated and the draft is removed."""
    with indexer.draft() as draft:
        history.say("one", Said("a question"))
        draft.add_changes()
        assert history.publish() is not None
        history.say("two", Said("another question"))
        published = indexer.publish(draft)

    assert published is not None
    assert (published.folder.name, published.manifest.entries) == ("gen-2", 2)
    assert not list(history.generations.root.glob(f"*{drafts._SUFFIX}"))


def test_a_draft_of_a_killed_process_is_removed(history: History, indexer: Indexer) -> None:
    """Publishing removes the draft folder of a dead process together with old generations."""
    abandoned = indexer.draft()
    history.say("one", Said("a question"))
    abandoned.add_changes()
    assert list(history.generations.root.glob(f"*{drafts._SUFFIX}"))

    indexer.publish()
    history.say("two", Said("another question"))
    indexer.publish()

    assert not list(history.generations.root.glob(f"*{drafts._SUFFIX}"))
