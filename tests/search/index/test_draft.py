"""Is an index that was written while the archive was filled the one that would be made afterwards?"""

# pyright: reportPrivateUsage=false

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.core.errors import IndexUnwritable
from palaver.search.index import draft as drafts
from palaver.search.index.indexer import Indexer
from palaver.search.index.text_entry import TextWriter
from palaver.search.index.text_index import TextIndex

from ..history import History, Said

WORDS = ["alpha", "beta", "gamma", "delta"]
SAID = st.lists(st.sampled_from(WORDS), max_size=3).map(lambda words: Said(" ".join(words) or "nothing"))
STEPS = st.lists(st.tuples(st.integers(0, 2), st.lists(SAID, max_size=3), st.sampled_from(WORDS)), max_size=6)


@pytest.fixture
def indexer(history: History) -> Indexer:
    """An indexer of an empty archive."""
    return Indexer(history.store, history.generations, history.embedder)


def contents(history: History) -> Counter[tuple[int, int]]:
    """Every entry of the published index."""
    current = history.generations.current()
    assert current is not None
    assert current.manifest.entries == len(TextIndex.open(current.text))
    return TextIndex.open(current.text).contents()


@settings(max_examples=15)
@given(steps=STEPS)
def test_a_draft_becomes_what_a_rebuild_makes(steps: list[tuple[int, list[Said], str]]) -> None:
    """Sessions that grow, shrink, say something else or move meanwhile stand in the index as they are in the end."""
    with TemporaryDirectory() as folder:
        history = History(Path(folder))
        indexer = Indexer(history.store, history.generations, history.embedder)
        with indexer.draft() as draft:
            for name, said, project in steps:
                history.say(f"s{name}", *said, project=project)
                draft.follow()
            indexer.publish(draft)
        drafted = contents(history)
        indexer.rebuild()

        assert drafted == contents(history)


def test_a_draft_is_taken_over(history: History, indexer: Indexer, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was written into a draft is not written again, and no folder is left over."""
    with indexer.draft() as draft:
        history.say("one", Said("a question"))
        draft.follow()
        history.say("two", Said("another question"))
        monkeypatch.setattr(Indexer, "_build_text", None)
        published = indexer.publish(draft)

    assert published is not None
    assert published.manifest.entries == 2
    assert {path.name for path in history.generations.root.iterdir()} == {"CURRENT", "gen-1"}


def test_only_an_empty_archive_is_followed(history: History, indexer: Indexer) -> None:
    """Where something is stored already, nothing is drafted: all that would have to be written first."""
    history.say("one", Said("a question"))
    with indexer.draft() as draft:
        history.say("two", Said("another question"))
        draft.follow()

        assert not history.generations.root.exists()


def test_a_full_disk_ends_only_the_draft(history: History, indexer: Indexer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever archives does not hear that the draft cannot be written; the index is then made as ever."""

    def refuse(*_: object) -> None:
        raise IndexUnwritable("disk full")

    with indexer.draft() as draft:
        history.say("one", Said("a question"))
        monkeypatch.setattr(TextWriter, "replace", refuse)
        draft.follow()
        monkeypatch.undo()
        history.say("two", Said("another question"))
        draft.follow()
        published = indexer.publish(draft)

    assert published is not None
    assert published.manifest.entries == 2
    assert {path.name for path in history.generations.root.iterdir()} == {"CURRENT", "gen-1"}


def test_an_index_of_another_process_goes_before(history: History, indexer: Indexer) -> None:
    """Where somebody published meanwhile, that index is built upon."""
    with indexer.draft() as draft:
        history.say("one", Said("a question"))
        draft.follow()
        assert history.publish() is not None
        history.say("two", Said("another question"))
        published = indexer.publish(draft)

    assert published is not None
    assert (published.folder.name, published.manifest.entries) == ("gen-2", 2)
    assert not list(history.generations.root.glob(f"*{drafts._SUFFIX}"))


def test_a_draft_that_was_killed_is_swept_up(history: History, indexer: Indexer) -> None:
    """The folder of a process that died goes with the generations that are no longer needed."""
    abandoned = indexer.draft()
    history.say("one", Said("a question"))
    abandoned.follow()
    assert list(history.generations.root.glob(f"*{drafts._SUFFIX}"))

    indexer.publish()
    history.say("two", Said("another question"))
    indexer.publish()

    assert not list(history.generations.root.glob(f"*{drafts._SUFFIX}"))
