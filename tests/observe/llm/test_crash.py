"""A killed process loses no stored result, and stored results are not requested again."""

import signal
import subprocess
import sys
import time
from pathlib import Path

from palaver.observe.rules import VERSION

from .conftest import SESSIONS, Stage, changing_exchange

WORKER = Path(__file__).with_name("worker.py")


def test_killed_between_send_and_save(stage: Stage) -> None:
    """A lost reply counts as charged in full, and its exchange is sent again by the next run, after the others."""
    stage.now = round(time.time() * 1000)
    for number, session in enumerate(SESSIONS):
        stage.say(session, changing_exchange(number + 1))
    command = [sys.executable, str(WORKER), str(stage.history.folder), stage.provider.url]
    assert subprocess.run(command, check=False, timeout=200).returncode == -signal.SIGKILL
    assert len(stage.provider.calls) == 1
    assert stage.extractors() == [VERSION] * 5
    [lost] = stage.store.ledger.by_model()
    assert (lost.calls, lost.unanswered) == (1, 1)

    assert stage.run(exchanges=True).learned == 5

    assert stage.extractors() == ["llm"] * 5
    assert stage.provider.calls[0]["messages"] == stage.provider.calls[-1]["messages"]
    assert sum(row.calls for row in stage.store.ledger.by_model()) == 6
    assert stage.store.ledger.spent_since(0) >= lost.cost
