"""Tests for cli/: arguments, output and exit status of commands."""

import errno
import json
import os
import pty
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import IO, Any

import click
import pytest
from click.testing import CliRunner, Result

from palaver.archiver.copies.raw_copy import RawArchive
from palaver.archiver.store import Store
from palaver.cli import main
from palaver.cli.commands import COMMANDS, SECTIONS
from palaver.core.home import DEMO, Home
from palaver.core.reports import Status
from palaver.core.results import TranscriptExcerpt
from palaver.core.tokens import count

from . import demo
from .archiver.formats.claude_code.claude_lines import jsonl, user
from .cases import for_each
from .commands import EVERY, LEAVES, PLAIN, unmarked
from .old_version import outdate

PATH = "claude-code/-home-demo-tide-clock/0b6f21c4-3d0e-4f57-9a41-2c7d5e8f1a01.jsonl"
SWAPPED = "Invalid date range: 2026-03-02 is later than 2026-03-01\nSwap the two dates."
PALAVER = (sys.executable, "-m", "palaver")


@pytest.fixture
def archived(built: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Use the shared archived demo data as the home of this test."""
    monkeypatch.setenv("PALAVER_HOME", str(built.root))
    return built


def palaver(*arguments: str) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(main, arguments)


def ran(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command in a separate process."""
    return subprocess.run([*PALAVER, *arguments], capture_output=True, text=True, check=False, **options)


def answer(*arguments: str) -> dict[str, Any]:
    """Return the JSON output of a command."""
    result = palaver(*arguments, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@contextmanager
def at_a_terminal(*arguments: str) -> Generator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
    """Run a command whose standard error is a terminal. Yield the process and a reader of the terminal's output."""
    ours, theirs = pty.openpty()
    with (
        subprocess.Popen([*PALAVER, *arguments], stdout=subprocess.PIPE, stderr=theirs) as process,
        os.fdopen(ours, "rb", buffering=0) as screen,
    ):
        os.close(theirs)
        yield process, screen


def shown_until_the_end(screen: IO[bytes]) -> bytes:
    """Return the remaining output of a terminal. On Linux, reading fails when its program has ended."""
    shown = b""
    try:
        while piece := screen.read(4096):
            shown += piece
    except OSError:
        pass
    return shown


# Help


def test_commands_are_grouped_under_headings() -> None:
    """Each heading of the help lists its commands in the declared order, one per line."""
    shown = palaver("--help").stdout

    for heading, section in SECTIONS.items():
        rows = shown.partition(f"\n{heading}:\n")[2].partition("\n\n")[0].splitlines()
        assert [row.split()[0] for row in rows] == list(section)
        assert [row for row in rows if len(row) > 80 or not row.endswith(".")] == []
    assert list(COMMANDS)[:2] == ["up", "archive"]


def test_help_loads_no_command() -> None:
    """`palaver --help` imports no Palaver module except the table of commands."""
    code = "import sys; from palaver.cli import main; main(['--help'], standalone_mode=False)\n"
    code += "print(*(name for name in sys.modules if name.startswith('palaver')), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "Search and reuse your coding agents' conversations." in done.stdout
    known = {
        "palaver",
        "palaver.cli",
        "palaver.cli.commands",
        "palaver.cli.common_options",
        "palaver.core",
        "palaver.core.text",
    }
    assert set(done.stderr.split()) == known


@for_each("words", EVERY, label=" ".join)
def test_each_command_has_a_help_text(words: tuple[str, ...]) -> None:
    """Every command has a help text, and every runnable command except those in `PLAIN` accepts `--json`."""
    shown = palaver(*words, "--help")

    assert shown.exit_code == 0
    assert EVERY[words].help
    assert ("--json" in shown.stdout) == (words in LEAVES and words not in PLAIN)


EXPLAINED_BY_THEIR_VALUES = {"mode"}


@for_each("words", EVERY, label=" ".join)
def test_each_option_has_a_help_text(words: tuple[str, ...]) -> None:
    """Every option has a help text, except options whose values are self-explanatory."""
    options = [each for each in EVERY[words].params if isinstance(each, click.Option)]

    assert {str(option.name) for option in options if not option.help} <= EXPLAINED_BY_THEIR_VALUES


# Before anything is archived


@pytest.mark.parametrize("arguments", [["search", "sqlite"], ["show", "obs-1"], ["read", "x"], ["status"]])
def test_a_missing_archive_is_reported_with_the_first_step(arguments: list[str], home: Path) -> None:
    """A command that needs an archive fails if none exists, suggests `palaver up`, and creates nothing."""
    result = palaver(*arguments)

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"palaver: No archive at {home / 'palaver'}\nRun `palaver up` to create one.\n"
    assert not (home / "palaver").exists()


def test_archiving_without_any_history_suggests_a_remedy(home: Path) -> None:
    """`archive` without arguments and without any agent history fails with a remedy and creates no archive."""
    result = palaver("archive")

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("palaver: No agent history found\nGive a folder")
    assert not (home / "palaver").exists()


@pytest.mark.parametrize("command", ["archive", "search"])
@pytest.mark.parametrize(
    ("value", "message"),
    [("here", "is not an absolute path: here"), ("~nobody-of-that-name/x", "names an unknown user")],
)
def test_an_invalid_home_is_rejected(
    command: str, value: str, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A PALAVER_HOME that is relative or refers to an unknown user is rejected."""
    monkeypatch.setenv("PALAVER_HOME", value)
    monkeypatch.chdir(tmp_path)
    result = palaver(command, "xx")

    assert result.exit_code == 1
    assert message in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_home_that_is_a_file_is_rejected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """If PALAVER_HOME is a file, reading and writing commands report it and leave the file unchanged."""
    (tmp_path / "file").write_text("mine")
    monkeypatch.setenv("PALAVER_HOME", str(tmp_path / "file"))
    for words in (["archive", str(demo.history(tmp_path / "projects"))], ["search", "tea"], ["up"], ["status"]):
        result = palaver(*words)
        assert result.exit_code == 1
        assert result.stderr == (
            f"palaver: PALAVER_HOME is a file: {tmp_path / 'file'}\nSet it to a folder that you can write to.\n"
        )
    assert (tmp_path / "file").read_text() == "mine"


def test_an_unknown_setting_is_an_error(home: Path) -> None:
    """An unknown setting is reported as an error."""
    (home / "palaver").mkdir()
    (home / "palaver" / "config.toml").write_text("modle = 'x'\n")
    result = palaver("archive", str(demo.history(home / "projects")))

    assert result.exit_code == 1
    assert "config.toml: unknown setting modle" in result.stderr


# up


def test_up_without_a_history_loads_demo_data(home: Path) -> None:
    """Demo data is archived in a separate home, so it never mixes with real conversations."""
    result = palaver("up")

    assert (result.exit_code, result.stderr) == (0, "")
    assert "Loaded a small sample archive instead" in result.stdout
    assert [path.name for path in (home / "palaver").iterdir()] == ["demo"]
    assert (home / "palaver" / "demo" / "palaver.db").exists()


@pytest.mark.parametrize("words", [("up",), ("archive",), ("watch",)])
def test_a_demo_home_rejects_real_history(words: tuple[str, ...], home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home with demo data rejects real history and suggests a remedy. The doctor does not report it as unarchived."""
    assert palaver("up").exit_code == 0
    monkeypatch.setenv("PALAVER_HOME", str(home / "palaver" / "demo"))
    real = home / ".claude" / "projects" / "-home-real" / "11111111-0000-4000-8000-000000000001.jsonl"
    real.parent.mkdir(parents=True)
    place = {"sessionId": real.stem, "cwd": "/home/real", "type": "user", "uuid": "u1"}
    real.write_text(json.dumps({**place, "message": {"role": "user", "content": "mine"}}) + "\n")
    os.utime(real, (demo.HOUR, demo.HOUR))
    before = answer("status")["sessions"]

    result = palaver(*words)

    assert result.exit_code != 0
    assert "contains demo data" in result.stderr
    assert "unset PALAVER_HOME" in result.stderr
    assert answer("status")["sessions"] == before
    assert "not archived" not in palaver("doctor").stdout
    assert palaver("archive", str(real)).exit_code == 0


def test_up_with_a_history_loads_no_demo_data(home: Path) -> None:
    """If the user has agent history, `up` archives it and loads no demo data."""
    demo.history(home / ".claude" / "projects")
    result = palaver("up")

    assert "sample archive" not in result.stdout
    assert " install\n" in result.stdout
    assert not (home / "palaver" / "demo").exists()
    assert answer("status")["sessions"] == 7


def test_second_up_reports_nothing_new(home: Path) -> None:
    """A second `up` reports that no transcript changed."""
    demo.history(home / ".claude" / "projects")
    first, second = palaver("up"), palaver("up")

    assert "Archived 7 of 7 transcripts" in first.stdout
    assert second.stdout == "Nothing new in 7 transcripts.\n"
    assert answer("up")["ingested"]["changed"] == 0


def test_the_next_steps_are_printed_until_a_transcript_is_archived(home: Path) -> None:
    """`up` prints the next steps once: if no transcript was archived before."""
    palaver("remember", "Prefer tabs")
    demo.history(home / ".claude" / "projects")
    shown = [palaver("up").stdout for _ in range(2)]
    assert [" install\n" in page for page in shown] == [True, False]


def test_a_second_up_names_the_sample_archive(home: Path) -> None:
    """Without agent history, a second `up` says where the sample archive is and repeats no advice."""
    shown = [palaver("up").stdout for _ in range(2)]
    assert [" install\n" in page for page in shown] == [True, False]
    place = home / "palaver" / "demo"
    assert shown[1] == f"No agent history found; the sample archive is in {place}.\nNothing new in 7 transcripts.\n"


def test_up_in_json_contains_the_home(home: Path) -> None:
    """The JSON output of `up` contains the home and nothing else is printed."""
    assert answer("up")["home"] == str(home / "palaver" / "demo")


def test_commands_printed_by_up_work_when_pasted(home: Path) -> None:
    """A command printed by `up` works in any folder and without the current environment variables."""
    shown = ran("up").stdout
    line = next(line for line in shown.splitlines() if " search " in line)
    plain = {name: value for name, value in os.environ.items() if name != "PALAVER_HOME"}
    pasted = subprocess.run(line, shell=True, capture_output=True, text=True, check=False, env=plain, cwd=home)

    assert (pasted.returncode, pasted.stderr) == (0, "")
    assert "Use SQLite" in pasted.stdout


# archive


def test_a_folder_without_transcripts_is_an_error(tmp_path: Path) -> None:
    """Archiving a folder without transcripts fails and lists the known agents."""
    result = palaver("archive", str(tmp_path))

    assert result.exit_code == 1
    assert result.stderr.startswith(
        f"palaver: {tmp_path}: the folder contains no transcripts\nKnown agents: claude-code"
    )


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("notes.txt", "hello", "the file is not a transcript of a known agent"),
        ("data.jsonl", '{"a": 1}\n', "the file is not a transcript of a known agent"),
        ("empty.jsonl", "", "the file is not a transcript of a known agent"),
        ("gone.jsonl", None, "No such file or directory"),
    ],
)
def test_a_file_that_is_not_a_transcript_is_rejected(
    name: str, content: str | None, message: str, home: Path, tmp_path: Path
) -> None:
    """A file that is not a transcript is reported with the reason before anything is written."""
    if content is not None:
        (tmp_path / name).write_text(content)
    result = palaver("archive", str(tmp_path / name))

    assert result.exit_code == (2 if content is None else 1)
    assert f"{tmp_path / name}: {message}" in result.stderr
    assert not (home / "palaver").exists()


def test_a_deleted_transcript_stays_archived(home: Path) -> None:
    """Archived content can still be found after its transcript was deleted."""
    root = demo.history(home / "projects")
    assert palaver("archive", str(root)).exit_code == 0
    shutil.rmtree(root / "-home-demo-tide-clock")
    again = palaver("archive", str(root))

    assert (again.exit_code, again.stdout) == (0, "Nothing new in 4 transcripts.\n")
    assert answer("search", "sqlite", "plug")["results"][0]["project"] == "tide-clock"


@contextmanager
def unreadable(path: Path) -> Generator[None]:
    """Remove all permissions during the block. Skip the test if this has no effect, as for root."""
    mode = path.stat().st_mode
    path.chmod(0)
    try:
        if os.access(path, os.R_OK):
            pytest.skip("this user may read everything")
        yield
    finally:
        path.chmod(mode)


@contextmanager
def unwritable(root: Path) -> Generator[None]:
    """Remove write permissions below a folder during the block. Skip the test if this has no effect, as for root."""
    modes = {path: path.stat().st_mode for path in (root, *root.rglob("*"))}
    for path, mode in modes.items():
        path.chmod(mode & ~0o222)
    try:
        if os.access(root, os.W_OK):
            pytest.skip("this user may write everywhere")
        yield
    finally:
        for path, mode in modes.items():
            path.chmod(mode)


def test_a_read_only_home_can_be_searched(home: Path) -> None:
    """A read-only home can be searched and shown. Commands that write fail with a remedy and change no file."""
    demo.archived(home)
    palaver("remember", "The tide clock is read-only by design")
    with unwritable(home / "palaver"):
        before = {path: path.read_bytes() for path in (home / "palaver").rglob("*") if path.is_file()}
        assert answer("search", "tide")["total"] > 0
        for words in (("show", "ex-1"), ("timeline", "ex-1"), ("status",), ("recall", "tide clock")):
            assert palaver(*words).exit_code == 0
        assert "read-only by design" in palaver("recall", "tide clock").stdout
        assert "may only be read: it is searched" in palaver("doctor").stdout
        modes = {path: path.stat().st_mode for path in (home / "palaver", *(home / "palaver").rglob("*"))}
        writing = (("remember", "The kettle leaks"), ("archive",), ("up",), ("rebuild",), ("rebuild", "--from-archive"))
        refused = [palaver(*words) for words in writing]
        error = json.loads(palaver("archive", "--json").stdout)["error"]
        assert {path: path.read_bytes() for path in (home / "palaver").rglob("*") if path.is_file()} == before
        assert {path: path.stat().st_mode for path in modes} == modes

    assert {(each.exit_code, each.stderr) for each in refused} == {
        (1, f"palaver: {error['message']}\n{error['hint']}\n")
    }
    assert error["kind"] == "store_read_only"
    assert error["message"].startswith(f"{home / 'palaver'} is read-only")
    assert "chmod -R u+w" in error["hint"]


def test_an_index_of_another_version_is_rebuilt(home: Path) -> None:
    """`status` reports an index written by another version, and the next ingest run rebuilds it once."""
    root = demo.history(home / "projects")
    palaver("archive", str(root))
    outdate(home / "palaver" / "index")

    assert (
        "Index: written by another version of Palaver. Search reads the archive until `palaver archive` rebuilds it\n"
        in palaver("status").stdout
    )
    assert answer("search", "tide")["total"] > 0
    notice = "Rebuilt the index, which was written by another version of Palaver.\n"
    assert palaver("archive", str(root)).stdout == f"Nothing new in 7 transcripts.\n{notice}"
    assert palaver("archive", str(root)).stdout == "Nothing new in 7 transcripts.\n"


def test_doctor_and_fsck_exit_with_1_on_problems(home: Path) -> None:
    """`doctor` and `fsck` exit with 0 without problems and with 1 otherwise, in text and JSON."""
    palaver("archive", str(demo.history(home / "projects")))

    def ended(*words: str) -> set[int]:
        return {palaver(*words).exit_code, palaver(*words, "--json").exit_code}

    assert ended("doctor") == ended("fsck") == {0}
    shutil.rmtree(home / "palaver" / "index")
    assert ended("doctor") == ended("fsck") == {1}
    assert ended("fsck", "--repair") == ended("doctor") == ended("fsck") == {0}


def test_an_unreadable_file_does_not_stop_the_others(home: Path) -> None:
    """An unreadable file is reported, the exit status is 1, and the next run ingests the file."""
    root = demo.history(home / "projects")
    closed = next(root.rglob("agent-*.jsonl"))
    with unreadable(closed):
        result = palaver("archive", str(root))

    assert result.exit_code == 1
    assert "Archived 6 of 7 transcripts" in result.stdout
    assert f"Not read: {closed}: permission denied. Check the rights of {closed}." in result.stdout
    assert "Archived 1 of 7 transcripts" in palaver("archive", str(root)).stdout


@pytest.mark.parametrize(
    "closed",
    [
        ".codex",
        ".codex/sessions",
        ".gemini/antigravity",
        ".gemini/antigravity/brain",
        ".config/Cursor",
        ".config/Cursor/User/workspaceStorage",
        ".config/Cursor/User/workspaceStorage/ab12",
        ".cursor/chats",
        ".local/share/opencode",
        ".local/share/opencode/storage",
        ".local/share/opencode/storage/session",
        ".local/share/opencode/storage/session/ab12",
    ],
)
def test_an_unreadable_agent_folder_does_not_stop_the_others(home: Path, closed: str) -> None:
    """`up` and `doctor` report an unreadable agent folder until it becomes readable."""
    demo.history(home / ".claude" / "projects")
    below = {".codex": "sessions", ".gemini/antigravity": "brain"}
    (home / closed / below.get(closed, "")).mkdir(parents=True)
    with unreadable(home / closed):
        result = palaver("up")
        examined = palaver("doctor").stdout

    assert result.exit_code == 1
    assert "Archived 7 of 8 transcripts" in result.stdout
    assert f"Not read: {home / closed}: permission denied. Check the rights of {home / closed}." in result.stdout
    assert f"{home / closed} was not read" in examined
    assert palaver("up").exit_code == 0
    assert "was not read" not in palaver("doctor").stdout


def test_an_unreadable_folder_is_reported(tmp_path: Path) -> None:
    """Archiving an unreadable folder reports missing permissions instead of an empty folder."""
    closed = tmp_path / "closed"
    closed.mkdir()
    with unreadable(closed):
        result = palaver("archive", str(closed))

    assert result.exit_code == 1
    assert f"{closed}: permission denied" in result.stderr


@pytest.mark.parametrize("left", [None, b""])
@pytest.mark.parametrize("command", ["up", "archive", "remember tea", "index {file}", "documents list", "status"])
def test_no_command_creates_a_database_next_to_copies(
    home: Path, tmp_path: Path, left: bytes | None, command: str
) -> None:
    """If raw copies exist but the database is missing or empty, commands suggest the remedy and create no database."""
    place = Home(home / "palaver")
    copy = place.archive / "claude-code" / "app" / "one.jsonl"
    copy.parent.mkdir(parents=True)
    copy.write_text("{}\n")
    if left is not None:
        place.database.write_bytes(left)
    file = tmp_path / "notes.md"
    file.write_text("# Notes")

    result = palaver(*command.format(file=file).split())

    assert result.exit_code == 1
    assert result.stderr.startswith(f"palaver: The database in {place.root} is missing, but its raw copies exist")
    assert "palaver rebuild --from-archive" in result.stderr
    assert not place.has_database


def test_a_lost_database_is_rebuilt_from_its_copies(home: Path) -> None:
    """`rebuild --from-archive` restores every session of a lost database."""
    place = demo.archived(home)
    before = answer("status")
    for path in place.root.glob("palaver.db*"):
        path.unlink()
    assert palaver("up").exit_code == 1

    assert palaver("rebuild", "--from-archive").exit_code == 0

    assert answer("status")["sessions"] == before["sessions"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.usefixtures("archived")
@pytest.mark.parametrize("words", [["search", "tide"], ["search", "tide", "--json"], ["--help"], ["--version"]])
def test_a_full_output_device_is_one_line_of_error(words: list[str]) -> None:
    """If standard output is on a full device, a command prints one line on standard error."""
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*PALAVER, *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=buffered
        )

    assert (done.returncode, done.stderr) == (1, "palaver: standard output: No space left on device\n")


@pytest.mark.usefixtures("archived")
@pytest.mark.parametrize("words", [["search", "tide"], ["status", "--json"], ["read", PATH, "--raw"], ["--help"]])
def test_a_closed_output_is_ignored(words: list[str]) -> None:
    """With standard output closed by `>&-`, a command exits with 0 and prints nothing."""
    command = shlex.join([*PALAVER, *words])
    done = subprocess.run(["/bin/sh", "-c", f"{command} >&-"], capture_output=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_an_interrupt_while_parsing_arguments_stops_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while arguments are parsed exits with 130."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(click.Group, "make_context", interrupted)
    result = palaver("remember", "tea")

    assert result.exit_code == 130
    assert result.stderr.endswith("\npalaver: stopped.\n")


def test_an_error_of_the_file_system_is_one_line(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the operating system, such as a full disk, is printed as one line without a traceback."""

    def full(_: Home) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(home / "palaver"))

    monkeypatch.setattr(Home, "make", full)
    result = palaver("up")

    assert (result.exit_code, result.stderr) == (1, f"palaver: {home / 'palaver'}: No space left on device\n")


def test_progress_is_shown_on_a_terminal_only(home: Path) -> None:
    """Progress bars appear on standard error only if it is a terminal."""
    root = demo.history(home / "projects")
    with at_a_terminal("archive", str(root)) as (process, screen):
        shown = shown_until_the_end(screen)
        output = process.communicate()[0]
    piped = ran("archive", str(root))

    assert [stage for stage in ("Archiving", "Observing", "Embedding") if stage.encode() not in shown] == []
    assert output.startswith(b"Archived 7 of 7")
    assert (piped.stdout, piped.stderr) == ("Nothing new in 7 transcripts.\n", "")


def many(path: Path, prompts: int) -> None:
    """Write a transcript with enough prompts for several embedding batches."""
    line = {"type": "user", "sessionId": "many", "cwd": "/home/demo/many", "parentUuid": None}
    with path.open("w") as file:
        for number in range(prompts):
            message = {"role": "user", "content": f"What about case {number}?"}
            file.write(json.dumps(line | {"uuid": f"u{number}", "message": message}) + "\n")


def test_control_c_loses_nothing(tmp_path: Path) -> None:
    """Ctrl-C during embedding keeps the results of all earlier stages, and the next run resumes.

    The report that the text is searchable is printed before embedding begins.
    """
    many(tmp_path / "many.jsonl", 3000)
    with at_a_terminal("archive", str(tmp_path)) as (process, screen):
        shown = b""
        while not re.search(rb"(?<!\d)(?!3000/)[1-9]\d*/3000", shown.partition(b"Embedding")[2]):
            shown += screen.read(4096)
        process.send_signal(signal.SIGINT)
        shown += shown_until_the_end(screen)
        output = process.communicate()[0]

    assert (process.returncode, output.count(b"\n")) == (130, 1)
    assert b". Searchable after" in output
    assert b"palaver: stopped. No data is lost. Run the same command again to resume." in shown
    assert b"Traceback" not in shown
    state = answer("status")
    assert (state["exchanges"], state["unobserved"]) == (3000, 0)
    assert 0 < state["unembedded"] <= 3000
    assert answer("search", "case 712", "--mode", "text")["results"][0]["title"] == "What about case 712?"


# search, show, read, status


@pytest.mark.usefixtures("archived")
def test_a_search_imports_only_its_own_libraries() -> None:
    """A search imports neither the libraries of other commands nor the extraction of observations."""
    program = "import sys; from palaver.cli import main\n"
    program += "main(['search', 'which tide comes first', '--json'], standalone_mode=False)\n"
    program += "print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert json.loads(done.stdout)["searched"] == ["text", "vector"]
    loaded, unneeded = set(done.stderr.split()), {"anthropic", "mcp", "rich", "watchfiles", "palaver.observe.memory"}
    assert (loaded & unneeded, "palaver.search.rank.engine" in loaded) == (set(), True)


@pytest.mark.usefixtures("archived")
def test_titles_are_complete_in_json() -> None:
    """JSON contains complete titles, and titles in a pipe are truncated prefixes of them."""
    query = ("search", "sqlite or json files")
    whole = {hit["id"]: hit["title"] for hit in answer(*query)["results"]}
    rows = [row for row in palaver(*query).stdout.splitlines() if row.split(" ")[0] in whole]
    shown = {row.split(" ")[0]: row.partition(" (also in ")[0].removesuffix("…") for row in rows}
    assert whole.keys() == shown.keys()
    for key, row in shown.items():  # ID, date, session and type come before the title
        assert whole[key].startswith(row.split(" ", 4)[4])
        assert not whole[key].endswith("…")
    assert "In a pipe" in palaver("search", "--help").stdout


@pytest.mark.parametrize(
    ("range", "explanation"),
    [
        (("--after", "2099-01-01"), "without --after: "),
        (("--before", "1999-01-01"), "without --before: "),
        (("--after", "2099-01-01", "--before", "2099-02-01"), "without --after and --before: "),
    ],
)
@pytest.mark.usefixtures("archived")
def test_only_given_filters_are_named_in_the_explanation(range: tuple[str, ...], explanation: str) -> None:  # noqa: A002
    """The explanation of an empty result refers only to the date filters that were given."""
    assert explanation in palaver("search", "tide", *range).stdout


REFUSED = [
    ("Query too short\nUse at least 2 characters.", ["search", "x"]),
    (
        "--after/--since: invalid date 'someday'\nUse YYYY-MM-DD format, or words: yesterday,",
        ["search", "tide", "--after", "someday"],
    ),
    ("--since/--after: no such month: 2026-13\n", ["forget", "--since", "2026-13"]),
    ("--until/--before: invalid date 'foo'\n", ["forget", "--until", "foo"]),
    ("--before/--until: no such day: 2026-02-30\n", ["search", "tide", "--before", "2026-02-30"]),
    ("3 weeks ago, 7d, ", ["search", "tide", "--since", "7 days"]),
    ("the shortest unit is a day.", ["search", "tide", "--since", "12h"]),
    ("the shortest unit is a day.", ["forget", "--before", "2026-03-01T10:00"]),
    (SWAPPED, ["search", "tide", "--after", "2026-03-02", "--before", "2026-03-01"]),
    (SWAPPED, ["search", "--after", "2026-03-02", "--before", "2026-03-01"]),
    (SWAPPED, ["forget", "--since", "2026-03-02", "--until", "2026-03-01"]),
    (SWAPPED, ["forget", "--mentions", "tide", "--since", "2026-03-02", "--until", "2026-03-01", "--erase"]),
    ("Invalid limit: 0\nAsk for 1 to 50 results.", ["search", "tide", "-n", "0"]),
    ("Unknown observation type: wish\nUse one of: decision, ", ["search", "tide", "--type", "wish"]),
    ("types: allowed only in searches for one concept", ["search", "--all-of", "tide", "sql", "--type", "test"]),
    ("5 other wordings given", ["search", "tide", *["--also", "ebb"] * 5]),
    ("Another wording is empty", ["search", "tide", "--also", ""]),
    ("Other wordings apply only to a query of one concept", ["search", "--all-of", "tide", "sql", "--also", "ebb"]),
    ("--also needs WORDS", ["search", "--also", "ebb", "--project", "p"]),
    ("--in output cannot be combined with --also", ["search", "--in", "output", "tide", "--also", "ebb"]),
    ("--all-of takes 2 to 5 concepts", ["search", "--all-of", "tide"]),
    ("--all-of takes 2 to 5 concepts", ["search", "--all-of", *"abcdef"]),
    ("--kind fix cannot be combined with --type", ["search", "tide", "--kind", "fix", "--type", "test"]),
    ("Commands, fixes and open items cannot be", ["search", "tide", "--kind", "fix", "--kind", "open"]),
    ("Kind fix needs an error message\nGive it as the query.", ["search", "--kind", "fix"]),
    ("'loud' is not one of", ["search", "tide", "--mode", "loud"]),
    ("Unknown ID: obs-999\nUse IDs from search results, such as obs-24,", ["show", "obs-999"]),
    ("21 IDs given, 1 to 20 allowed", ["show", *["obs-12"] * 21]),
    ("No archived file or session: /etc/passwd\nUse an ID from search results, a path", ["read", "/etc/passwd"]),
    ("No archived file or session: ../palaver.db", ["read", "../palaver.db"]),
    ("Invalid line range: 0: the first line must be at least 1 and not after the last line", ["read", PATH, "0"]),
    ("Invalid line range: 9-4: the first line must be at least 1 and not after the last line", ["read", PATH, "9-4"]),
    ("Invalid line range: line 900 is past the last line", ["read", PATH, "900-"]),
    ("'4-x' is not a line range; use 12, 12-40 or 12-", ["read", PATH, "4-x"]),
    ("No such command 'find'. Did you mean `palaver search`?", ["find"]),
]


@pytest.mark.usefixtures("archived")
@for_each("message, arguments", REFUSED)
def test_a_usage_error_has_a_message_and_a_remedy(message: str, arguments: list[str]) -> None:
    """A usage error is printed on standard error with exit status 2 and an empty standard output."""
    result = palaver(*arguments)

    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert result.exc_info is not None
    assert result.exc_info[0] is SystemExit


@pytest.mark.usefixtures("archived")
def test_three_layers_lead_from_a_question_to_the_transcript() -> None:
    """The output of each layer contains the arguments of the next command."""
    [hit] = answer("search", "high", "water", "one", "hour", "late", "-n", "1")["results"]
    [detail] = answer("show", hit["id"])["observations"]
    proof = detail["evidence"][0]
    shown = palaver("read", detail["path"], f"{proof['start_line']}-{proof['end_line']}").stdout

    assert detail["project"] == "tide-clock"
    assert proof["quote"][:40] in shown.replace("\\", "")


@pytest.mark.usefixtures("archived")
def test_a_search_of_an_empty_archive_suggests_up(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search of an empty archive suggests `palaver up` instead of another query."""
    found = palaver("search", "zzyzx quux").stdout
    monkeypatch.setenv("PALAVER_HOME", str(home / "empty"))
    Home(home / "empty").make()
    with Store.create(Home(home / "empty").database):
        pass
    result = palaver("search", "sqlite")

    assert (result.exit_code, result.stdout) == (0, "Nothing is archived yet. Run `palaver up`, then search again.\n")

    (home / "none").mkdir()
    (home / "none" / "agent-a1.jsonl").write_bytes(b'{"type": "us')
    assert "1 of 1 transcript" in palaver("archive", str(home / "none")).stdout
    assert "Nothing is archived yet" not in palaver("search", "sqlite").stdout
    assert answer("search", "sqlite")["total"] == 0
    assert found.startswith("No observations found. ")


@pytest.mark.usefixtures("archived")
def test_results_refer_to_commands() -> None:
    """Results on the command line refer to commands instead of MCP tools."""
    found = palaver("search", "sqlite").stdout
    details = palaver("show", answer("search", "sqlite")["results"][0]["id"]).stdout

    assert "Details: palaver show ID..., ~" in found
    assert "Transcript: palaver read ID." in details
    assert "get_observations" not in found + details


@pytest.mark.usefixtures("archived")
def test_quotes_around_a_query_are_optional() -> None:
    """Several arguments or lines form one query. With `--all-of`, each argument is a separate concept."""
    plain, quoted = answer("search", "sqlite", "json"), answer("search", "sqlite json")
    lines, several = answer("search", "sqlite\njson"), answer("search", "--all-of", "sqlite", "UTC")

    ids = [hit["id"] for hit in plain["results"]]
    assert [hit["id"] for hit in quoted["results"]] == [hit["id"] for hit in lines["results"]] == ids
    assert several["query"] == ["sqlite", "UTC"]
    assert {hit["kind"] for hit in several["results"]} == {"observation"}


@pytest.mark.usefixtures("archived")
def test_filters_narrow_the_results() -> None:
    """Date bounds are inclusive, and projects, types and files are selected by name."""
    day = answer("search", "the", "--after", "2026-03-30", "--before", "2026-03-30")["results"]
    fits = answer("search", "names", "--project", "seed-library", "--type", "decision")["results"]
    file = answer("search", "nginx", "--file", "nginx.conf")["results"]

    assert {hit["date"] for hit in day} == {"2026-03-30"}
    assert {(hit["project"], hit["type"]) for hit in fits} == {("seed-library", "decision")}
    assert {hit["date"] for hit in file} == {"2026-03-12"}
    assert palaver("search", "tide", "--before", "2020-01-01").stdout.startswith("No observations found.")


@pytest.mark.usefixtures("archived")
def test_json_has_the_documented_fields() -> None:
    """The JSON of a command has the fields of the printed structure."""
    found, state = answer("search", "sqlite"), answer("status")
    shown, text = answer("show", found["results"][0]["id"]), answer("read", PATH, "2-5")

    assert {"results", "total", "query", "tokens", "next", "weak", "explanation"} <= found.keys()
    assert {"id", "kind", "type", "title", "summary", "date", "score", "path", "tokens"} <= found["results"][0].keys()
    assert shown.keys() == {"observations", "total", "rest", "tokens"}
    assert text.keys() == {*TranscriptExcerpt.__struct_fields__, "rest"} - {
        "subagents",
        "stated_tokens",
    }  # below the calls, and for agents
    assert state.keys() == {*Status.__struct_fields__}
    assert state["lines"] == state["parsed"] + state["repeated"] + sum(state["skipped"].values())


def test_raw_lines_are_the_archived_bytes(archived: Home) -> None:
    """`read --raw` prints the archived bytes of the requested lines only."""
    with RawArchive(archived.archive).open_raw(PATH) as copy:
        lines = copy.read().splitlines(keepends=True)

    assert palaver("read", PATH, "--raw").stdout_bytes == b"".join(lines)
    assert palaver("read", PATH, "3-4", "--raw").stdout_bytes == b"".join(lines[2:4])
    assert palaver("read", PATH, "5", "--raw").stdout_bytes == lines[4]


def test_raw_and_json_cannot_be_combined() -> None:
    """Combining `--raw` and `--json` is a usage error in JSON format."""
    result = palaver("read", PATH, "--raw", "--json")

    assert (result.exit_code, json.loads(result.stdout)["error"]["message"]) == (
        2,
        "--raw and --json cannot be combined",
    )


def test_an_absolute_path_is_accepted(archived: Home) -> None:
    """`read` accepts the absolute path of a raw copy."""
    by_place, by_path = palaver("read", str(archived.archive / PATH), "2"), palaver("read", PATH, "2")
    assert unmarked(by_place.stdout) == unmarked(by_path.stdout)


def test_a_file_name_cannot_control_the_terminal(tmp_path: Path) -> None:
    """An error shows a file name on one line and without escape sequences."""
    folder = tmp_path / "a\x1b]0;owned\x07\x1b[2J\nb"
    folder.mkdir()
    result = palaver("archive", str(folder))

    assert (result.exit_code, "\x1b" in result.stderr) == (1, False)
    assert result.stderr.splitlines()[0] == f"palaver: {tmp_path}/a b: the folder contains no transcripts"


@pytest.mark.usefixtures("archived")
@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
@pytest.mark.parametrize("words", [("search", "the"), ("show", "obs-23"), ("read", PATH), ("timeline", "obs-23")])
def test_output_stays_within_the_token_budget(words: tuple[str, ...], form: tuple[str, ...]) -> None:
    """The output stays within the token budget, and budgets below the minimum are rejected."""
    small, large = palaver(*words, "--budget", "500", *form), palaver(*words, *form)

    assert (small.exit_code, large.exit_code) == (0, 0)
    assert count(small.stdout) <= 500
    assert count(large.stdout) <= 10_000
    assert palaver(*words, "--budget", "499", *form).exit_code == 2


def test_dates_can_be_words(archived: Home) -> None:
    """A date option in words gives the same results as the equivalent dates."""
    assert archived.database.exists()
    in_words, as_dates = (
        answer("search", "the", "--after", "march 2026", "--before", "2026-03"),
        answer("search", "the", "--after", "2026-03-01", "--before", "2026-03-31"),
    )
    words, days = (answer("forget", "--since", first, "--until", last, "--mentions", "sqlite") for first, last in (
        ("february 2026", "2026-02"), ("2026-02-01", "2026-02-28")
    ))  # fmt: skip

    assert [hit["id"] for hit in in_words["results"]] == [hit["id"] for hit in as_dates["results"]] != []
    assert words["exchanges"] == days["exchanges"] > 0


# Streams


@pytest.mark.usefixtures("archived")
@pytest.mark.parametrize("arguments", [["search", "sqlite"], ["read", PATH], ["read", PATH, "--raw"], ["status"]])
def test_a_closed_pipe_is_not_an_error(arguments: list[str]) -> None:
    """`palaver ... | head` exits with 0 and prints no error."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        done = subprocess.run([*PALAVER, *arguments], stdout=closed, stderr=subprocess.PIPE, check=False)

    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.usefixtures("archived")
def test_characters_outside_the_encoding_become_question_marks() -> None:
    """Characters that the terminal encoding cannot represent are replaced by question marks."""
    latin = os.environ | {"PYTHONIOENCODING": "iso-8859-1"}
    done = ran("show", "obs-17", env=latin, encoding="iso-8859-1")

    assert (done.returncode, done.stderr) == (0, "")
    assert "The user said: ?" in done.stdout


def test_the_packaged_model_can_be_restored(home: Path) -> None:
    """`model` prints the current model, and `model use packaged` removes only the model setting."""
    config = home / "palaver" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("# mine\nmodel = 'another'\n")

    another = palaver("model")
    used = palaver("model", "use", "packaged")
    packaged = palaver("model")

    assert another.stdout == "another\n"
    assert (used.exit_code, "384 dimensions" in used.stdout) == (0, True)
    assert packaged.stdout == "all-MiniLM-L6-v2-int8 (packaged)\n"
    assert config.read_text() == "# mine\n"


def test_a_model_that_cannot_be_loaded_changes_nothing(home: Path) -> None:
    """`model use` changes no setting if the model cannot be loaded."""
    result = palaver("model", "use", "/no/such/folder")

    assert result.exit_code == 1
    assert "palaver: " in result.stderr
    assert not list(home.rglob("config.toml"))


def test_demo_loads_the_sample_and_leaves_the_own_archive_alone(home: Path) -> None:
    """The first command with `--demo` loads the sample into its own home. `up` reports it and suggests `--demo`."""
    demo.history(home / ".claude" / "projects")
    found = palaver("--demo", "search", "sqlite or json files")
    assert (found.exit_code, "SQLite" in found.stdout) == (0, True)
    assert not (home / "palaver" / "palaver.db").exists()

    assert "7 sessions" in palaver("--demo", "status").stdout
    again = palaver("--demo", "up")
    assert (again.exit_code, again.stderr) == (0, "")
    costs = palaver("--demo", "stats").stdout
    assert "Observations save no tokens here, except over full transcripts" in costs
    assert "Token savings" not in costs


def test_up_with_demo_suggests_commands_for_the_sample_and_for_the_own_history(home: Path) -> None:
    """The first `up` with `--demo` loads the sample, and names the commands with and without `--demo`."""
    demo.history(home / ".claude" / "projects")
    shown = palaver("--demo", "up").stdout

    assert "Archived 7 of 7 transcripts" in shown
    assert " --demo search " in shown
    assert " --demo archive" not in shown


def test_commands_suggest_the_home_of_the_demo_data(home: Path) -> None:
    """If only demo data exists, commands suggest its home."""
    (home / "palaver" / "demo").mkdir(parents=True)
    (home / "palaver" / "demo" / "palaver.db").write_bytes(b"x")

    for words in (["search", "anything"], ["status"], ["doctor"], ["recall", "anything"], ["memories", "list"]):
        result = palaver(*words)
        assert (result.exit_code, result.stdout) == (1, "")
        assert "Only demo data" in result.stderr
        assert f"PALAVER_HOME={home / 'palaver'} " in result.stderr
        assert " --demo " in result.stderr
    begun = palaver("context")
    assert (begun.exit_code, begun.stdout) == (0, "")


def test_a_missing_raw_copy_is_not_an_unknown_path(built: Home, tmp_path: Path) -> None:
    """A path whose raw copy is missing is reported with a remedy, and an unknown path is reported as not found."""
    home = Home(tmp_path / "palaver")
    shutil.copytree(built.root, home.root)
    next(home.archive.glob(f"{PATH}*")).unlink()

    gone = CliRunner(env={"PALAVER_HOME": str(home.root)}).invoke(main, ["read", PATH, "1"])
    unknown = CliRunner(env={"PALAVER_HOME": str(home.root)}).invoke(main, ["read", "claude-code/x/\udcff.jsonl"])

    assert (gone.exit_code, "the raw copy is missing from the archive" in gone.stderr) == (1, True)
    assert "palaver fsck --repair" in gone.stderr
    assert (unknown.exit_code, "No archived file or session" in unknown.stderr) == (2, True)


def test_export_restores_the_original_files(archived: Home, tmp_path: Path) -> None:
    """One file is written to standard output, and all files are written below a folder with verified checksums."""
    with RawArchive(archived.archive).open_raw(PATH) as copy:
        data = copy.read()

    assert palaver("export", PATH).stdout_bytes == palaver("export", PATH, "-").stdout_bytes == data
    output = palaver("export", "--all", str(tmp_path / "out")).stdout
    assert "Checksums match the archive." in output
    assert (tmp_path / "out" / PATH).read_bytes() == data
    found = json.loads(palaver("export", PATH, str(tmp_path / "out"), "--json").stdout)
    assert (found["present"], len(found["files"]), found["problems"]) == (1, 1, [])


@pytest.mark.usefixtures("archived")
def test_known_ids_are_shown_next_to_unknown_ids() -> None:
    """Known IDs are shown, unknown IDs are reported on stderr or in a JSON field, and the exit status is 1."""
    one, both = palaver("show", "obs-12"), palaver("show", "obs-12", "obs-999")
    reply = palaver("show", "obs-999", "obs-12", "--json")

    assert (both.exit_code, unmarked(both.stdout)) == (1, unmarked(one.stdout))
    assert both.stderr.startswith("palaver: Unknown ID: obs-999\nUse IDs from search results")
    assert (reply.exit_code, reply.stderr) == (1, "")
    assert json.loads(reply.stdout) == {**answer("show", "obs-12"), "unknown": ["obs-999"]}


@pytest.mark.usefixtures("archived")
def test_a_bare_number_gets_a_suggestion() -> None:
    """A number without a prefix is an error that suggests the ID with this number, if one exists."""
    for command in ("show", "timeline"):
        assert palaver(command, "12").stderr == "palaver: Unknown ID: 12\nDid you mean obs-12?\n"
        assert "Did you mean" not in palaver(command, "999").stderr


@pytest.mark.usefixtures("archived")
def test_an_id_with_another_prefix_gets_a_suggestion() -> None:
    """An ID with a wrong prefix is an error that suggests the ID with the same number."""
    for command in ("show", "timeline"):
        asked = palaver(command, "ex-12")
        assert (asked.exit_code, asked.stdout) == (2, "")
        assert asked.stderr == "palaver: Unknown ID: ex-12\nDid you mean obs-12?\n"


def test_a_transcript_can_be_named_in_several_ways(archived: Home) -> None:
    """`read` accepts an archive path, an agent's path, a session ID or its prefix, and a result ID.

    A result ID starts at the line of the result.
    """
    with Store.open(archived.database) as store:
        agents = next(str(source.path) for source in store.sources.all() if source.archived == PATH)
    session = Path(PATH).stem

    def shown(*arguments: str) -> str:
        return unmarked(palaver("read", *arguments).stdout)

    whole = shown(PATH)
    for name in (agents, session, session[:8]):
        assert shown(name) == whole
    [hit] = answer("show", "obs-12")["observations"]
    assert shown("OBS-12") == shown(hit["path"], f"{hit['start_line']}-")
    assert shown("obs-12", "1-2") == shown(hit["path"], "1-2")
    assert palaver("read", "obs-999").stderr.startswith("palaver: Unknown ID: obs-999")


@pytest.mark.usefixtures("archived")
def test_a_session_id_can_be_abbreviated(tmp_path: Path) -> None:
    """`export` accepts a unique prefix of a session ID with at least four characters."""
    short, whole = palaver("export", "0b6f21c4"), palaver("export", "0b6f21c4-3d0e-4f57-9a41-2c7d5e8f1a01")

    assert (short.exit_code, short.stdout_bytes) == (0, whole.stdout_bytes)
    assert palaver("export", "0b6f21c4", str(tmp_path / "out")).stdout.startswith("1 file, ")
    assert "No archived file or session: 0b6" in palaver("export", "0b6").stderr
    assert "No archived file or session: 0b6f21c5" in palaver("export", "0b6f21c5").stderr


@pytest.mark.usefixtures("archived")
def test_an_incomplete_export_fails(tmp_path: Path) -> None:
    """An existing file at the target is reported and kept, and the exit status is 1."""
    in_the_way = tmp_path / "out" / PATH
    in_the_way.parent.mkdir(parents=True)
    in_the_way.write_bytes(b"mine")

    result = palaver("export", "--all", str(tmp_path / "out"))
    assert result.exit_code == 1
    assert f"Not exported: {in_the_way}: a different file exists at this path and was not changed" in result.stdout


@pytest.mark.usefixtures("archived")
@pytest.mark.parametrize("words", [(), ("--all",), ("a", "b", "c"), ("--all", "a", "b"), ("a", "--json")])
def test_missing_or_extra_arguments_of_export_are_reported(words: tuple[str, ...]) -> None:
    """`export` with too few or too many arguments is a usage error that lists the expected arguments."""
    result = palaver("export", *words)
    assert result.exit_code == 2
    assert "FOLDER" in result.output


def test_redact_reports_kinds_without_secrets(home: Path) -> None:
    """`redact` lists redactions by kind and session, in text and JSON, without the secrets."""
    secret = "gh" + "p_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    folder = home.parent / "told"
    folder.mkdir()
    path = folder / "11111111-0000-4000-8000-000000000001.jsonl"
    place = {"sessionId": path.stem, "cwd": "/home/demo/shop", "type": "user", "uuid": "u1"}
    path.write_text(json.dumps({**place, "message": {"role": "user", "content": f"use {secret}"}}) + "\n")
    assert palaver("archive", str(folder)).exit_code == 0

    output = palaver("redact", "--report").stdout
    reply = json.loads(palaver("redact", "--json").stdout)
    assert "github-pat: 1 secret, 1 occurrence" in output
    assert reply["kinds"] == {"github-pat": {"different": 1, "times": 1}}
    assert reply["sessions"][0]["session_id"] == path.stem
    assert secret not in output + json.dumps(reply)


def test_remember_redacts_secrets_and_reports_kinds(home: Path) -> None:
    """`remember` reports the kinds of redacted secrets and stores or prints no secret."""
    secret = "gh" + "p_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    outputs = [palaver("remember", f"deploy key is {secret}").stdout, palaver("memories", "show", "mem_1").stdout]
    reply = answer("remember", f"the old key was {secret}", "--tag", secret)
    report = answer("redact")

    assert "Redacted secrets, which are not stored: github-pat" in outputs[0]
    assert reply["secrets_removed"] == ["github-pat"]
    assert report["memories"] == {"mem_1": {"github-pat": 1}, reply["memory"]["id"]: {"github-pat": 2}}
    assert "in 0 transcripts and 2 memories" in palaver("redact").stdout
    assert secret not in "".join(outputs) + json.dumps([reply, report])
    assert not any(secret.encode() in path.read_bytes() for path in home.rglob("*") if path.is_file())


def test_an_interrupt_during_imports_prints_one_line() -> None:
    """Ctrl-C while modules are imported exits with 130 and prints one line."""
    program = """
import runpy, sys
class Interrupted:
    def find_spec(self, name, path=None, target=None):
        if name == "click":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupted())
runpy.run_module("palaver", run_name="__main__", alter_sys=True)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert done.returncode == 130
    assert done.stderr == "\npalaver: stopped.\n"


@pytest.mark.parametrize("as_json", [False, True])
def test_watch_labels_its_numbers(as_json: bool, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`watch` prints descriptive labels in text and stable field names in JSON."""
    listener = import_module("palaver.cli.watch")._listener(Home(home), as_json=as_json)
    listener("archived", {"files": 1, "lines": 9, "exchanges": 3})
    listener("learned", {"observed": 3, "embedded": 4, "behind": 94})
    output, errors = capsys.readouterr()

    if as_json:
        rows = [json.loads(row) for row in output.splitlines()]
        assert (rows[0]["exchanges"], rows[1]["behind"]) == (3, 94)
    else:
        assert "archived files=1 lines=9 changed_exchanges=3" in errors
        assert "learned observed=3 embedded=4 index_behind_changes=94" in errors


@pytest.mark.usefixtures("archived")
def test_a_project_can_be_named_by_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder selects the project with its name if the folder itself has no sessions.

    If no such project exists, the message contains the full path.
    """

    def found(project: str) -> list[str]:
        return [each["id"] for each in answer("search", "sqlite", "--project", project)["results"]]

    for name in ("tide-clock", "elsewhere"):
        (tmp_path / name).mkdir()
    called = found("tide-clock")
    monkeypatch.chdir(tmp_path / "tide-clock")
    assert called
    for named in (".", str(tmp_path / "tide-clock"), "../tide-clock"):
        assert found(named) == called
        assert "This would delete" in palaver("forget", "--project", named).stdout

    whole = str((tmp_path / "elsewhere").resolve())
    monkeypatch.chdir(whole)
    assert whole in palaver("search", "sqlite", "--project", ".").stderr
    assert whole in palaver("forget", "--project", ".").stderr


def test_the_suggested_query_has_results(home: Path) -> None:
    """After archiving the user's history, `up` suggests a query that has results."""
    shutil.copytree(DEMO / "projects", home / ".claude" / "projects")
    [command] = [row for row in palaver("up").stdout.splitlines() if " search " in row]
    assert "WORDS" not in command
    words = shlex.split(command.partition(" search ")[2])
    assert answer("search", *words)["results"]


def test_the_suggested_query_is_from_one_clause(home: Path) -> None:
    """`up` joins no words across sentences, and suggests no word from a sentence with a secret."""
    path = home / ".claude" / "projects" / "-code-kiln" / "1f2e3d4c-0000-4000-8000-000000000001.jsonl"
    path.parent.mkdir(parents=True)
    prompt = f"The kiln deploy fails. Use this token {'ghp_' + 'a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8'}."
    path.write_bytes(jsonl([user(prompt, uuid="u1", cwd="/code/kiln")]))

    assert 'search "The kiln deploy fails"\n' in palaver("up").stdout
