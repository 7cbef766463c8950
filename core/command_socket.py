"""Client of the process that answers commands: a thin start of the command line.

`palaver watch` and the MCP server keep a process that has all modules and the embedding model loaded. It listens on a
Unix socket in the home. This module sends it a command and writes its answer. It imports almost nothing, because
loading the command line takes most of the time of a command.

The server greets with `GREETING`. A request and an answer are one message each: a length, then fields with a length
each. The client writes nothing before it has the whole answer, so another process can still run the command instead.
"""

from __future__ import annotations

import _socket
import io
import os
import select
import sys

TYPE_CHECKING = False  # `typing` takes 4 ms to load.
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

GREETING = b"palaver commands 1\n"
"""First bytes that the server sends. The number is the version of the protocol."""
SOCKET = "commands.sock"
"""Name of the socket in the home."""
SWITCH = "PALAVER_SOCKET"
"""Environment variable that switches the socket off, for the client and for the server: `PALAVER_SOCKET=0`."""
OFF = frozenset({"0", "f", "false", "n", "no", "off"})
ANSWERED = frozenset({"ask", "how", "open", "projects", "read", "search", "sessions", "show", "timeline"})
"""Commands that only read, and that the server answers. It also answers hooks."""
_HOOKS = frozenset({"session-start", "prompt", "tool"})
GREETING_SECONDS = 0.2
"""Seconds to wait for the greeting. A stopped or overloaded server does not send it in time."""
ANSWER_SECONDS = 1.0
"""Seconds to wait for the answer."""
_LENGTH = 4
_PATH = 103
"""Maximum length of the path of a socket on all systems, in bytes."""


class OwnProcessNeeded(BaseException):
    """Signal that a command cannot be answered for another process, for example because it asks the user."""


class _Process:
    """State of this process.

    Attributes:
        answers: True if this process runs a command for another process.
    """

    answers = False


def run_for_another_process() -> None:
    """Record that this process runs a command for another process."""
    _Process.answers = True


def need_own_process() -> None:
    """Raise `OwnProcessNeeded` if this process runs a command for another one."""
    if _Process.answers:
        raise OwnProcessNeeded


def is_switched_off() -> bool:
    """Return whether the socket is switched off, or this system has none."""
    return os.environ.get(SWITCH, "").lower() in OFF or not hasattr(_socket, "AF_UNIX")


def home_root() -> str:
    """Return the path of the home as `Home.find` does, but without a check of PALAVER_HOME."""
    return os.path.expanduser(os.environ.get("PALAVER_HOME") or f"{data_directory()}/palaver")  # noqa: PTH111


def data_directory() -> str:
    """Return the folder of the platform for the data of programs."""
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Application Support")  # noqa: PTH111 - pathlib takes 15 ms to load
    if sys.platform == "win32":
        return os.environ.get("LOCALAPPDATA") or os.path.expanduser("~/AppData/Local")  # noqa: PTH111
    return os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")  # noqa: PTH111


def identity() -> bytes:
    """Return a text that is equal in two processes only if they run the same installation in the same way.

    The server itself detects that its files were replaced, for example by an upgrade.
    """
    return ascii((sys.prefix, __file__, sys.version, sys.getfilesystemencoding())).encode()


def joined(fields: Iterable[bytes]) -> bytes:
    """Return fields as one text, each with its length."""
    return b"".join(len(field).to_bytes(_LENGTH) + field for field in fields)


def separated(content: bytes) -> list[bytes]:
    """Return the fields of a text that `joined` returned."""
    fields: list[bytes] = []
    start = 0
    while start < len(content):
        end = start + _LENGTH + int.from_bytes(content[start : start + _LENGTH])
        fields.append(content[start + _LENGTH : end])
        start = end
    return fields


def send(connection: _socket.socket, fields: Iterable[bytes]) -> None:
    """Send a message with these fields."""
    connection.sendall(joined([joined(fields)]))


def receive(connection: _socket.socket) -> list[bytes]:
    """Receive a message and return its fields. Raises `OSError` if the other process closes the connection early."""
    return separated(_exactly(connection, int.from_bytes(_exactly(connection, _LENGTH))))


def _exactly(connection: _socket.socket, size: int) -> bytes:
    parts: list[bytes] = []
    while size:
        part = connection.recv(min(size, 1 << 20))
        if not part:
            raise ConnectionError("the other process closed the connection")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def peer(connection: _socket.socket) -> tuple[int, int]:
    """Return the process and the user at the other end of a connection. Raises `OSError` if they are unknown."""
    if sys.platform == "linux":
        process, user, _ = memoryview(connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)).cast("i")
        return process, user
    # LOCAL_PEERPID and LOCAL_PEERCRED of macOS, whose structure `xucred` begins with a version and the user.
    process, credentials = connection.getsockopt(0, 2, 4), connection.getsockopt(0, 1, 76)
    return int.from_bytes(process, sys.byteorder), int.from_bytes(credentials[4:8], sys.byteorder)


def connect(root: str) -> _socket.socket:
    """Connect to the server of a home, and wait for its greeting.

    Raises:
        OSError: No server of this user and of this version of the protocol answers, or the path of the home is too long
            for a system other than Linux.
    """
    connection, folder = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM), None
    try:
        connection.settimeout(GREETING_SECONDS)
        path = f"{root}/{SOCKET}"
        if sys.platform == "linux" and len(os.fsencode(path)) > _PATH:
            folder = os.open(root, os.O_PATH)
            path = f"/proc/self/fd/{folder}/{SOCKET}"
        connection.connect(path)
        _check(connection)
    except BaseException:
        connection.close()
        raise
    finally:
        if folder is not None:
            os.close(folder)
    return connection


def _connect_with_one_thread(root: str) -> _socket.socket:
    """Connect as `connect` does, however long the path is. The working folder of the process changes for a moment."""
    if sys.platform == "linux":
        return connect(root)
    here = os.open(".", os.O_RDONLY)
    try:
        os.chdir(root)
        return connect(".")
    finally:
        os.fchdir(here)
        os.close(here)


def _check(connection: _socket.socket) -> None:
    """Raise `OSError` unless a process of this user sends the greeting of this version."""
    if peer(connection)[1] != os.geteuid():
        raise PermissionError("the server belongs to another user")
    if _exactly(connection, len(GREETING)) != GREETING:
        raise ConnectionError("the server has another version")


def answering_process(root: str) -> int | None:
    """Return the number of the process that answers commands for a home, or None if there is none."""
    try:
        connection = connect(root)
    except OSError:
        return None
    process, _ = peer(connection)
    connection.close()
    return process


def run_by_server(arguments: Sequence[str]) -> int | None:
    """Let the server run a command, write its output, and return its exit status.

    Return None if this process must run the command itself. Nothing is written in that case. The standard input of a
    hook that was read already is put back.

    Args:
        arguments: Program and arguments, as in `sys.argv`.
    """
    is_hook = arguments[1:3] == ["hooks", "run"] and _HOOKS.issuperset(arguments[3:])
    if not (is_hook or _is_answered(arguments)) or is_switched_off() or not (sys.stdin and sys.stdout and sys.stderr):
        return None
    try:
        connection = _connect_with_one_thread(home_root())
    except OSError:
        return None
    data = b""
    try:
        if is_hook:
            data = sys.stdin.buffer.read()
            sys.stdin = io.TextIOWrapper(io.BytesIO(data), sys.stdin.encoding)
        connection.settimeout(ANSWER_SECONDS)
        send(connection, _request(arguments, data))
        status, *chunks = receive(connection)
    except OSError:
        return None
    finally:
        connection.close()
    return _write(chunks, int(status))


def _is_answered(arguments: Sequence[str]) -> bool:
    return len(arguments) > 1 and arguments[1] in ANSWERED


def _request(arguments: Sequence[str], data: bytes) -> list[bytes]:
    """Return the request: what the output of a command depends on, and the standard input of a hook."""
    try:
        size = os.get_terminal_size(sys.stdout.fileno())
        screen = f"{size.columns} {size.lines}"
    except OSError:
        screen = ""
    streams = [f"{stream.encoding} {stream.errors} {int(stream.isatty())}" for stream in (sys.stdout, sys.stderr)]
    folder = os.getcwd()  # noqa: PTH109
    words = joined(map(os.fsencode, arguments))
    variables = joined(os.fsencode(f"{name}={value}") for name, value in os.environ.items())
    program = os.fsencode(sys.executable)
    return [identity(), program, os.fsencode(folder), *map(str.encode, (screen, *streams)), words, variables, data]


def _write(chunks: Sequence[bytes], status: int) -> int | None:
    """Write the chunks of an answer. The first byte of a chunk is the number of its descriptor.

    Return None if nothing can be written, for example to a full disk. The command itself reports that.
    """
    written = 0
    try:
        for chunk in chunks:
            data = memoryview(chunk)[1:]
            while data:
                size = _write_part(chunk[0], data)
                written, data = written + size, data[size:]
    except BrokenPipeError:  # as with `head`, which is not a failure
        return 0
    except OSError as error:
        if not written:
            return None
        print(f"palaver: standard output: {error.strerror}", file=sys.stderr)  # noqa: T201 - click is not loaded
        return 1
    return status


def _write_part(descriptor: int, data: memoryview) -> int:
    """Write the beginning of a text, and return its size. Wait until a descriptor that does not block is ready."""
    while True:
        try:
            return os.write(descriptor, data)
        except BlockingIOError:
            select.select([], [descriptor], [])
