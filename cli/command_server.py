"""Process that answers commands of the command line, and the thread that keeps it running.

The process has loaded all modules and the embedding model. For each command, it starts a child process (`fork`) that
takes over the arguments, the environment and the folder of the caller, runs the command and sends its output. So
commands do not affect each other, and a command that fails, hangs or is killed affects nobody else. The caller then
runs the command itself. See `core/command_socket.py`.

The process starts no thread, because a child process has only the thread that started it.
"""

import fcntl
import io
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

import palaver

from ..core.command_socket import (
    GREETING,
    SOCKET,
    OwnProcessNeeded,
    identity,
    is_switched_off,
    peer,
    receive,
    run_for_another_process,
    send,
    separated,
)
from ..core.errors import ConfigInvalid, PalaverError
from ..core.home import Home
from ..core.query import Query
from ..observe.archive import Archive
from ..templates.environment import compile_all
from .commands import main

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_LOCK: Final = "commands.lock"
_RETRY: Final = 2.0
"""Seconds until the first and between further attempts to start the process, so that it delays no other start."""
_RETRY_MAX: Final = 600.0
"""Maximum seconds between attempts. The time doubles while the process fails soon, as on a disk without sockets."""
_SOON: Final = 60.0
"""Seconds after which an end of the process is not a failure to start."""
_CHECK: Final = 30.0
"""Seconds between two checks that the socket is still in the home."""
_CHILDREN_MAX: Final = 8
"""Maximum number of commands at the same time."""
_SECONDS: Final = 10
"""Maximum duration of a command. Its caller waits for a shorter time, unless the caller itself was stopped."""
_OUTPUT: Final = 32_000_000
"""Maximum bytes of output. The caller runs a command with more output itself."""
_WARM: Final = (
    ("search", "palaver"),
    ("sessions", "-n", "1"),
    ("ask", "palaver", "--no-model"),
    ("open", "-n", "1"),
    ("how", "test"),
)
"""Commands that load what most commands need."""
_MODULES: Final = (
    "cli.hooks",
    "agents.hooks.hooks",
    "archiver.ingest.ended_sessions",
    "observe.commands.known_fixes",
    "observe.memory.rule_judge",
)
"""Modules that hooks and some answers load."""


def keep_answering(home: Home) -> None:
    """Keep a process running that answers commands for a home, until this process ends. Several callers share one.

    Nothing is started in read-only mode, or if PALAVER_SOCKET is off.
    """
    if not home.read_only and not is_switched_off():
        threading.Thread(target=_keep, args=(home,), name="palaver-commands", daemon=True).start()


def _keep(home: Home) -> None:
    delay = _RETRY
    while True:
        time.sleep(delay)
        with suppress(OSError):  # such as a missing home, or a lock that another process holds
            descriptor = os.open(home.root / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                process = _started(home, descriptor)
            finally:
                os.close(descriptor)
            started = time.monotonic()
            process.wait()
            delay = min(2 * delay, _RETRY_MAX) if time.monotonic() - started < _SOON else _RETRY


def _started(home: Home, lock: int) -> subprocess.Popen[bytes]:
    """Start the process. It inherits the lock, and ends when this process ends and its standard input is closed."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", f"{__package__}.command_server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PALAVER_HOME": str(home.root), "OPENBLAS_NUM_THREADS": "1"},
        pass_fds=(lock,),
        process_group=0,  # Ctrl-C reaches only the caller.
    )


class CommandServer:
    """Server of one home."""

    def __init__(self, home: Home) -> None:
        self._home, self._code = home, _code()
        self._children = set[int]()

    def serve(self) -> None:
        """Answer commands until standard input is closed, the code of Palaver changes or the socket is replaced."""
        os.chdir(self._home.root)
        with suppress(FileNotFoundError):
            Path(SOCKET).unlink()  # of a server that was killed: this process holds the lock
        os.umask(0o177)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(SOCKET)  # The path of a socket can have 103 characters only, so the name is relative.
            os.umask(0o077)
            listener.listen(_CHILDREN_MAX)
            path = self._home.root / SOCKET
            bound = path.stat()
            while True:
                ready, _, _ = select.select([listener, sys.stdin], [], [], _CHECK)
                self._reap()
                if sys.stdin in ready or not path.exists() or not os.path.samestat(path.stat(), bound):
                    return
                if listener in ready and not self._accept(listener):
                    path.unlink()
                    return

    def _accept(self, listener: socket.socket) -> bool:
        """Answer one command. Return False if this process runs old code."""
        with suppress(OSError):  # such as a caller that is gone, or too many processes: the caller runs the command
            connection, _ = listener.accept()
            with connection:
                if _code() != self._code:
                    return False
                if len(self._children) < _CHILDREN_MAX and peer(connection)[1] == os.geteuid():
                    number = os.fork()
                    if number == 0:
                        _run_child(connection, listener, self._home)  # does not return
                    self._children.add(number)
        return True

    def _reap(self) -> None:
        for number in [*self._children]:
            if os.waitpid(number, os.WNOHANG)[0]:
                self._children.discard(number)


def _code() -> Mapping[str, tuple[int, int]]:
    """Return the time and size of all files of this installation."""
    files: dict[str, tuple[int, int]] = {}
    folders = [str(Path(palaver.__file__).parent)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir():
                    folders += [entry.path] if entry.name != "__pycache__" else []
                else:
                    found = entry.stat()
                    files[entry.path] = found.st_mtime_ns, found.st_size
    return files


def _run_child(connection: socket.socket, listener: socket.socket, home: Home) -> None:
    """Answer a command and end this process. A command that cannot be answered is dropped without an answer."""
    try:
        signal.alarm(_SECONDS)
        listener.close()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        run_for_another_process()
        connection.settimeout(_SECONDS)
        connection.sendall(GREETING)
        _answer(connection, home)
    finally:
        os._exit(0)


def _answer(connection: socket.socket, home: Home) -> None:
    """Run the command of a request, and send its status and output."""
    mark, program, folder, screen, output, errors, words, variables, data = receive(connection)
    if mark != identity():
        return
    os.environ.clear()
    for variable in map(os.fsdecode, separated(variables)):
        name, _, value = variable.partition("=")
        os.environ[name] = value
    for name, value in zip(("COLUMNS", "LINES"), screen.decode().split(), strict=False):
        os.environ.setdefault(name, value)
    time.tzset()
    os.chdir(folder)
    if not _is_home(home):
        return
    sys.executable = os.fsdecode(program)
    sys.argv = [*map(os.fsdecode, separated(words))]
    sys.modules["__main__"].__package__ = "palaver" if Path(sys.argv[0]).name == "__main__.py" else None
    chunks: list[bytes] = []
    sys.stdin = (
        io.TextIOWrapper(io.BytesIO(data))
        if sys.argv[1] == "hooks"
        else io.TextIOWrapper(io.BufferedReader(_NoInput()))
    )
    sys.stdout, sys.stderr = _stream(1, output, chunks), _stream(2, errors, chunks)
    status = _status()
    sys.stdout.flush()
    sys.stderr.flush()
    send(connection, [str(status).encode(), *chunks])


def _is_home(home: Home) -> bool:
    """Return whether the environment selects a home, and its model is the packaged one, which this process loaded."""
    if not Home.find().root.samefile(home.root):
        return False
    with suppress(ConfigInvalid):  # The command reports it.
        return Archive(home).config.model is None
    return True


def _status() -> int:
    """Run the command in `sys.argv`, and return its exit status."""
    try:
        main()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
    raise OwnProcessNeeded


def _stream(descriptor: int, about: bytes, chunks: list[bytes]) -> io.TextIOWrapper:
    """Return a stream like that of the caller, which collects its output."""
    encoding, errors, is_terminal = about.decode().split()
    channel = io.BufferedWriter(_Channel(descriptor, chunks, is_terminal=is_terminal == "1"))
    return io.TextIOWrapper(channel, encoding, errors, line_buffering=is_terminal == "1" or descriptor == 2)


class _Channel(io.RawIOBase):
    """Output that is collected in the order in which it is written."""

    def __init__(self, descriptor: int, chunks: list[bytes], *, is_terminal: bool) -> None:
        super().__init__()
        self._descriptor, self._chunks, self._is_terminal = descriptor, chunks, is_terminal

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._is_terminal

    def write(self, data: "ReadableBuffer", /) -> int:
        self._chunks.append(bytes([self._descriptor, *bytes(data)]))
        if sum(map(len, self._chunks)) > _OUTPUT:
            raise OwnProcessNeeded
        return memoryview(data).nbytes


class _NoInput(io.RawIOBase):
    """Standard input of commands that read none. A command that asks for it needs its own process."""

    def readable(self) -> bool:
        return True

    def isatty(self) -> bool:
        raise OwnProcessNeeded

    def readinto(self, _buffer: "ReadableBuffer", /) -> int:
        raise OwnProcessNeeded


def _warm(home: Home) -> None:
    """Load what commands need. Output and failures, such as those of an empty archive, are ignored."""
    for name in _MODULES:
        import_module(f"..{name}", __package__)
    compile_all()
    commands = [*_WARM]
    with suppress(PalaverError), Archive(home).search as search:
        commands += [("read", session.id) for session in search.sessions(Query.newest(by="session", limit=1)).sessions]
    with Path(os.devnull).open("w", encoding="utf-8") as sink, redirect_stdout(sink), redirect_stderr(sink):
        for command in commands:
            with suppress(Exception, SystemExit):
                main([*command])


if __name__ == "__main__":
    served = Home.find()
    server = CommandServer(served)
    _warm(served)
    server.serve()
