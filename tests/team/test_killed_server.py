"""Pushes to a server that is killed with SIGKILL at one statement after another."""

import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import psycopg
import pytest

from palaver.team.protocol import Batch
from palaver.team.server import raw_objects
from palaver.team.server.raw_store import RawStore

from .members import Machine, exchange, full_copy, invited, memory
from .postgres import DatabaseUrls

ROOT = Path(__file__).parents[2]
KILLS = int(os.environ.get("TEAM_KILLS", "12"))
STEPS = 142
"""Number of steps of a token and a batch with items and withdrawals. In 142 rounds each step has its turn."""


@contextmanager
def process(urls: DatabaseUrls, step: int, folder: Path) -> Generator[str]:
    """Run a server that kills itself at a step, and yield its URL."""
    command = [sys.executable, "-m", "tests.team.killed_server", urls.app, str(step), str(folder)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.kill()


def send(machine: Machine, batch: Batch) -> bool:
    """Send a batch. Return False if the server died."""
    try:
        machine.cursor = machine.send(batch).cursor
    except httpx2.TransportError:
        return False
    return True


def test_a_killed_server_loses_and_repeats_nothing(
    urls: DatabaseUrls, url: str, raw_folder: Path, raw_store: RawStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After each kill the machine sends its batch again. In the end the server has exactly what is shared.

    Objects that were written without an item are deleted by `palaver team clean`.
    """
    machine = Machine(url, invited(urls, "Ann"))
    shared, killed = dict[str, str](), 0
    for number in range(KILLS):
        items = [exchange(f"{number} {each}") for each in range(5)] + [memory(f"{number}")]
        items += [full_copy(shared, f"output {number}") for shared in items[:3]]
        gone = [name for name in shared if int(name[:2], 16) % 3 == number % 3][:2]
        batch = machine.batch(items, gone)
        with process(urls, (number + 1) * STEPS // KILLS, raw_folder) as machine.url:
            machine.access = ""
            is_done = send(machine, batch)
        if not is_done:
            killed += 1
            machine.url = url
            machine.access = ""
            assert send(machine, batch)
        assert machine.cursor == batch.end
        shared |= {item.id: item.hash for item in items}
        shared = {name: hashed for name, hashed in shared.items() if name not in gone}

    assert killed >= KILLS - 1  # A batch without withdrawals has fewer steps.
    machine.url, machine.access = url, ""
    assert dict(machine.shared()) == shared
    with psycopg.connect(urls.owner) as connection:
        rows = connection.execute("SELECT id::text FROM palaver.item WHERE person = %s", (machine.joined.person,))
        assert {name for (name,) in rows} == shared.keys()
        copies = connection.execute("SELECT convert_from(body, 'UTF8') FROM palaver.item WHERE kind = 'raw'").fetchall()
    live, stored = {name for (name,) in copies}, {*raw_store.folder.transport.sizes("")} - {"key"}
    assert live < stored  # A killed server left objects.
    assert all(raw_store.get(name) for name in live)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 4_000)
    # Some were deleted before the server recorded it.
    assert raw_objects.clean(urls.owner, raw_store.folder).deleted >= len(stored - live)
    assert {*raw_store.folder.transport.sizes("")} == live | {"key"}
