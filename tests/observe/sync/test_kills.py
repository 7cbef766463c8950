"""A synchronisation that is killed at any durable step is finished by the next run."""

import os
import shutil
from itertools import count
from pathlib import Path

from .devices import Machine, carry

EVERY = int(os.environ.get("SYNC_KILL_EVERY", "0"))
STEPS = count(1, EVERY) if EVERY else (4, 40, 110)
"""Steps at which a process is killed: every n-th one until no process lives that long, or only some."""


def test_a_killed_run_is_finished_by_the_next(tmp_path: Path) -> None:
    """Whichever step is the last of a sender and of a receiver, the next runs bring everything to both."""
    prepared = Machine(tmp_path / "prepared")
    for word in ("invoice", "parcel", "letter"):
        prepared.write("talk-1", word)
    prepared.write("talk-2", "stamp", padding=9_000_000)  # larger than a segment
    prepared.remember("The port is 80")
    prepared.forget("parcel", erase=False)
    expected, killed = {"invoice", "letter", "stamp"}, 0
    for step in STEPS:
        first, second = Machine(tmp_path / f"a{step}"), Machine(tmp_path / f"b{step}")
        shutil.copytree(prepared.home.root, first.home.root)
        was_killed = first.killed_sync(step)
        first.sync()
        carry(first, second)
        was_killed |= second.killed_sync(step)
        second.sync()
        assert second.words() == expected, step
        first.forget("letter", erase=True)
        was_killed |= first.killed_sync(step)
        first.sync()
        carry(first, second)
        was_killed |= second.killed_sync(step)
        second.sync()
        assert first.words() == second.words() == expected - {"letter"}, step
        assert second.memories().keys() == {"The port is 80"}, step
        shutil.rmtree(first.root)
        shutil.rmtree(second.root)
        killed += was_killed
        if not was_killed:
            break
    assert killed >= 2
