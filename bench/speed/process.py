"""Functions that run programs and measure them from outside."""

import compileall
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import IO, Any

import orjson
from msgspec import Struct

import palaver

PALAVER = (sys.executable, "-m", "palaver")
COLD_RUNS = 9
_OFTEN = 0.005
"""Interval between two checks of a process, in seconds."""


class Finished(Struct, frozen=True):
    """Finished program: wall seconds, CPU seconds, and peak resident memory in megabytes."""

    seconds: float
    cpu: float
    peak: float


class Place(Struct, frozen=True):
    """Temporary home, and transcripts of an agent. Measured programs see no other files of the user."""

    home: Path
    history: Path

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables of measured programs."""
        own = {
            "HOME": str(self.home.parent),
            "PALAVER_HOME": str(self.home),
            "CLAUDE_CONFIG_DIR": str(self.history),
            "CLAUDE_PROJECTS_DIR": str(self.history / "projects"),
        }
        others = dict.fromkeys(("CODEX_HOME", "COPILOT_HOME", "PI_CODING_AGENT_DIR"), str(self.home.parent / "none"))
        return {**os.environ, **others, **own}


def compile_modules() -> None:
    """Compile the modules of an editable install, as pip compiles the modules of an installed package.

    Without compiled modules, a cold search takes a fifth longer.
    """
    for folder in Path(palaver.__path__[0]).iterdir():
        if folder.is_dir():
            compileall.compile_dir(folder, quiet=2)


def run(command: Sequence[str], place: Place) -> Finished:
    """Run a program to its end. Raises `RuntimeError` if it fails."""
    with tempfile.TemporaryFile() as complaint:
        started = time.perf_counter()
        program = subprocess.Popen(command, env=place.environment, stdout=subprocess.DEVNULL, stderr=complaint)
        status, cpu, peak = _wait(program.pid)
        seconds = time.perf_counter() - started
        program.returncode = os.waitstatus_to_exitcode(status)
        if program.returncode:
            complaint.seek(0)
            said = complaint.read().decode(errors="replace")
            raise RuntimeError(f"{' '.join(command)} failed with exit status {program.returncode}: {said[-2000:]}")
    return Finished(seconds, cpu, peak)


def until(command: Sequence[str], place: Place, reached: Callable[[], bool]) -> float:
    """Run a program until a condition is true, then kill it. Return the elapsed time in seconds.

    Raises:
        RuntimeError: The program ended before the condition was true.
    """
    started = time.perf_counter()
    with subprocess.Popen(
        command, env=place.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as program:
        while not reached():
            if program.poll() is not None:
                raise RuntimeError(f"{' '.join(command)} ended early with exit status {program.returncode}")
            time.sleep(_OFTEN)
        seconds = time.perf_counter() - started
        program.kill()
    return seconds


def _wait(number: int) -> tuple[int, float, float]:
    """Return the exit status, the CPU time in seconds and the peak memory in megabytes of a child process."""
    _, status, usage = os.wait4(number, 0)
    return status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def paired(ours: Callable[[], float], baseline: Callable[[], float], runs: int = COLD_RUNS) -> tuple[float, float]:
    """Call two functions alternately and return the median of each function's results."""
    pairs = [(ours(), baseline()) for _ in range(runs)]
    return median(pair[0] for pair in pairs), median(pair[1] for pair in pairs)


class Client:
    """Minimal MCP client: one JSON object per line, one request at a time."""

    def __init__(self, sending: IO[bytes], receiving: IO[bytes], server: int = 0) -> None:
        """Use the pipes of a server. `server` is its process ID, which only `cpu_seconds` needs."""
        self._sending, self._receiving, self._server = sending, receiving, server
        self._last = 0

    def initialize(self) -> None:
        """Perform the handshake."""
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "0"}}
        self.request("initialize", about)
        self._send({"method": "notifications/initialized"})

    def request(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the result of a request. Raises `RuntimeError` for an error or a closed server."""
        self._last += 1
        self._send({"id": self._last, "method": method, "params": params})
        for line in self._receiving:
            reply = orjson.loads(line)
            if reply.get("id") == self._last:
                if "result" not in reply or reply["result"].get("isError"):
                    raise RuntimeError(f"{method}: {reply}")
                result: Mapping[str, Any] = reply["result"]
                return result
        raise RuntimeError(f"{method}: the server closed the connection")

    def cpu_seconds(self, method: str, params: Mapping[str, Any]) -> float:
        """Return the CPU time that the server needs for a request. Only Linux reports it.

        Unlike the wall time, it hardly depends on the other programs of the machine.
        """
        before = self._cpu()
        self.request(method, params)
        return self._cpu() - before

    def _cpu(self) -> float:
        """Return the CPU time of all threads of the server in seconds."""
        schedules = Path(f"/proc/{self._server}/task").glob("*/schedstat")
        return sum(int(schedule.read_text().split()[0]) for schedule in schedules) / 1e9

    def _send(self, message: Mapping[str, Any]) -> None:
        self._sending.write(orjson.dumps({"jsonrpc": "2.0", **message}) + b"\n")
        self._sending.flush()


@contextmanager
def server(place: Place, command: Sequence[str] = (*PALAVER, "mcp")) -> Generator[Client]:
    """Start an MCP server and yield a client. Closing the input of the server ends it."""
    with subprocess.Popen(
        command, env=place.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as program:
        assert program.stdin
        assert program.stdout
        yield Client(program.stdin, program.stdout, program.pid)
