"""A killed process loses no stored result, and stored results are not requested again."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from palaver.archiver.store import SUMMARY_PREFIX
from palaver.observe.llm import model_extractor
from palaver.observe.rules import VERSION

from .conftest import SESSIONS, Stage, changing_exchange

WORKER = Path(__file__).with_name("worker.py")


@pytest.fixture
def backlog(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Return five sessions with one exchange each, dated by the real clock."""
    stage.now = round(time.time() * 1000)
    for number, session in enumerate(SESSIONS):
        stage.say(session, changing_exchange(number + 1))
    monkeypatch.setattr(model_extractor, "NEWEST", 0)
    return stage


def killed(stage: Stage, moment: str) -> None:
    """Run the extractor in a process that kills itself at this moment."""
    command = [sys.executable, str(WORKER), str(stage.history.folder), stage.provider.url, moment]
    assert subprocess.run(command, check=False, timeout=200).returncode == -signal.SIGKILL


def test_killed_between_send_and_save(backlog: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lost reply counts as charged in full, and its exchange is sent again when the lease expires."""
    monkeypatch.setattr(model_extractor, "NEWEST", 3)
    killed(backlog, "asked")
    assert len(backlog.provider.calls) == 1
    assert backlog.extractors() == [VERSION] * 5
    [lost] = backlog.store.ledger.by_model()
    assert (lost.calls, lost.unanswered) == (1, 1)

    assert backlog.run().learned == 2
    backlog.later(3_600)
    assert backlog.run().learned + backlog.run().learned == 3

    assert backlog.extractors() == ["llm"] * 5
    assert len(backlog.provider.calls) == 6
    assert sum(row.calls for row in backlog.store.ledger.by_model()) == 6
    assert backlog.store.ledger.spent_since(0) >= lost.cost


def test_killed_after_sending_a_batch(backlog: Stage) -> None:
    """A submitted batch is found by its token, and no request is sent again."""
    killed(backlog, "sent")
    [batch] = backlog.store.jobs.open_batches()
    assert batch.name is None

    assert backlog.run().learned == 5

    assert backlog.extractors() == ["llm"] * 5
    assert len(backlog.provider.calls) == 5
    [row] = backlog.store.ledger.by_model()
    assert (row.calls, row.unanswered) == (5, 0)


def test_killed_while_storing_results(backlog: Stage) -> None:
    """Each result is stored once and charged once, even if the process is killed between results."""
    assert backlog.run().sent == 5
    killed(backlog, "taken")
    assert sorted(backlog.extractors()) == ["llm"] * 2 + [VERSION] * 3

    assert backlog.run().learned == 3

    assert backlog.extractors() == ["llm"] * 5
    [row] = backlog.store.ledger.by_model()
    assert (row.calls, row.unanswered, row.usage.tokens_out) == (5, 0, 1000)


def test_killed_while_summarising(stage: Stage) -> None:
    """A lost summary counts as charged in full. The session is sent again when its lease ends."""
    stage.now = round(time.time() * 1000)
    [first, *_] = stage.say("one", *(changing_exchange(number) for number in (3, 2, 1)))
    session = stage.store.exchanges.load([first])[first].session
    killed(stage, "summary")
    assert stage.extractors() == ["llm"] * 3
    assert stage.run().asked == 0

    stage.later(3_600)
    assert stage.run().summarised == 1

    summary = stage.store.summaries.of_session(session)
    assert summary is not None
    assert summary.observation.extractor.startswith(SUMMARY_PREFIX)
    assert len(stage.provider.calls) == 5
    calls = {row.reason: (row.calls, row.unanswered) for row in stage.store.ledger.by_model()}
    assert calls == {"newest": (3, 0), "session": (2, 1)}
