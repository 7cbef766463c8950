"""Pushes to a server that is killed with SIGKILL at one statement after another."""

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import psycopg

from palaver.team.protocol import Batch

from .members import Machine, exchange, invited, memory
from .postgres import DatabaseUrls

ROOT = Path(__file__).parents[2]
KILLS = int(os.environ.get("TEAM_KILLS", "12"))
STEPS = 76
"""Number of steps of a token and a batch with items and withdrawals. In 76 rounds each step has its turn."""


@contextmanager
def process(urls: DatabaseUrls, step: int) -> Generator[str]:
    """Run a server that kills itself at a step, and yield its URL."""
    command = [sys.executable, "-m", "tests.team.killed_server", urls.app, str(step)]
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


def test_a_killed_server_loses_and_repeats_nothing(urls: DatabaseUrls, url: str) -> None:
    """After each kill the machine sends its batch again. In the end the server has exactly what is shared."""
    machine = Machine(url, invited(urls, "Ann"))
    shared, killed = dict[str, str](), 0
    for number in range(KILLS):
        items = [exchange(f"{number} {each}") for each in range(5)] + [memory(f"{number}")]
        gone = [name for name in shared if int(name[:2], 16) % 3 == number % 3][:2]
        batch = machine.batch(items, gone)
        with process(urls, (number + 1) * STEPS // KILLS) as machine.url:
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
