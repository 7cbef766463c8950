"""Process that has imported all modules, so that a test can start and kill hundreds of processes per minute."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ROOT = Path(__file__).parents[2]


class Warm:
    """Starter of processes that run tasks of `worker.py`."""

    def __init__(self, complaints: Path) -> None:
        """Start the server. All processes write standard error to the file `complaints`."""
        self._complaints = complaints
        command = [sys.executable, "-m", "tests.faults.worker"]
        with complaints.open("ab") as stderr:
            self._process = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True
            )

    def start(self, task: str, *arguments: object) -> int:
        """Start a process for a task and return its process ID."""
        return int(self._ask("start", [task, *map(str, arguments)]))

    def kill(self, numbers: Sequence[int]) -> None:
        """Send SIGKILL to all processes, then wait for them."""
        self._ask("kill", list(numbers))

    def failed(self) -> list[int]:
        """Return the processes that exited with an error."""
        return list(self._ask("failed", []))

    def complaints(self) -> str:
        """Return the standard error of all processes."""
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
