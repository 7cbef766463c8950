"""Pushes that are killed, cut, repeated and delayed, and machines and servers that were copied or restored.

After each fault, the server has exactly what the levels of the laptop let out.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from palaver.core.errors import TeamRefused, TeamUnreachable
from palaver.observe.archive import Archive
from palaver.observe.sync.keyring import DeviceKey
from palaver.team.client.server_connection import ServerConnection
from palaver.team.server.raw_store import RawStore

from .laptop import Laptop
from .members import invited
from .postgres import DatabaseUrls

ROOT = Path(__file__).parents[2]
KILLS = int(os.environ.get("TEAM_KILLS", "8"))


@pytest.fixture
def laptop(tmp_path: Path, url: str, urls: DatabaseUrls) -> Laptop:
    """Return a laptop of a new person, which shares two conversations."""
    machine = Laptop(tmp_path / "laptop")
    machine.write("oven", "talk-1", "door", "lamp", "grill")
    machine.write("oven", "talk-2", "shelf")
    machine.team("join", url, invited(urls, f"Ann {uuid4()}"))
    machine.team("share", "oven", "--level", "raw", "--full-copies")
    return machine


@pytest.fixture(autouse=True)
def _objects(urls: DatabaseUrls, raw_store: RawStore) -> Iterator[None]:
    """Check after each test that the store has exactly the full copies that the server lists."""
    yield
    with psycopg.connect(urls.owner) as connection:
        rows = connection.execute("SELECT name, withdrawn FROM palaver.raw_object").fetchall()
    assert {*raw_store.folder.transport.sizes("")} - {"key"} == {name for name, _ in rows}
    assert not any(withdrawn for _, withdrawn in rows)


def killed(laptop: Laptop, step: int) -> bool:
    """Push in another process that is killed at a step. Return whether it lived that long."""
    command = [sys.executable, "-m", "tests.team.killed_push", str(laptop.home.root), str(step)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in {0, -signal.SIGKILL}, done.stderr
    return done.returncode != 0


def steps(laptop: Laptop) -> int:
    """Push in another process, and return its number of steps."""
    command = [sys.executable, "-m", "tests.team.killed_push", str(laptop.home.root), "0"]
    return int(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)


def change(laptop: Laptop, chance: random.Random, number: int) -> None:
    """Archive new exchanges, forget one, and change a level."""
    words = [f"part{number}x{count}" for count in range(chance.randint(1, 6))]
    laptop.write("oven", f"talk-{chance.randint(1, 4)}", *words)
    if chance.random() < 0.5:
        laptop.forget(mentions=f"{chance.choice(words)} fail", erase=chance.random() < 0.5)
    if chance.random() < 0.3:
        with Archive(laptop.home) as archive, archive.store.transaction():
            [identity] = archive.store.team.choices().levels or ["/home/demo/oven"]
            level = chance.choice(["", "metrics", "team", "raw"])
            archive.store.team.set_level(identity, "oven", level)


def test_a_killed_push_is_finished_by_the_next(laptop: Laptop, urls: DatabaseUrls) -> None:
    """Whichever step is the last, also several times in a row, the next push brings the server to the plan."""
    laptop.push()
    laptop.write("oven", "talk-1", "knob", "hinge")
    chance, kills, most = random.Random(7), 0, steps(laptop)
    assert laptop.held(urls) == laptop.planned() != {}
    for number in range(KILLS):
        change(laptop, chance, number)
        kills += killed(laptop, 1 + number * most // KILLS)
        if chance.random() < 0.5:
            laptop.push()
            assert laptop.held(urls) == laptop.planned(), number
    laptop.push()

    assert laptop.held(urls) == laptop.planned()
    assert kills >= KILLS // 2  # A push without batches has fewer steps.


def test_a_careless_network_loses_and_repeats_nothing(
    laptop: Laptop, urls: DatabaseUrls, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests and replies that are lost, repeated and late end in the planned set."""
    chance, plain, late = random.Random(7), ServerConnection.send, list[tuple[str, bytes | None, str]]()

    def careless(self: ServerConnection, name: str, body: bytes | None, token: str) -> tuple[int, bytes]:
        fate = chance.random()
        if fate < 0.15:  # The request is lost, or arrives when the machine has gone on.
            late.append((name, body, token))
            raise TeamUnreachable("lost")
        if fate < 0.3:
            plain(self, name, body, token)
        if late and chance.random() < 0.5:
            plain(self, *late.pop(chance.randrange(len(late))))
        reply = plain(self, name, body, token)
        if fate > 0.85:
            raise TeamUnreachable("The reply is lost")
        return reply

    monkeypatch.setattr("palaver.team.client.push.ITEMS_MAX", 4)
    for number in range(30):
        change(laptop, chance, number)
        monkeypatch.setattr(ServerConnection, "send", careless)
        with pytest.MonkeyPatch.context():
            try:
                laptop.push()
            except (TeamUnreachable, TeamRefused):
                continue
            finally:
                monkeypatch.setattr(ServerConnection, "send", plain)
        if not late:
            assert laptop.held(urls) == laptop.planned(), number
    laptop.push()

    assert laptop.held(urls) == laptop.planned()


def test_a_server_restored_from_a_backup_gets_what_it_lost(laptop: Laptop, urls: DatabaseUrls) -> None:
    """A server with an earlier cursor gets all later items again, and all later withdrawals."""
    laptop.push()
    device = device_of(laptop)
    with psycopg.connect(urls.owner) as connection:
        row = connection.execute("SELECT cursor FROM palaver.device WHERE id = %s", (device,)).fetchone()
        assert row is not None
        rows = connection.execute("SELECT * FROM palaver.item WHERE device = %s", (device,)).fetchall()
    laptop.write("oven", "talk-3", "knob")
    laptop.forget(mentions="lamp fail")
    laptop.push()
    after = laptop.held(urls)
    with psycopg.connect(urls.owner) as connection:
        connection.execute("DELETE FROM palaver.item WHERE device = %s", (device,))
        connection.execute("DELETE FROM palaver.gone WHERE device = %s", (device,))
        marks = ", ".join(["%s"] * len(rows[0]))
        for item in rows:
            connection.execute(f"INSERT INTO palaver.item OVERRIDING SYSTEM VALUE VALUES ({marks})".encode(), item)
        connection.execute("UPDATE palaver.device SET cursor = %s, batch = NULL WHERE id = %s", (row[0], device))
    assert laptop.held(urls) != after

    laptop.push()
    assert laptop.held(urls) == after == laptop.planned()


def device_of(laptop: Laptop) -> str:
    with Archive(laptop.home) as archive:
        membership = archive.store.team.joined()
    assert membership is not None
    return membership.device


def test_a_home_restored_from_a_backup_withdraws_what_it_does_not_know(
    laptop: Laptop, urls: DatabaseUrls, tmp_path: Path
) -> None:
    """A laptop with an earlier state compares everything with the server. What it does not have is withdrawn."""
    laptop.push()
    shutil.copytree(laptop.home.root, tmp_path / "backup")
    laptop.write("oven", "talk-3", "knob")
    laptop.forget(mentions="lamp fail")
    laptop.push()
    key = laptop.home.team_key
    own = DeviceKey(key).load()
    assert own is not None
    shutil.rmtree(laptop.home.root)
    shutil.copytree(tmp_path / "backup", laptop.home.root)
    DeviceKey(key).store(own)

    report = laptop.push()
    assert [lamp.reason for lamp in report.refused] == ["withdrawn after this change"] * 2  # with its full copy
    missing = laptop.planned().keys() - laptop.held(urls).keys()
    assert len(missing) == 2
    assert laptop.held(urls).items() < laptop.planned().items()
    assert "lamp" not in laptop.texts(urls)
    assert "knob" not in laptop.texts(urls)


def test_a_copied_home_has_to_join(laptop: Laptop, urls: DatabaseUrls, tmp_path: Path) -> None:
    """A copy of a home has no valid key. It joins as another machine of the person, and both go on."""
    laptop.push()
    copy = Laptop(tmp_path / "copy", laptop.home)
    failed = copy.team("push", code=1).stderr
    assert "copied from another machine" in failed
    assert "palaver team join" in failed

    person = laptop.json("status")["person"]
    copy.team("join", laptop.json("status")["url"], invited(urls, person))
    copy.push()
    assert copy.held(urls).keys() >= copy.planned().keys()
    laptop.push()
    assert laptop.conversations(urls).keys() == copy.conversations(urls).keys()


def test_a_cloned_disk_ends_in_one_of_both_machines(laptop: Laptop, urls: DatabaseUrls, tmp_path: Path) -> None:
    """If two machines have the same valid key, the first one is refused as soon as the other began a new epoch."""
    laptop.push()
    clone = Laptop(tmp_path / "clone", laptop.home)
    own = DeviceKey(laptop.home.team_key).load()
    assert own is not None
    DeviceKey(clone.home.team_key).store(own)
    laptop.write("oven", "talk-3", "knob")
    laptop.push()
    clone.push()
    assert clone.held(urls) == clone.planned()

    failed = laptop.team("push", code=1).stderr
    assert "Another machine pushes with the key of this one" in failed
    assert "palaver team join" in failed
    person = clone.json("status")["person"]
    laptop.team("join", clone.json("status")["url"], invited(urls, person))
    laptop.write("oven", "talk-4", "hinge")
    laptop.push()
    clone.push()
    assert laptop.held(urls).items() >= clone.planned().items()
    assert "hinge" in laptop.texts(urls)


@pytest.mark.parametrize("years", [-10, 10])
def test_wrong_clocks_change_nothing(
    laptop: Laptop, urls: DatabaseUrls, years: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a clock that is ten years off, tokens are renewed and the order of changes stays."""
    laptop.push()
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + years * 31_557_600)
    laptop.forget(mentions="lamp fail")
    laptop.write("oven", "talk-3", "knob")
    laptop.push()
    monkeypatch.undo()
    laptop.write("oven", "talk-3", "hinge")
    laptop.push()

    assert laptop.held(urls) == laptop.planned()
    assert "lamp" not in laptop.texts(urls)


def test_four_hundred_retractions_leave_nothing(laptop: Laptop, urls: DatabaseUrls, tmp_path: Path) -> None:
    """Of 200 erased and 200 unshared exchanges none is left, and no other machine with a copy brings one back."""
    for project in ("forge", "kiln"):
        laptop.write(project, f"talk-{project}", *(f"{project}{number}" for number in range(200)))
        laptop.team("share", project, "--level", "raw", "--full-copies")
    laptop.push()
    copy = Laptop(tmp_path / "copy", laptop.home)
    laptop.forget(targets=("talk-forge",), erase=True)
    laptop.team("unshare", "kiln")
    laptop.push()
    assert laptop.held(urls) == laptop.planned()

    status = laptop.json("status")
    copy.team("join", status["url"], invited(urls, status["person"]))
    report = copy.push()
    left = [word for word in copy.texts(urls).split() if word.startswith(("forge", "kiln")) and word[-1].isdigit()]
    assert left == []
    assert len(report.refused) >= 800  # exchanges and their full copies
