"""An index worker reports the changes that it processed, and verifies copies at regular intervals."""

# pyright: reportPrivateUsage=false

import pytest

from palaver.archiver.copies.verification import VERIFY_SECONDS, CopyVerifier
from palaver.core import conversation
from palaver.core.conversation import now
from palaver.core.reports import VerifiedCopies
from palaver.observe.background import index_worker, schedule
from palaver.observe.background.index_worker import update_index
from palaver.search.index.generation import Generations
from palaver.search.index.indexer import Indexer
from palaver.search.model.embedder import load

from ...archiver.history import FORK, History, talk
from ...old_version import outdate


def test_changes_during_verification_cause_another_worker(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker does not report changes as processed if they were archived while it verified copies."""
    seen = list[int]()

    def verified(*_: object) -> VerifiedCopies:
        seen.append(history.store.changes.last())
        history.write(talk("second", session=FORK), FORK, at=2)
        history.ingest()
        return VerifiedCopies(checked=1)

    monkeypatch.setattr(index_worker, "verify_due", verified)

    caught = update_index(history.home, None, settle=True)

    assert history.store.changes.last() > seen[0]
    assert (caught.seq, caught.lag, caught.left, caught.verified.checked) == (seen[0], 0, False, 1)


def test_copies_are_verified_each_hour(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker verifies copies an hour after the last verification, and not sooner."""
    begun = list[CopyVerifier]()

    def run(verifier: CopyVerifier) -> VerifiedCopies:
        begun.append(verifier)
        return VerifiedCopies()

    def later(seconds: float) -> None:
        at = now() + round(seconds * 1000)
        monkeypatch.setattr(conversation, "now", lambda: at)
        index_worker.verify_due(history.home, history.store, indexer)

    monkeypatch.setattr(CopyVerifier, "run", run)
    indexer = Indexer(history.store, Generations(history.home.index), load())

    later(0)
    later(schedule._IDLE / 2)
    assert len(begun) == 1
    later(schedule._IDLE - 10 * VERIFY_SECONDS)
    assert len(begun) == 2
    later(-3 * 24 * 3600)  # The clock was wrong before.
    assert len(begun) == 3


def test_an_index_of_another_version_is_rebuilt(history: History) -> None:
    """The first worker after an upgrade rebuilds the index and reports it. The next worker does not."""
    history.write(talk("first"))
    history.ingest()
    update_index(history.home, None, settle=True)
    outdate(history.home.index)

    assert update_index(history.home, None, settle=False).reindexed
    assert not update_index(history.home, None, settle=True).reindexed
