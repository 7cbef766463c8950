"""Tests for src/palaver/cli/: what a person types, sees and gets back as exit code."""

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

from palaver.archiver.copies.raw import RawArchive
from palaver.archiver.store import Store
from palaver.cli import main
from palaver.cli.commands import COMMANDS, SECTIONS
from palaver.core.home import DEMO, Home
from palaver.core.report import Status
from palaver.core.results import TranscriptExcerpt
from palaver.core.tokens import count

from . import demo
from .commands import EVERY, LEAVES, PLAIN, unmarked
from .upgrade import outdate

PATH = "claude-code/-home-demo-tide-clock/0b6f21c4-3d0e-4f57-9a41-2c7d5e8f1a01.jsonl"
SWAPPED = "Invalid date range: 2026-03-02 is later than 2026-03-01\nSwap the two dates."
PALAVER = (sys.executable, "-m", "palaver")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """The archived demo, shared: no test that uses it writes to it."""
    return demo.archived(tmp_path_factory.mktemp("built"))


@pytest.fixture
def archived(built: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    """The archived demo, as the home of this test."""
    monkeypatch.setenv("PALAVER_HOME", str(built.root))
    return built


def palaver(*arguments: str) -> Result:
    """Run one command in this process."""
    return CliRunner().invoke(main, arguments)


def ran(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run one command in a process of its own."""
    return subprocess.run([*PALAVER, *arguments], capture_output=True, text=True, check=False, **options)


def answer(*arguments: str) -> dict[str, Any]:
    """The JSON that a command prints."""
    result = palaver(*arguments, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@contextmanager
def at_a_terminal(*arguments: str) -> Generator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
    """Run one command whose standard error is a terminal; gives the process and what appears there."""
    ours, theirs = pty.openpty()
    with (
        subprocess.Popen([*PALAVER, *arguments], stdout=subprocess.PIPE, stderr=theirs) as process,
        os.fdopen(ours, "rb", buffering=0) as screen,
    ):
        os.close(theirs)
        yield process, screen


def shown_until_the_end(screen: IO[bytes]) -> bytes:
    """What else appears; a terminal whose program has gone answers with an error on Linux."""
    shown = b""
    try:
        while piece := screen.read(4096):
            shown += piece
    except OSError:
        pass
    return shown


# Help


def test_commands_are_listed_by_what_they_are_for() -> None:
    """Each heading of the help has its commands, in the order in which people need them, each told on one line."""
    shown = palaver("--help").stdout

    for heading, section in SECTIONS.items():
        rows = shown.partition(f"\n{heading}:\n")[2].partition("\n\n")[0].splitlines()
        assert [row.split()[0] for row in rows] == list(section)
        assert [row for row in rows if len(row) > 80 or not row.endswith(".")] == []
    assert list(COMMANDS)[:2] == ["up", "archive"]


def test_the_help_loads_no_command() -> None:
    """`palaver --help` is there at once: it imports nothing of ours but the table of commands."""
    code = "import sys; from palaver.cli import main; main(['--help'], standalone_mode=False)\n"
    code += "print(*(name for name in sys.modules if name.startswith('palaver')), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "Search and reuse your coding agents' conversations." in done.stdout
    known = {"palaver", "palaver.cli", "palaver.cli.commands", "palaver.core", "palaver.core.text"}
    assert set(done.stderr.split()) == known


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_each_command_explains_itself(words: tuple[str, ...]) -> None:
    """Every command has a help text; all that do something can print JSON, but for those in `PLAIN`."""
    shown = palaver(*words, "--help")

    assert shown.exit_code == 0
    assert EVERY[words].help
    assert ("--json" in shown.stdout) == (words in LEAVES and words not in PLAIN)


EXPLAINED_BY_THEIR_VALUES = {"mode"}


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_each_option_explains_itself(words: tuple[str, ...]) -> None:
    """Every option has a help text, but for those whose values say it all."""
    options = [each for each in EVERY[words].params if isinstance(each, click.Option)]

    assert {str(option.name) for option in options if not option.help} <= EXPLAINED_BY_THEIR_VALUES


# Before anything is archived


@pytest.mark.parametrize("arguments", [["search", "sqlite"], ["show", "obs-1"], ["read", "x"], ["status"]])
def test_without_an_archive_the_first_step_is_named(arguments: list[str], home: Path) -> None:
    """Asking an archive that is not there fails with what to do, and makes none."""
    result = palaver(*arguments)

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"palaver: no archive at {home / 'palaver'}\nRun `palaver up` to create one.\n"
    assert not (home / "palaver").exists()


def test_archiving_without_any_history_says_what_to_do(home: Path) -> None:
    """`archive` with nothing named and nothing found points to both ways on, and makes no empty archive."""
    result = palaver("archive")

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("palaver: no agent history found\nName a folder")
    assert not (home / "palaver").exists()


@pytest.mark.parametrize("command", ["archive", "search"])
@pytest.mark.parametrize(
    ("value", "message"),
    [("here", "is not an absolute path: here"), ("~nobody-of-that-name/x", "names an unknown user")],
)
def test_a_home_that_means_nothing_is_refused(
    command: str, value: str, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """PALAVER_HOME must say where it is, whatever the current folder."""
    monkeypatch.setenv("PALAVER_HOME", value)
    monkeypatch.chdir(tmp_path)
    result = palaver(command, "xx")

    assert result.exit_code == 1
    assert message in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_home_that_cannot_be_made_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file where the home should be is named at once, also by what only reads, and left alone."""
    (tmp_path / "file").write_text("mine")
    monkeypatch.setenv("PALAVER_HOME", str(tmp_path / "file"))
    for words in (["archive", str(demo.history(tmp_path / "projects"))], ["search", "tea"], ["up"], ["status"]):
        result = palaver(*words)
        assert result.exit_code == 1
        assert result.stderr == (
            f"palaver: PALAVER_HOME is a file: {tmp_path / 'file'}\nSet it to a folder you may write to.\n"
        )
    assert (tmp_path / "file").read_text() == "mine"


def test_a_wrong_setting_is_named(home: Path) -> None:
    """A setting that does not exist is an error, not a silent default."""
    (home / "palaver").mkdir()
    (home / "palaver" / "config.toml").write_text("modle = 'x'\n")
    result = palaver("archive", str(demo.history(home / "projects")))

    assert result.exit_code == 1
    assert "config.toml: unknown setting modle" in result.stderr


# up


def test_up_without_a_history_tries_a_made_up_one(home: Path) -> None:
    """The demo is archived in a home of its own, so that it can never mix with real conversations."""
    result = palaver("up")

    assert (result.exit_code, result.stderr) == (0, "")
    assert "loaded a small sample archive instead" in result.stdout
    assert [path.name for path in (home / "palaver").iterdir()] == ["demo"]
    assert (home / "palaver" / "demo" / "palaver.db").exists()


@pytest.mark.parametrize("words", [("up",), ("archive",), ("watch",)])
def test_the_demo_takes_no_real_history_in(words: tuple[str, ...], home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home that holds only the made-up history refuses a real one, says the way out, and does not ask for it."""
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


def test_up_with_a_history_leaves_the_demo_alone(home: Path) -> None:
    """What this user's agents said is archived, and nothing is made up."""
    demo.history(home / ".claude" / "projects")
    result = palaver("up")

    assert "sample archive" not in result.stdout
    assert "claude mcp add --scope user palaver" in result.stdout
    assert not (home / "palaver" / "demo").exists()
    assert answer("status")["sessions"] == 7


def test_up_again_finds_nothing_new(home: Path) -> None:
    """A second run says so, whether the history is real or not."""
    demo.history(home / ".claude" / "projects")
    first, second = palaver("up"), palaver("up")

    assert "Archived 7 of 7 transcripts" in first.stdout
    assert second.stdout.startswith("Nothing new in 7 transcripts.\n")
    assert answer("up")["ingested"]["changed"] == 0


def test_up_in_json_says_where(home: Path) -> None:
    """A script learns which home was used, and gets nothing but JSON."""
    assert answer("up")["home"] == str(home / "palaver" / "demo")


def test_the_commands_that_up_prints_work_when_pasted(home: Path) -> None:
    """They need neither this folder nor this shell's settings."""
    shown = ran("up").stdout
    line = next(line for line in shown.splitlines() if " search " in line)
    plain = {name: value for name, value in os.environ.items() if name != "PALAVER_HOME"}
    pasted = subprocess.run(line, shell=True, capture_output=True, text=True, check=False, env=plain, cwd=home)

    assert (pasted.returncode, pasted.stderr) == (0, "")
    assert "Keep the readings of" in pasted.stdout


# archive


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    """A folder without transcripts was probably not the one that was meant."""
    result = palaver("archive", str(tmp_path))

    assert result.exit_code == 1
    assert result.stderr.startswith(f"palaver: {tmp_path}: no transcripts here\nKnown agents: claude-code")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("notes.txt", "hello", "not a transcript of a known agent"),
        ("data.jsonl", '{"a": 1}\n', "not a transcript of a known agent"),
        ("empty.jsonl", "", "not a transcript of a known agent"),
        ("gone.jsonl", None, "No such file or directory"),
    ],
)
def test_a_file_that_is_no_transcript_is_refused(
    name: str, content: str | None, message: str, home: Path, tmp_path: Path
) -> None:
    """It is named, with the reason, before anything is written."""
    if content is not None:
        (tmp_path / name).write_text(content)
    result = palaver("archive", str(tmp_path / name))

    assert result.exit_code == (2 if content is None else 1)
    assert f"{tmp_path / name}: {message}" in result.stderr
    assert not (home / "palaver").exists()


def test_a_deleted_transcript_stays_archived(home: Path) -> None:
    """The source vanishing changes nothing about what can be found."""
    root = demo.history(home / "projects")
    assert palaver("archive", str(root)).exit_code == 0
    shutil.rmtree(root / "-home-demo-tide-clock")
    again = palaver("archive", str(root))

    assert (again.exit_code, again.stdout) == (0, "Nothing new in 4 transcripts.\n")
    assert answer("search", "sqlite", "plug")["results"][0]["project"] == "tide-clock"


@contextmanager
def unreadable(path: Path) -> Generator[None]:
    """Takes away all rights for a while; skips where that stops nobody, as for root."""
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
    """Takes away all rights to write below a folder for a while; skips where that stops nobody, as for root."""
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


def test_a_home_that_may_only_be_read_is_read(home: Path) -> None:
    """What is archived is found, shown and told of; what has to be written is refused with what to do, and no file of
    it is touched.
    """
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
        told = json.loads(palaver("archive", "--json").stdout)["error"]
        assert {path: path.read_bytes() for path in (home / "palaver").rglob("*") if path.is_file()} == before
        assert {path: path.stat().st_mode for path in modes} == modes

    assert {(each.exit_code, each.stderr) for each in refused} == {(1, f"palaver: {told['message']}\n{told['hint']}\n")}
    assert told["kind"] == "store_read_only"
    assert told["message"].startswith(f"{home / 'palaver'} is read-only")
    assert "chmod -R u+w" in told["hint"]


def test_an_upgrade_is_no_damage(home: Path) -> None:
    """An index of another version is called so by `status`, and the next pass makes it anew and says so, once."""
    root = demo.history(home / "projects")
    palaver("archive", str(root))
    outdate(home / "palaver" / "index")

    assert (
        "Index: written by another version of Palaver; search reads the archive until `palaver archive` rebuilds it\n"
        in palaver("status").stdout
    )
    assert answer("search", "tide")["total"] > 0
    told = "Rebuilt the index, which was written by another version of Palaver.\n"
    assert palaver("archive", str(root)).stdout == f"Nothing new in 7 transcripts.\n{told}"
    assert palaver("archive", str(root)).stdout == "Nothing new in 7 transcripts.\n"


def test_the_status_of_doctor_and_fsck_says_whether_all_is_well(home: Path) -> None:
    """Both end with 0 where all is well and with 1 where something is left to do, in words and as JSON."""
    palaver("archive", str(demo.history(home / "projects")))

    def ended(*words: str) -> set[int]:
        return {palaver(*words).exit_code, palaver(*words, "--json").exit_code}

    assert ended("doctor") == ended("fsck") == {0}
    shutil.rmtree(home / "palaver" / "index")
    assert ended("doctor") == ended("fsck") == {1}
    assert ended("fsck", "--repair") == ended("doctor") == ended("fsck") == {0}


def test_a_file_that_may_not_be_read_does_not_stop_the_others(home: Path) -> None:
    """It is named, the exit code tells, and the next run goes on with it."""
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
def test_an_agent_whose_folder_is_closed_does_not_stop_the_others(home: Path, closed: str) -> None:
    """The folder is named as a file would be, by a pass and by the doctor, until it is open again."""
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


def test_a_folder_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    """The reason is the folder's rights, not that it is empty."""
    closed = tmp_path / "closed"
    closed.mkdir()
    with unreadable(closed):
        result = palaver("archive", str(closed))

    assert result.exit_code == 1
    assert f"{closed}: permission denied" in result.stderr


@pytest.mark.parametrize("left", [None, b""])
@pytest.mark.parametrize("command", ["up", "archive", "remember tea", "index {file}", "documents list", "status"])
def test_no_command_makes_a_new_database_beside_copies(
    home: Path, tmp_path: Path, left: bytes | None, command: str
) -> None:
    """Where a database is lost, or of no bytes, the way back is told, and nothing hides that there was one."""
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
    assert result.stderr.startswith(f"palaver: the database in {place.root} is missing, but its raw copies exist")
    assert "palaver rebuild --from-archive" in result.stderr
    assert not place.has_database


def test_a_lost_database_comes_back_from_its_copies(home: Path) -> None:
    """What only the archive has is there again once the copies are read, and not a file of it was changed before."""
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
def test_an_output_that_is_full_is_one_line(words: list[str]) -> None:
    """Where nothing can be printed, that is told once, on standard error, in words."""
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*PALAVER, *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=buffered
        )

    assert (done.returncode, done.stderr) == (1, "palaver: standard output: No space left on device\n")


@pytest.mark.usefixtures("archived")
@pytest.mark.parametrize("words", [["search", "tide"], ["status", "--json"], ["read", PATH, "--raw"], ["--help"]])
def test_an_output_that_was_closed_takes_nothing(words: list[str]) -> None:
    """`palaver ... >&-` does its work and prints nowhere; no file that is opened meanwhile gets what is printed."""
    command = shlex.join([*PALAVER, *words])
    done = subprocess.run(["/bin/sh", "-c", f"{command} >&-"], capture_output=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_an_interrupt_before_a_command_runs_stops_as_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """While words are still looked at, Ctrl-C ends with 130, too."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(click.Group, "make_context", interrupted)
    result = palaver("remember", "tea")

    assert result.exit_code == 130
    assert result.stderr.endswith("\npalaver: stopped.\n")


def test_what_the_file_system_refuses_is_one_line(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk or the like is told in a sentence, without a stack dump."""

    def full(_: Home) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(home / "palaver"))

    monkeypatch.setattr(Home, "make", full)
    result = palaver("up")

    assert (result.exit_code, result.stderr) == (1, f"palaver: {home / 'palaver'}: No space left on device\n")


def test_progress_is_shown_at_a_terminal_only(home: Path) -> None:
    """Bars for each stage appear on standard error where that is a terminal; elsewhere it stays silent."""
    root = demo.history(home / "projects")
    with at_a_terminal("archive", str(root)) as (process, screen):
        shown = shown_until_the_end(screen)
        told = process.communicate()[0]
    piped = ran("archive", str(root))

    assert [stage for stage in ("Archiving", "Observing", "Embedding") if stage.encode() not in shown] == []
    assert told.startswith(b"Archived 7 of 7")
    assert (piped.stdout, piped.stderr) == ("Nothing new in 7 transcripts.\n", "")


def many(path: Path, prompts: int) -> None:
    """A transcript with so many prompts that embedding them takes several batches."""
    line = {"type": "user", "sessionId": "many", "cwd": "/home/demo/many", "parentUuid": None}
    with path.open("w") as file:
        for number in range(prompts):
            said = {"role": "user", "content": f"What about case {number}?"}
            file.write(json.dumps(line | {"uuid": f"u{number}", "message": said}) + "\n")


def test_control_c_loses_nothing(tmp_path: Path) -> None:
    """Stopped in the middle of the last stage, everything before it is there and the rest waits for the next run.

    That the text is searchable was said before that stage began.
    """
    many(tmp_path / "many.jsonl", 3000)
    with at_a_terminal("archive", str(tmp_path)) as (process, screen):
        shown = b""
        while not re.search(rb"(?<!\d)(?!3000/)[1-9]\d*/3000", shown.partition(b"Embedding")[2]):
            shown += screen.read(4096)
        process.send_signal(signal.SIGINT)
        shown += shown_until_the_end(screen)
        told = process.communicate()[0]

    assert (process.returncode, told.count(b"\n")) == (130, 1)
    assert b". Searchable after" in told
    assert b"palaver: stopped. Nothing is lost; run the same command to resume." in shown
    assert b"Traceback" not in shown
    state = answer("status")
    assert (state["exchanges"], state["unobserved"]) == (3000, 0)
    assert 0 < state["unembedded"] <= 3000
    assert answer("search", "case 712", "--mode", "text")["results"][0]["title"] == "What about case 712?"


# search, show, read, status


@pytest.mark.usefixtures("archived")
def test_a_search_loads_what_it_needs() -> None:
    """A search imports neither the libraries of other commands nor the extraction of observations."""
    program = "import sys; from palaver.cli import main\n"
    program += "main(['search', 'which tide comes first', '--json'], standalone_mode=False)\n"
    program += "print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert json.loads(done.stdout)["searched"] == ["text", "vector"]
    loaded, unneeded = set(done.stderr.split()), {"anthropic", "mcp", "rich", "watchfiles", "palaver.observe"}
    assert (loaded & unneeded, "palaver.search.rank.engine" in loaded) == (set(), True)


@pytest.mark.usefixtures("archived")
def test_titles_are_whole_in_json_wherever_it_goes() -> None:
    """What is cut in a pipe, as the help says, begins as the whole title that --json has."""
    whole = {hit["id"]: hit["title"] for hit in answer("search", "tide")["results"]}
    rows = [row for row in palaver("search", "tide").stdout.splitlines() if row.split(" ")[0] in whole]
    shown = {row.split(" ")[0]: row.split(" ", 4)[4].partition(" (+")[0] for row in rows}
    assert whole.keys() == shown.keys()
    assert any(title.endswith("…") for title in shown.values())
    for key, title in shown.items():
        assert whole[key].startswith(title.removesuffix("…"))
        assert not whole[key].endswith("…")
    assert "when piped" in palaver("search", "--help").stdout


@pytest.mark.parametrize(
    ("range", "told"),
    [
        (("--after", "2099-01-01"), "without --after: "),
        (("--before", "1999-01-01"), "without --before: "),
        (("--after", "2099-01-01", "--before", "2099-02-01"), "without --after and --before: "),
    ],
)
@pytest.mark.usefixtures("archived")
def test_only_the_filters_that_were_given_are_named(range: tuple[str, ...], told: str) -> None:  # noqa: A002
    """Where nothing is found, what would be found without one date speaks of that date."""
    assert told in palaver("search", "tide", *range).stdout


REFUSED = [
    ("Query too short\nUse at least 2 characters.", ["search", "x"]),
    (
        "--after: invalid date 'someday'\nUse YYYY-MM-DD format, or words: yesterday,",
        ["search", "tide", "--after", "someday"],
    ),
    ("--since: no such month: 2026-13\n", ["forget", "--since", "2026-13"]),
    ("--until: invalid date 'foo'\n", ["forget", "--until", "foo"]),
    ("--before: no such day: 2026-02-30\n", ["search", "tide", "--before", "2026-02-30"]),
    (SWAPPED, ["search", "tide", "--after", "2026-03-02", "--before", "2026-03-01"]),
    (SWAPPED, ["search", "--after", "2026-03-02", "--before", "2026-03-01"]),
    (SWAPPED, ["forget", "--since", "2026-03-02", "--until", "2026-03-01"]),
    (SWAPPED, ["forget", "--mentions", "tide", "--since", "2026-03-02", "--until", "2026-03-01", "--erase"]),
    ("Invalid limit: 0\nAsk for 1 to 50 results.", ["search", "tide", "-n", "0"]),
    ("Unknown observation type: wish\nUse one of: decision, ", ["search", "tide", "--type", "wish"]),
    ("types: for single-concept searches only", ["search", "--all-of", "tide", "sql", "--type", "test"]),
    ("--all-of takes 2 to 5 concepts", ["search", "--all-of", "tide"]),
    ("--all-of takes 2 to 5 concepts", ["search", "--all-of", *"abcdef"]),
    ("Missing argument 'WORDS...'", ["search"]),
    ("'loud' is not one of", ["search", "tide", "--mode", "loud"]),
    ("Unknown ID: obs-999\nTake IDs from search results; they look like obs-24,", ["show", "obs-999"]),
    ("21 IDs given, 1 to 20 allowed", ["show", *["obs-12"] * 21]),
    ("File not found: /etc/passwd\nUse a path printed by `palaver show ID`", ["read", "/etc/passwd"]),
    ("File not found: ../palaver.db", ["read", "../palaver.db"]),
    ("Invalid line range: 0: the first line must be >= 1 and <= the last", ["read", PATH, "0"]),
    ("Invalid line range: 9-4: the first line must be >= 1 and <= the last", ["read", PATH, "9-4"]),
    ("Invalid line range: startLine 900 is past the last line", ["read", PATH, "900-"]),
    ("4-x is not a line range; use 12, 12-40 or 12-", ["read", PATH, "4-x"]),
    ("No such command 'find'. Did you mean `palaver search`?", ["find"]),
]


@pytest.mark.usefixtures("archived")
@pytest.mark.parametrize(("message", "arguments"), REFUSED, ids=[" ".join(case[1][:4]) for case in REFUSED])
def test_a_wrong_call_is_answered_with_how_to_correct_it(message: str, arguments: list[str]) -> None:
    """One clear message on standard error, nothing on standard output, and 2 at the end, whoever refuses it."""
    result = palaver(*arguments)

    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert result.exc_info is not None
    assert result.exc_info[0] is SystemExit


@pytest.mark.usefixtures("archived")
def test_three_layers_lead_from_a_question_to_the_words() -> None:
    """Each answer names what the next command needs."""
    [hit] = answer("search", "high", "water", "one", "hour", "late", "-n", "1")["results"]
    [detail] = answer("show", hit["id"])["observations"]
    proof = detail["evidence"][0]
    shown = palaver("read", detail["path"], f"{proof['start_line']}-{proof['end_line']}").stdout

    assert detail["project"] == "tide-clock"
    assert proof["quote"][:40] in shown.replace("\\", "")


@pytest.mark.usefixtures("archived")
def test_an_archive_that_holds_nothing_says_so(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a first pass on a full disk leaves it: another query would not help, archiving does."""
    found = palaver("search", "zzyzx quux").stdout
    monkeypatch.setenv("PALAVER_HOME", str(home / "empty"))
    Home(home / "empty").make()
    with Store.create(Home(home / "empty").database):
        pass
    told = palaver("search", "sqlite")

    assert (told.exit_code, told.stdout) == (0, "Nothing is archived yet. Run `palaver up`, then search again.\n")

    (home / "none").mkdir()
    (home / "none" / "agent-a1.jsonl").write_bytes(b'{"type": "us')
    assert "1 of 1 transcript" in palaver("archive", str(home / "none")).stdout
    assert "Nothing is archived yet" not in palaver("search", "sqlite").stdout
    assert answer("search", "sqlite")["total"] == 0
    assert found.startswith("No observations found. ")


@pytest.mark.usefixtures("archived")
def test_answers_name_commands_not_tools() -> None:
    """A person at a shell is told what to type."""
    found = palaver("search", "sqlite").stdout
    told = palaver("show", answer("search", "sqlite")["results"][0]["id"]).stdout

    assert "Details: palaver show ID..., ~" in found
    assert "Transcript: palaver read PATH FIRST-LAST, ~" in told
    assert "get_observations" not in found + told


@pytest.mark.usefixtures("archived")
def test_words_may_be_typed_with_or_without_quotes() -> None:
    """Several arguments are one question, also over several lines; with --all-of each is a concept of its own."""
    plain, quoted = answer("search", "sqlite", "json"), answer("search", "sqlite json")
    lines, several = answer("search", "sqlite\njson"), answer("search", "--all-of", "sqlite", "UTC")

    ids = [hit["id"] for hit in plain["results"]]
    assert [hit["id"] for hit in quoted["results"]] == [hit["id"] for hit in lines["results"]] == ids
    assert several["query"] == ["sqlite", "UTC"]
    assert {hit["kind"] for hit in several["results"]} == {"observation"}


@pytest.mark.usefixtures("archived")
def test_filters_narrow_the_answer() -> None:
    """Days are included, and projects, types and files are taken by name."""
    day = answer("search", "the", "--after", "2026-03-30", "--before", "2026-03-30")["results"]
    fits = answer("search", "names", "--project", "seed-library", "--type", "decision")["results"]
    file = answer("search", "nginx", "--file", "nginx.conf")["results"]

    assert {hit["date"] for hit in day} == {"2026-03-30"}
    assert {(hit["project"], hit["type"]) for hit in fits} == {("seed-library", "decision")}
    assert {hit["date"] for hit in file} == {"2026-03-12"}
    assert palaver("search", "tide", "--before", "2020-01-01").stdout.startswith("No observations found.")


@pytest.mark.usefixtures("archived")
def test_json_has_the_promised_keys() -> None:
    """The JSON of a command has the fields of the value it prints."""
    found, state = answer("search", "sqlite"), answer("status")
    shown, text = answer("show", found["results"][0]["id"]), answer("read", PATH, "2-5")

    assert {"results", "total", "query", "tokens", "next", "weak", "explanation"} <= found.keys()
    assert {"id", "kind", "type", "title", "summary", "date", "score", "path", "tokens"} <= found["results"][0].keys()
    assert shown.keys() == {"observations", "total", "rest", "tokens"}
    assert text.keys() == {*TranscriptExcerpt.__struct_fields__, "rest"}
    assert state.keys() == {*Status.__struct_fields__}
    assert state["lines"] == state["parsed"] + state["repeated"] + sum(state["skipped"].values())


def test_raw_lines_are_the_agents_own(archived: Home) -> None:
    """`read --raw` prints the archived bytes, and only the lines asked for."""
    with RawArchive(archived.archive).open_raw(PATH) as copy:
        lines = copy.read().splitlines(keepends=True)

    assert palaver("read", PATH, "--raw").stdout_bytes == b"".join(lines)
    assert palaver("read", PATH, "3-4", "--raw").stdout_bytes == b"".join(lines[2:4])
    assert palaver("read", PATH, "5", "--raw").stdout_bytes == lines[4]


def test_raw_lines_are_no_json() -> None:
    """`--raw` and `--json` cannot be combined, said in JSON because it was asked for."""
    result = palaver("read", PATH, "--raw", "--json")

    assert (result.exit_code, json.loads(result.stdout)["error"]["message"]) == (
        2,
        "--raw and --json cannot be combined",
    )


def test_an_absolute_path_may_be_given(archived: Home) -> None:
    """What a file manager shows can be pasted too."""
    by_place, by_path = palaver("read", str(archived.archive / PATH), "2"), palaver("read", PATH, "2")
    assert unmarked(by_place.stdout) == unmarked(by_path.stdout)


def test_a_files_name_cannot_steer_the_terminal(tmp_path: Path) -> None:
    """An error that names a file shows the name without escape sequences and on one line."""
    folder = tmp_path / "a\x1b]0;owned\x07\x1b[2J\nb"
    folder.mkdir()
    result = palaver("archive", str(folder))

    assert (result.exit_code, "\x1b" in result.stderr) == (1, False)
    assert result.stderr.splitlines()[0] == f"palaver: {tmp_path}/a b: no transcripts here"


@pytest.mark.usefixtures("archived")
@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
@pytest.mark.parametrize("words", [("search", "the"), ("show", "obs-23"), ("read", PATH), ("timeline", "obs-23")])
def test_an_answer_keeps_to_the_budget(words: tuple[str, ...], form: tuple[str, ...]) -> None:
    """What is printed costs no more than was allowed, and less is allowed than all would cost."""
    small, large = palaver(*words, "--budget", "500", *form), palaver(*words, *form)

    assert (small.exit_code, large.exit_code) == (0, 0)
    assert count(small.stdout) <= 500
    assert count(large.stdout) <= 10_000
    assert palaver(*words, "--budget", "499", *form).exit_code == 2


def test_dates_are_said_in_words(archived: Home) -> None:
    """Where a command takes a date it takes words: each finds what the day itself finds."""
    assert archived.database.exists()
    said, written = (
        answer("search", "the", "--after", "march 2026", "--before", "2026-03"),
        answer("search", "the", "--after", "2026-03-01", "--before", "2026-03-31"),
    )
    words, days = (answer("forget", "--since", first, "--until", last, "--mentions", "sqlite") for first, last in (
        ("february 2026", "2026-02"), ("2026-02-01", "2026-02-28")
    ))  # fmt: skip

    assert [hit["id"] for hit in said["results"]] == [hit["id"] for hit in written["results"]] != []
    assert words["exchanges"] == days["exchanges"] > 0


# Streams


@pytest.mark.usefixtures("archived")
@pytest.mark.parametrize("arguments", [["search", "sqlite"], ["read", PATH], ["read", PATH, "--raw"], ["status"]])
def test_a_closed_pipe_is_a_normal_end(arguments: list[str]) -> None:
    """`palaver ... | head` ends with 0 and without a complaint."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        done = subprocess.run([*PALAVER, *arguments], stdout=closed, stderr=subprocess.PIPE, check=False)

    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.usefixtures("archived")
def test_a_terminal_with_few_characters_gets_question_marks() -> None:
    """What cannot be shown does not end the command."""
    latin = os.environ | {"PYTHONIOENCODING": "iso-8859-1"}
    done = ran("show", "obs-16", env=latin, encoding="iso-8859-1")

    assert (done.returncode, done.stderr) == (0, "")
    assert "Asked: ?" in done.stdout


def test_the_model_is_shown_and_can_be_put_back(home: Path) -> None:
    """`model` names the model, and `model use packaged` takes the packaged one back and touches nothing else."""
    config = home / "palaver" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("# mine\nmodel = 'another'\n")

    another = palaver("model")
    used = palaver("model", "use", "packaged")
    packaged = palaver("model")

    assert another.stdout == "another\n"
    assert (used.exit_code, "384 numbers" in used.stdout) == (0, True)
    assert packaged.stdout == "all-MiniLM-L6-v2-int8 (packaged)\n"
    assert config.read_text() == "# mine\n"


def test_a_model_that_cannot_be_loaded_changes_nothing(home: Path) -> None:
    """A model is taken only once it could be loaded."""
    result = palaver("model", "use", "/no/such/folder")

    assert result.exit_code == 1
    assert "palaver: " in result.stderr
    assert not list(home.rglob("config.toml"))


def test_after_the_demo_the_way_to_search_it_is_told(home: Path) -> None:
    """Who has only the made-up history is not sent to make it once more."""
    (home / "palaver" / "demo").mkdir(parents=True)
    (home / "palaver" / "demo" / "palaver.db").write_bytes(b"x")

    for words in (["search", "anything"], ["status"], ["doctor"], ["recall", "anything"], ["memories", "list"]):
        result = palaver(*words)
        assert (result.exit_code, result.stdout) == (1, "")
        assert "Only demo data" in result.stderr
        assert f"PALAVER_HOME={home / 'palaver' / 'demo'}" in result.stderr
    begun = palaver("context")
    assert (begun.exit_code, begun.stdout) == (0, "")


def test_a_copy_that_is_gone_is_not_said_to_be_unknown(built: Home, tmp_path: Path) -> None:
    """The path is right and its copy is lost: the way back is told; a path that nothing has stays unknown."""
    home = Home(tmp_path / "palaver")
    shutil.copytree(built.root, home.root)
    next(home.archive.glob(f"{PATH}*")).unlink()

    gone = CliRunner(env={"PALAVER_HOME": str(home.root)}).invoke(main, ["read", PATH, "1"])
    unknown = CliRunner(env={"PALAVER_HOME": str(home.root)}).invoke(main, ["read", "claude-code/x/\udcff.jsonl"])

    assert (gone.exit_code, "the raw copy is missing from the archive" in gone.stderr) == (1, True)
    assert "palaver fsck --repair" in gone.stderr
    assert (unknown.exit_code, "File not found" in unknown.stderr) == (2, True)


def test_export_gives_the_agents_files_back(archived: Home, tmp_path: Path) -> None:
    """One file goes to standard output as it is; all go below a folder, and each is said to have been compared."""
    with RawArchive(archived.archive).open_raw(PATH) as copy:
        data = copy.read()

    assert palaver("export", PATH).stdout_bytes == palaver("export", PATH, "-").stdout_bytes == data
    said = palaver("export", "--all", str(tmp_path / "out")).stdout
    assert "Checksums match the archive." in said
    assert (tmp_path / "out" / PATH).read_bytes() == data
    found = json.loads(palaver("export", PATH, str(tmp_path / "out"), "--json").stdout)
    assert (found["present"], len(found["files"]), found["problems"]) == (1, 1, [])


@pytest.mark.usefixtures("archived")
def test_an_unknown_id_keeps_nothing_back() -> None:
    """What is there is shown, and of the other it is said on standard error, or in a field, that nothing has it: a part
    was done.
    """
    one, both = palaver("show", "obs-12"), palaver("show", "obs-12", "obs-999")
    told = palaver("show", "obs-999", "obs-12", "--json")

    assert (both.exit_code, unmarked(both.stdout)) == (1, unmarked(one.stdout))
    assert both.stderr.startswith("palaver: Unknown ID: obs-999\nTake IDs from search results")
    assert (told.exit_code, told.stderr) == (1, "")
    assert json.loads(told.stdout) == {**answer("show", "obs-12"), "unknown": ["obs-999"]}


@pytest.mark.usefixtures("archived")
def test_a_bare_number_is_asked_back() -> None:
    """A number that an id has is told with its prefix; one that none has is unknown like any other."""
    for command in ("show", "timeline"):
        assert palaver(command, "12").stderr == "palaver: Unknown ID: 12\nDid you mean obs-12?\n"
        assert "Did you mean" not in palaver(command, "999").stderr


@pytest.mark.usefixtures("archived")
def test_an_id_of_another_kind_is_asked_back() -> None:
    """What has that number under another name is not shown as what was asked for."""
    for command in ("show", "timeline"):
        asked = palaver(command, "ex-12")
        assert (asked.exit_code, asked.stdout) == (2, "")
        assert asked.stderr == "palaver: Unknown ID: ex-12\nDid you mean obs-12?\n"


def test_a_conversation_is_read_by_any_name_that_it_has(archived: Home) -> None:
    """By its path here or at its agent's, its session's id or how that begins, and by a hit, from its line on."""
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
def test_a_session_may_be_named_by_how_its_id_begins(tmp_path: Path) -> None:
    """As for `search --session` and `forget`: six characters, or as many as only one id begins with."""
    short, whole = palaver("export", "0b6f21c4"), palaver("export", "0b6f21c4-3d0e-4f57-9a41-2c7d5e8f1a01")

    assert (short.exit_code, short.stdout_bytes) == (0, whole.stdout_bytes)
    assert palaver("export", "0b6f21c4", str(tmp_path / "out")).stdout.startswith("1 file, ")
    assert "Nothing archived is called 0b6f2" in palaver("export", "0b6f2").stderr
    assert "Nothing archived is called 0b6f21c5" in palaver("export", "0b6f21c5").stderr


@pytest.mark.usefixtures("archived")
def test_an_export_that_is_not_whole_fails(tmp_path: Path) -> None:
    """A file in the way is named, and the exit status tells a script."""
    in_the_way = tmp_path / "out" / PATH
    in_the_way.parent.mkdir(parents=True)
    in_the_way.write_bytes(b"mine")

    result = palaver("export", "--all", str(tmp_path / "out"))
    assert result.exit_code == 1
    assert f"Not exported: {in_the_way}: another file exists there, and was left alone" in result.stdout


@pytest.mark.usefixtures("archived")
@pytest.mark.parametrize("words", [(), ("--all",), ("a", "b", "c"), ("--all", "a", "b"), ("a", "--json")])
def test_what_to_export_and_where_to_is_asked_for(words: tuple[str, ...]) -> None:
    """A call that names too little or too much says what is missing."""
    result = palaver("export", *words)
    assert result.exit_code == 2
    assert "FOLDER" in result.output


def test_redact_tells_kinds_and_never_secrets(home: Path) -> None:
    """What was taken out is listed by kind and place, for people and for programs."""
    secret = "gh" + "p_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    folder = home.parent / "told"
    folder.mkdir()
    path = folder / "11111111-0000-4000-8000-000000000001.jsonl"
    place = {"sessionId": path.stem, "cwd": "/home/demo/shop", "type": "user", "uuid": "u1"}
    path.write_text(json.dumps({**place, "message": {"role": "user", "content": f"use {secret}"}}) + "\n")
    assert palaver("archive", str(folder)).exit_code == 0

    said = palaver("redact", "--report").stdout
    told = json.loads(palaver("redact", "--json").stdout)
    assert "github-pat: 1 different, 1 occurrence" in said
    assert told["kinds"] == {"github-pat": {"different": 1, "times": 1}}
    assert told["sessions"][0]["session_id"] == path.stem
    assert secret not in said + json.dumps(told)


def test_remember_takes_secrets_out_and_says_which_kinds(home: Path) -> None:
    """The kind is told in words and as a field; the secret stands in no file and in no output."""
    secret = "gh" + "p_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    said = [palaver("remember", f"deploy key is {secret}").stdout, palaver("memories", "show", "mem_1").stdout]
    told = answer("remember", f"the old key was {secret}", "--tag", secret)
    report = answer("redact")

    assert "Redacted secrets, which are not stored: github-pat" in said[0]
    assert told["secrets_removed"] == ["github-pat"]
    assert report["memories"] == {"mem_1": {"github-pat": 1}, told["memory"]["id"]: {"github-pat": 2}}
    assert "Redacted in 0 transcripts and 2 memories" in palaver("redact").stdout
    assert secret not in "".join(said) + json.dumps([told, report])
    assert not any(secret.encode() in path.read_bytes() for path in home.rglob("*") if path.is_file())


def test_an_interrupt_while_loading_is_no_traceback() -> None:
    """Ctrl-C in the first moment, while modules are imported, ends with 130 and one line, as it does later."""
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
def test_watch_says_what_its_numbers_count(as_json: bool, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In words where a person reads them; the names in JSON stay what they are."""
    teller = import_module("palaver.cli.watch")._listener(Home(home), as_json=as_json)
    teller("archived", {"files": 1, "lines": 9, "exchanges": 3})
    teller("learned", {"observed": 3, "embedded": 4, "behind": 94})
    told, complained = capsys.readouterr()

    if as_json:
        rows = [json.loads(row) for row in told.splitlines()]
        assert (rows[0]["exchanges"], rows[1]["behind"]) == (3, 94)
    else:
        assert "archived files=1 lines=9 changed_exchanges=3" in complained
        assert "learned observed=3 embedded=4 index_behind_changes=94" in complained


@pytest.mark.usefixtures("archived")
def test_a_project_can_be_named_by_the_folder_one_is_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing was said in the folder itself, it stands for the project of its name; else it is named whole."""

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
    unknown = answer("search", "sqlite", "--project", ".")["explanation"]["unknown"]
    assert [each["name"] for each in unknown] == [whole]
    assert whole in palaver("forget", "--project", ".").stderr


def test_what_is_proposed_is_found(home: Path) -> None:
    """After a history of one's own was archived, the words to search for are those of its newest title."""
    shutil.copytree(DEMO / "projects", home / ".claude" / "projects")
    [command] = [row for row in palaver("up").stdout.splitlines() if " search " in row]
    assert "WORDS" not in command
    words = shlex.split(command.partition(" search ")[2])
    assert answer("search", *words)["results"]
