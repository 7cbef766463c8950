"""Commands that another process answers: `core/command_socket.py` and `cli/command_server.py`."""

import fcntl
import json
import os
import pty
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from palaver.cli import command_server
from palaver.cli.command_server import keep_answering
from palaver.core import command_socket
from palaver.core.command_socket import GREETING, SOCKET, answering_process, home_root, receive, send
from palaver.core.home import Home
from palaver.observe.archive import Archive

from . import demo
from .commands import unmarked

PROGRAM = "import sys; sys.argv[0] = 'palaver'; from palaver.__main__ import start; start()"
PATIENT = "from palaver.core import command_socket as c; c.GREETING_SECONDS = c.ANSWER_SECONDS = 60.0"
ONLY_CLIENT = f"import sys; sys.modules['palaver.cli'] = None; {PATIENT}; {PROGRAM}"
"""Program that fails if another process does not answer the command, however busy this machine is."""
SERVER = (sys.executable, "-P", "-m", "palaver.cli.command_server")
OFF = {"PALAVER_SOCKET": "0"}
SECONDS = 240.0


def run(
    words: Sequence[str],
    variables: Mapping[str, str] = {},
    *,
    program: str = PROGRAM,
    cwd: Path | None = None,
    stdin: str = "",
) -> tuple[int, str, str]:
    """Run a command, and return its exit status, output and error output."""
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        input=stdin, capture_output=True, text=True, check=False, cwd=cwd, env={**os.environ, **variables},
    )  # fmt: skip
    return done.returncode, unmarked(done.stdout), unmarked(done.stderr)


def answering(root: str) -> int | None:
    """Return the process that answers, however busy this machine is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command_socket, "GREETING_SECONDS", SECONDS)
        patch.chdir(root)  # The full path can be too long for a system other than Linux.
        return answering_process(".")


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@contextmanager
def serving(home: Home) -> Generator[subprocess.Popen[bytes]]:
    """Run a server of a home."""
    server = subprocess.Popen(SERVER, stdin=subprocess.PIPE, env={**os.environ, "PALAVER_HOME": str(home.root)})
    try:
        until(lambda: answering(str(home.root)) == server.pid)
        yield server
    finally:
        server.kill()
        server.communicate()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return demo.archived(tmp_path_factory.mktemp("archived"))


@pytest.fixture(scope="module")
def served(filled: Home) -> Iterator[Home]:
    with serving(filled):
        yield filled


@pytest.fixture
def home(served: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("PALAVER_HOME", str(served.root))
    return served


@pytest.fixture
def alone(filled: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Return a home of its own, without a server."""
    root = tmp_path / "palaver"
    subprocess.run(["cp", "-a", str(filled.root), str(root)], check=True)
    (root / SOCKET).unlink(missing_ok=True)
    monkeypatch.setenv("PALAVER_HOME", str(root))
    return Home(root)


SESSION = "3a17e5d0"
COMMANDS = (
    ["search", "tide", "readings"],
    ["search", "tide", "--plain", "--snippets"],
    ["search", "zzzzqqqq"],
    ["search", "--no-such"],
    ["search", "tide", "--by", "session", "--utc"],
    ["sessions"],
    ["sessions", "--json"],
    ["show", "obs-1", "obs-99999"],
    ["show", SESSION, "--json"],
    ["read", SESSION, "1-4"],
    ["read", SESSION, "--raw"],
    ["ask", "which database do we use"],
    ["open"],
    ["projects"],
    ["read", "--help"],
)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.usefixtures("home")
def test_the_answer_equals_that_of_an_own_process(words: list[str]) -> None:
    """Output, error output and exit status are the same with and without the server."""
    assert run(words, program=ONLY_CLIENT) == run(words, OFF)


@pytest.mark.parametrize(
    "variables",
    [
        {"TZ": "Pacific/Auckland"},
        {"PALAVER_READ_ONLY": "1"},
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C"},
        {"COLUMNS": "40"},
    ],
    ids=str,
)
@pytest.mark.usefixtures("home")
def test_the_environment_of_the_caller_counts(variables: dict[str, str]) -> None:
    """The server uses the time zone, the mode and the encoding of the caller, not its own."""
    for words in (["sessions"], ["show", SESSION], ["search", "--help"]):
        assert run(words, variables, program=ONLY_CLIENT) == run(words, {**variables, **OFF})


def test_the_folder_of_the_caller_counts(home: Home, tmp_path: Path) -> None:
    """`--project .` means the folder of the caller."""
    project = tmp_path / "tide-clock"
    project.mkdir()
    words = ["sessions", "--project", "."]

    assert run(words, program=ONLY_CLIENT, cwd=project) == run(words, OFF, cwd=project)
    assert home.database.exists()


def test_changed_settings_apply_to_the_next_command(alone: Home) -> None:
    """The server reads the settings for each command."""
    with serving(alone):
        before = run(["sessions"], program=ONLY_CLIENT)
        alone.config.write_text('timezone = "Pacific/Auckland"\n')
        after = run(["sessions"], program=ONLY_CLIENT)
        assert after == run(["sessions"], OFF)
        alone.config.write_text("no settings\n")
        assert run(["sessions"], program=ONLY_CLIENT) == run(["sessions"], OFF)

    assert before[0] == 0


def on_terminal(words: Sequence[str], variables: Mapping[str, str], program: str, size: tuple[int, int]) -> bytes:
    """Run a command on a terminal with this number of rows and columns, and return its output."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("4H", *size, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-c", program, *words],
        stdin=follower, stdout=follower, stderr=follower, env={**os.environ, "PAGER": "cat", **variables},
    )  # fmt: skip
    os.close(follower)
    output = b""
    try:
        while part := os.read(leader, 65536):
            output += part
    except OSError:  # The program has closed the terminal.
        pass
    os.close(leader)
    assert process.wait() == 0
    return output


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("variables", [{}, {"NO_COLOR": "1"}], ids=str)
def test_a_terminal_gets_the_same_styles_and_line_breaks(variables: dict[str, str]) -> None:
    """On a terminal, colours and width are those of the caller's terminal."""
    words = ["search", "tide", "--limit", "3"]

    answered = on_terminal(words, variables, ONLY_CLIENT, (90, 50))

    assert answered == on_terminal(words, {**variables, **OFF}, PROGRAM, (90, 50))
    assert (b"\x1b[" in answered) == (not variables)


@pytest.mark.usefixtures("home")
def test_a_page_for_the_pager_is_shown_by_an_own_process() -> None:
    """A page that is longer than the screen needs the keyboard, so the server does not answer."""
    words = ["show", SESSION]

    assert on_terminal(words, {}, PROGRAM, (5, 80)) == on_terminal(words, OFF, PROGRAM, (5, 80))


@pytest.mark.parametrize("event", ["session-start", "prompt", "tool"])
def test_hooks_are_answered(alone: Home, event: str) -> None:
    """A hook gets the same reply from the server, which reads its call from standard input."""
    alone.config.write_text('hooks = ["session-start", "prompt", "tool"]\n')
    call = {
        "cwd": "/home/demo/tide-clock",
        "prompt": "do we keep the readings in SQLite or JSON files",
        "source": "startup",
    }
    words = ["hooks", "run", event]
    own = run(words, OFF, stdin=json.dumps({**call, "session_id": "one"}))
    with serving(alone):
        answered = run(words, program=ONLY_CLIENT, stdin=json.dumps({**call, "session_id": "two"}))
        alone.config.write_text('hooks = ["tool"]\nmodel = "other"\n')
        refused = run(words, stdin=json.dumps({**call, "session_id": "three"}))

    assert answered == own
    assert refused == (0, "", "")
    assert bool(own[1]) == (event == "prompt")


@pytest.mark.parametrize(
    "words",
    [["status"], ["remember", "x"], ["hooks", "run", "session-end"], ["--demo", "search", "x"], ["sessions", "--pick"]],
    ids=" ".join,
)
@pytest.mark.usefixtures("home")
def test_other_commands_are_not_answered(words: list[str]) -> None:
    """Commands that write, ask or take long run in a process of their own."""
    status, _, problem = run(words, program=ONLY_CLIENT)

    assert status == 1
    assert "ModuleNotFoundError" in problem


@pytest.mark.usefixtures("home")
def test_the_model_answers_in_an_own_process() -> None:
    """A question to a language model is not sent to the server, which would call the model twice after a time-out."""
    status, _, problem = run(["ask", "which database", "--max-cost", "1"], program=ONLY_CLIENT)

    assert "ModuleNotFoundError" in problem
    assert status == 1


def test_another_home_is_not_answered(home: Home, alone: Home) -> None:
    """A server answers only for its own home."""
    (alone.root / SOCKET).symlink_to(home.root / SOCKET)

    assert "ModuleNotFoundError" in run(["sessions"], {"PALAVER_HOME": str(alone.root)}, program=ONLY_CLIENT)[2]
    assert run(["sessions"], {"PALAVER_HOME": str(alone.root)})[0] == 0


def test_concurrent_commands_are_answered(home: Home) -> None:
    """Several callers get their own answers at the same time."""
    expected = {query: run(["search", query], OFF) for query in ("tide", "seed", "SQLite")}
    answers: list[tuple[str, tuple[int, str, str]]] = []

    def ask(query: str) -> None:
        answers.append((query, run(["search", query])))

    threads = [threading.Thread(target=ask, args=(query,)) for query in expected for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(answers) == 9
    assert all(answer == expected[query] for query, answer in answers)
    assert answering(str(home.root))


@contextmanager
def pretending(home: Home, behave: Callable[[socket.socket], None]) -> Generator[list[int]]:
    """Listen on the socket of a home, and treat each connection with a function."""
    path = home.root / SOCKET
    asked: list[int] = []
    with socket.socket(socket.AF_UNIX) as listener:
        folder = Path.cwd()
        os.chdir(home.root)
        listener.bind(path.name)
        os.chdir(folder)
        listener.listen()

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                asked.append(1)
                with connection:
                    behave(connection)

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield asked
        listener.shutdown(socket.SHUT_RDWR)
    thread.join()
    path.unlink()


def _other_version(connection: socket.socket) -> None:
    connection.sendall(b"palaver commands 9\n")


def _silent(connection: socket.socket) -> None:
    connection.recv(1)


def _killed_in_the_answer(connection: socket.socket) -> None:
    connection.sendall(GREETING)
    receive(connection)
    connection.sendall((1000).to_bytes(4) + b"half of an answer")


def _slow(connection: socket.socket) -> None:
    connection.sendall(GREETING)
    receive(connection)
    connection.recv(1)


@pytest.mark.parametrize("behave", [_other_version, _silent, _killed_in_the_answer, _slow])
def test_the_command_runs_itself_if_the_server_fails(alone: Home, behave: Callable[[socket.socket], None]) -> None:
    """Nothing is printed twice, and nothing is said about the server. A hook keeps its standard input."""
    call = json.dumps({"cwd": "/home/demo/tide-clock", "session_id": "s", "source": "startup"})
    expected, reply = run(["sessions"], OFF), run(["hooks", "run", "session-start"], OFF, stdin=call)
    with pretending(alone, behave) as asked:
        assert run(["sessions"]) == expected
        assert run(["hooks", "run", "session-start"], stdin=call) == reply

    assert len(asked) == 2


def _long_answer(connection: socket.socket) -> None:
    connection.sendall(GREETING)
    receive(connection)
    send(connection, [b"0", b"\x01" + b"x" * 1_000_000])


def test_a_closed_pipe_is_no_failure(alone: Home) -> None:
    """A reader that stops early, such as `head`, ends the command with status 0, as without the server."""
    with pretending(alone, _long_answer):
        process = subprocess.Popen([sys.executable, "-c", ONLY_CLIENT, "sessions"], stdout=subprocess.PIPE)
        assert process.stdout
        process.stdout.read(10)
        process.stdout.close()
        assert process.wait() == 0


def test_a_full_disk_is_reported(home: Home) -> None:
    """Output that cannot be written is reported as without the server."""
    command = [sys.executable, "-c", PROGRAM, "sessions"]
    answers: list[subprocess.CompletedProcess[bytes]] = []
    for variables in ({}, OFF):
        with Path("/dev/full").open("wb") as full:
            environment = {**os.environ, "PALAVER_HOME": str(home.root), **variables}
            answers.append(subprocess.run(command, stdout=full, stderr=subprocess.PIPE, env=environment, check=False))

    assert answers[0].stderr == answers[1].stderr
    assert [answer.returncode for answer in answers] == [1, 1]


def test_a_pipe_that_does_not_block_gets_the_whole_answer_once(alone: Home) -> None:
    """A full pipe that another program has set to non-blocking mode makes the command wait."""
    with pretending(alone, _long_answer) as asked:
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        process = subprocess.Popen([sys.executable, "-c", ONLY_CLIENT, "sessions"], stdout=writer)
        os.close(writer)
        with os.fdopen(reader, "rb") as output:
            assert output.read() == b"x" * 1_000_000
        assert process.wait() == 0

    assert len(asked) == 1


def test_an_answer_that_breaks_off_is_not_repeated(alone: Home, tmp_path: Path) -> None:
    """If the disk becomes full within the answer, the command reports it and does not start again."""
    path = tmp_path / "output"
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))"  # Python ignores SIGXFSZ.
    with pretending(alone, _long_answer), path.open("wb") as output:
        done = subprocess.run(
            [sys.executable, "-c", f"{limit}; {ONLY_CLIENT}", "sessions"],
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert (done.returncode, done.stderr) == (1, "palaver: standard output: File too large\n")
    assert path.read_bytes() == b"x" * 4096


def test_ctrl_c_ends_a_waiting_command(alone: Home) -> None:
    """Ctrl-C while the server works ends the command with status 130."""
    reached = threading.Event()

    def wait(connection: socket.socket) -> None:
        connection.sendall(GREETING)
        receive(connection)
        reached.set()
        connection.recv(1)

    with pretending(alone, wait):
        process = subprocess.Popen([sys.executable, "-c", PROGRAM, "sessions"], stderr=subprocess.PIPE)
        assert reached.wait(SECONDS)
        process.send_signal(signal.SIGINT)
        _, problem = process.communicate()

    assert (process.returncode, problem) == (130, b"\npalaver: stopped.\n")


def test_a_killed_server_is_replaced(alone: Home) -> None:
    """The socket of a killed server does not disturb commands, and the next server takes its place."""
    expected = run(["sessions"], OFF)
    with serving(alone):
        assert run(["sessions"], program=ONLY_CLIENT) == expected

    assert (alone.root / SOCKET).is_socket()
    assert run(["sessions"]) == expected
    with serving(alone):
        assert run(["sessions"], program=ONLY_CLIENT) == expected


def test_a_stopped_server_does_not_delay_for_long(alone: Home) -> None:
    """A server that does not run, although its process exists, is ignored."""
    expected = run(["sessions"], OFF)
    with serving(alone) as server:
        server.send_signal(signal.SIGSTOP)
        assert run(["sessions"]) == expected


def test_the_server_ends_if_its_code_changes(alone: Home, tmp_path: Path) -> None:
    """After an upgrade, the server refuses the next command and ends."""
    package = tmp_path / "site" / "palaver"
    package.parent.mkdir()
    subprocess.run(["cp", "-rL", str(Path(__file__).parents[1] / "src" / "palaver"), str(package)], check=True)
    variables = {"PYTHONPATH": str(package.parent)}
    with serving_from(package.parent, alone) as server:
        expected = run(["sessions"], {**OFF, **variables})
        assert run(["sessions"], variables, program=ONLY_CLIENT) == expected
        assert "ModuleNotFoundError" in run(["sessions"], program=ONLY_CLIENT)[2]
        (package / "core" / "ids.py").touch()
        assert run(["sessions"], variables) == expected
        assert server.wait(SECONDS) == 0
    assert not (alone.root / SOCKET).exists()


@contextmanager
def serving_from(folder: Path, home: Home) -> Generator[subprocess.Popen[bytes]]:
    """Run a server with the code in another folder."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    server = subprocess.Popen(SERVER, stdin=subprocess.PIPE, env=environment)
    try:
        until(lambda: answering(str(home.root)))
        yield server
    finally:
        server.kill()
        server.communicate()


@pytest.mark.parametrize("words", [["mcp"], ["watch"]], ids=" ".join)
def test_a_running_program_keeps_one_server(alone: Home, words: list[str]) -> None:
    """`palaver mcp` and `palaver watch` start a server, restart it, and end it with themselves. A second one waits."""
    command = [sys.executable, "-c", PROGRAM, *words]
    quiet = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    root = str(alone.root)
    first = subprocess.Popen(command, **quiet)  # type: ignore[call-overload]
    second = subprocess.Popen([sys.executable, "-c", PROGRAM, "mcp"], **quiet)  # type: ignore[call-overload]
    try:
        until(lambda: answering(root))
        server = answering(root)
        assert server
        assert str(server) in run(["status"])[1]
        assert run(["sessions"], program=ONLY_CLIENT) == run(["sessions"], OFF)
        assert (alone.root / SOCKET).stat().st_mode & 0o777 == 0o600
        os.kill(server, signal.SIGKILL)
        until(lambda: answering(root) not in {server, None})
        first.kill()
        second.kill()
        until(lambda: answering(root) is None)
    finally:
        for process in (first, second):
            process.kill()
            process.communicate()


@pytest.mark.parametrize(
    ("lives", "pauses"),
    [((1,) * 10, [2, 4, 8, 16, 32, 64, 128, 256, 512, 600]), ((1, 1, 100, 1), [2, 4, 8, 2])],
)
def test_a_server_that_fails_soon_is_started_less_often(
    tmp_path: Path, lives: Sequence[int], pauses: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pause doubles up to ten minutes, and is short again after a server that lived for a minute."""
    now, waited, remaining = [0.0], list[float](), [*lives]

    class Ended(BaseException):
        pass

    class Process:
        def wait(self) -> None:
            now[0] += remaining.pop(0)

    def start(_home: Home, _lock: int) -> Process:
        return Process()

    def sleep(seconds: float) -> None:
        if not remaining:
            raise Ended
        waited.append(seconds)

    monkeypatch.setattr(command_server, "_started", start)
    monkeypatch.setattr(command_server, "time", SimpleNamespace(sleep=sleep, monotonic=lambda: now[0]))
    with pytest.raises(Ended):
        command_server._keep(Home(tmp_path))  # pyright: ignore[reportPrivateUsage]

    assert waited == pauses


@pytest.mark.parametrize("name", ["fork", "geteuid"])
def test_a_server_survives_a_failed_connection(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller that is gone, or too many processes, do not end the server."""

    def fail() -> int:
        raise OSError

    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as caller:
        monkeypatch.chdir(tmp_path)
        listener.bind(SOCKET)
        listener.listen()
        caller.connect(SOCKET)
        monkeypatch.setattr(os, name, fail)
        server = command_server.CommandServer(Home(tmp_path))
        assert server._accept(listener)  # pyright: ignore[reportPrivateUsage]
        assert caller.recv(1) == b""
        listener.close()
        assert server._accept(listener)  # pyright: ignore[reportPrivateUsage]


def test_nothing_listens_in_read_only_mode(alone: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read-only mode and PALAVER_SOCKET=0 start no thread, so they start no server."""
    before = threading.active_count()
    keep_answering(Home(alone.root, read_only=True))
    monkeypatch.setenv("PALAVER_SOCKET", "no")
    keep_answering(alone)

    assert threading.active_count() == before


def test_a_long_path_is_no_problem(filled: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit for the path of a socket, about 100 characters, does not limit the path of the home."""
    root = tmp_path / ("a" * 100) / ("b" * 100)
    root.parent.mkdir()
    subprocess.run(["cp", "-a", str(filled.root), str(root)], check=True)
    (root / SOCKET).unlink(missing_ok=True)
    monkeypatch.setenv("PALAVER_HOME", str(root))

    with serving(Home(root)):
        assert run(["sessions"], program=ONLY_CLIENT) == run(["sessions"], OFF)


@pytest.mark.parametrize("name", ["a", "a" * 200])
def test_a_connection_leaves_the_working_folder(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other threads may use the working folder while one connects."""
    if sys.platform != "linux" and len(name) > 1:
        pytest.skip("A long path is not possible.")
    root = tmp_path / name
    root.mkdir()
    with pretending(Home(root), lambda connection: connection.sendall(GREETING)):
        monkeypatch.setattr(os, "chdir", None)
        assert answering_process(str(root)) == os.getpid()


@pytest.mark.parametrize(
    "variables", [{"PALAVER_HOME": ""}, {"PALAVER_HOME": "~/x"}, {"PALAVER_HOME": "", "XDG_DATA_HOME": ""}]
)
def test_the_client_finds_the_same_home(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The client has a short version of `Home.find`."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert home_root() == str(Home.find().root)


def test_the_client_loads_almost_nothing(home: Home) -> None:
    """An answered command loads neither click nor pathlib, typing, enum or the socket library."""
    listing = (
        "import os, sys; end = os._exit; os._exit = lambda code: (print(*sys.modules, file=sys.stderr), end(code))"
    )
    report = f"{listing}; {ONLY_CLIENT}"
    status, _, loaded = run(["sessions"], {"PALAVER_HOME": str(home.root)}, program=report)

    assert status == 0
    assert {"palaver.core.command_socket", "_socket"} <= set(loaded.split())
    assert not {"click", "enum", "pathlib", "re", "socket", "typing"}.intersection(loaded.split())


def test_the_server_loads_no_large_library(home: Home) -> None:
    """The server loads what the packaged model needs, but neither torch, sentence-transformers nor anthropic."""
    server = answering(str(home.root))
    mapped = Path(f"/proc/{server}/maps").read_text("utf-8") if sys.platform == "linux" else ""

    assert "onnxruntime" in mapped or sys.platform != "linux"
    assert not any(name in mapped for name in ("/torch/", "pydantic_core"))
    assert Archive(home).config.model is None
