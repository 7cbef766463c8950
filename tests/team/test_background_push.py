"""Pushes of the background archiver."""

import sys
from pathlib import Path

import pytest

from palaver.cli.background_push import BackgroundPush
from palaver.core.home import Home


class Pusher:
    """Background push with a clock that the test moves, and a command that counts its runs."""

    def __init__(self, root: Path, *, code: int = 0, joined: bool = True) -> None:
        self.now, self._runs = 0.0, root / "runs"
        self._runs.touch()
        home = Home(root / "palaver")
        if joined:
            home.team_key.parent.mkdir(parents=True)
            home.team_key.touch()
        program = f"import sys; open(sys.argv[1], 'a').write('x'); sys.exit({code})"
        self.push = BackgroundPush(home, [sys.executable, "-c", program, str(self._runs)], lambda: self.now)

    def runs(self, now: float, event: str = "") -> int:
        """Let an event happen at a time, and return the number of pushes until then."""
        self.now = now
        self.push.note(event)
        self.push.step()
        if self.push.process is not None:
            self.push.process.wait(60)
        self.push.step()
        return len(self._runs.read_text())


def test_new_entries_are_pushed_once_a_minute(tmp_path: Path) -> None:
    """The first push follows the start. Later ones follow indexed entries, and every ten minutes anything else."""
    pusher = Pusher(tmp_path)
    events = [(0, ""), (10, "indexed"), (61, ""), (500, "ingested"), (662, "")]

    assert [pusher.runs(now, event) for now, event in events] == [1, 1, 2, 2, 3]


def test_a_failed_push_does_no_harm(tmp_path: Path) -> None:
    """If the server does not answer, the next push tries again."""
    pusher = Pusher(tmp_path, code=1)

    assert [pusher.runs(0), pusher.runs(100, "indexed")] == [1, 2]


def test_a_machine_without_a_team_starts_nothing(tmp_path: Path) -> None:
    """Without a key of a team, no process is started."""
    pusher = Pusher(tmp_path, joined=False)

    assert [pusher.runs(0), pusher.runs(100, "indexed")] == [0, 0]


@pytest.mark.parametrize("joined", [False, True])
def test_stopping_ends_a_running_push(tmp_path: Path, *, joined: bool) -> None:
    """The archiver does not wait for a push when it stops."""
    pusher = Pusher(tmp_path, joined=joined)
    pusher.push.step()
    pusher.push.stop()

    assert pusher.push.process is None
