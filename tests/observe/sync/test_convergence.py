"""Random histories on three machines end in one state, whatever the sync tool and kills do."""

import os
import random
from contextlib import suppress
from itertools import permutations
from pathlib import Path

import pytest

from palaver.core.errors import SyncRefused

from .devices import Machine, carry

HISTORIES = int(os.environ.get("SYNC_HISTORIES", "4"))
STEPS = 14


class History:
    """Random history, with what must hold at its end."""

    def __init__(self, root: Path, seed: int) -> None:
        self.random, self.machines = random.Random(seed), [Machine(root / name) for name in "abc"]
        self.written, self.forgotten, self.erased = set[str](), dict[str, tuple[Machine, int]](), set[str]()
        self.undone = set[str]()
        self.number = 0

    def step(self) -> None:
        machine = self.random.choice(self.machines)
        self.random.choices(
            [self._write, self._forget, self._undo, self._remember, self._revise, self._forget_memory, self._sync],
            [5, 2, 1, 2, 1, 1, 8],
        )[0](machine)

    def _write(self, machine: Machine) -> None:
        self.number += 1
        word = f"word{self.number}"
        machine.write(f"talk-{self.random.randrange(3)}", word)
        self.written.add(word)

    def _forget(self, machine: Machine) -> None:
        words = sorted(machine.words())
        if words:
            word, erase = self.random.choice(words), self.random.random() < 0.4
            number = machine.forget(word, erase=erase)
            if number is not None:
                (self.erased.add(word) if erase else self.forgotten.update({word: (machine, number)}))

    def _undo(self, machine: Machine) -> None:
        own = [word for word, (owner, _) in self.forgotten.items() if owner is machine and word not in self.erased]
        if own:
            word = self.random.choice(own)
            machine.undo(self.forgotten.pop(word)[1])
            self.undone.add(word)

    def _remember(self, machine: Machine) -> None:
        self.number += 1
        machine.remember(f"The port of service {self.number} is {self.random.randrange(9000)}")

    def _revise(self, machine: Machine) -> None:
        active = [content for content, state in machine.memories().items() if state == "active"]
        if active:
            self.number += 1
            machine.revise(self.random.choice(sorted(active)), f"The port of service {self.number} changed")

    def _forget_memory(self, machine: Machine) -> None:
        active = [content for content, state in machine.memories().items() if state == "active"]
        if active:
            machine.forget_memory(self.random.choice(sorted(active)))

    def _sync(self, machine: Machine) -> None:
        for other in self.machines:
            if other is not machine and self.random.random() < 0.7:
                carry(other, machine, self.random)
        if self.random.random() < 0.4:
            machine.killed_sync(self.random.randrange(1, 60))
        else:
            with suppress(SyncRefused):  # At its first run, a machine needs one complete manifest.
                machine.sync()

    def finish(self) -> None:
        """Let a perfect sync tool work until nothing changes any more."""
        for _ in range(8):
            for machine in self.machines:
                machine.ingest()
                with suppress(SyncRefused):
                    machine.sync()
            for source, target in permutations(self.machines, 2):
                carry(source, target)


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_three_machines_converge(tmp_path: Path, seed: int) -> None:
    """All machines find the same exchanges and memories. Nothing is lost, and nothing forgotten returns."""
    history = History(tmp_path, seed)
    for _ in range(STEPS):
        history.step()
    history.finish()
    hidden = history.forgotten.keys() | history.erased
    for machine in history.machines:
        assert machine.words() == history.written - hidden, machine.root.name
    states = [
        {content for content, state in machine.memories().items() if state == "active"} for machine in history.machines
    ]
    assert states[0] == states[1] == states[2]
