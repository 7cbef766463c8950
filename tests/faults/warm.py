"""A process that has imported everything, so that a test can start and kill hundreds of processes in a minute."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ROOT = Path(__file__).parents[2]


class Warm:
    """Starts tasks of `worker.py`, each in a process of its own, and ends them."""

    def __init__(self, complaints: Path) -> None:
        """What the processes print on standard error goes to the file `complaints`."""
        self._complaints = complaints
        command = [sys.executable, "-m", "tests.faults.worker"]
        with complaints.open("ab") as stderr:
            self._process = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True
            )

    def start(self, task: str, *arguments: object) -> int:
        """The number of a new process that does this."""
        return int(self._ask("start", [task, *map(str, arguments)]))

    def kill(self, numbers: Sequence[int]) -> None:
        """Kill these with SIGKILL, all before any of them is waited for."""
        self._ask("kill", list(numbers))

    def failed(self) -> list[int]:
        """Those that ended by themselves and not well."""
        return list(self._ask("failed", []))

    def complaints(self) -> str:
        """What they said about it."""
        return self._complaints.read_text(errors="replace")[-4000:]

    def _ask(self, what: str, arguments: list[Any]) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps([what, arguments]) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.communicate()
