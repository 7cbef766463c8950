"""`palaver read --budget` and the names that `read` accepts."""

import json
import os
import pty
import re
import subprocess
import sys
import termios
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from palaver.archiver.ingest.transcripts import in_paths
from palaver.cli import main
from palaver.core.home import DEMO, Home
from palaver.core.tokens import count
from palaver.observe.pipeline import Pipeline

from . import demo
from .archiver.formats.claude_code.claude_lines import assistant, jsonl, result, text, tool, user

SESSION = "22222222-0000-4000-8000-000000000002"
TEXT = "The lock is shaded until the sun sets behind the harbour wall. " * 60


def palaver(*arguments: str, code: int = 0) -> Result:
    reply = CliRunner().invoke(main, arguments)
    assert reply.exit_code == code, reply.output
    return reply


@pytest.fixture
def long_session(home: Path) -> str:
    """Archive a session of about 50,000 tokens and return its ID."""
    path = home / "more" / "-code-shop" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    rows = [user("Is it late?", uuid="u0", cwd="/code/shop")]
    for number in range(40):
        rows += [
            assistant(tool("Bash", {"command": "make test"}, id=f"t{number}"), uuid=f"a{number}", id=f"m{number}"),
            {**result(TEXT, id=f"t{number}"), "uuid": f"r{number}"},
            assistant(text(f"{number}. {TEXT}"), uuid=f"b{number}", id=f"n{number}"),
        ]
    path.write_bytes(jsonl(rows))
    with Pipeline(Home(home / "palaver")) as pipeline:
        pipeline.run(in_paths([home / "more"]))
    return SESSION


def test_a_larger_budget_reads_more(long_session: str) -> None:
    """`--budget` is the only limit of a page: a page is filled, and a whole session fits a budget of its size."""
    for budget in (2_000, 10_000, 25_000):
        page = palaver("read", long_session, "--budget", str(budget)).stdout
        assert re.search("Truncated: continue with", page)
        assert budget * 0.7 < count(page) <= budget

    page = palaver("read", long_session, "--budget", "200000").stdout
    assert "Truncated" not in page
    assert "shortened" not in page
    assert page.count(TEXT.strip()) == 80


def test_a_larger_budget_reads_more_in_json(long_session: str) -> None:
    """The same holds for JSON."""
    some, every = (
        json.loads(palaver("read", long_session, "--budget", budget, "--json").stdout) for budget in ("30000", "200000")
    )
    assert 20_000 < some["tokens"] <= 30_000
    assert some["next_line"] is not None
    assert every["next_line"] is None


@pytest.fixture
def archived(home: Path, tmp_path: Path) -> Home:
    """Return the archived demo data with two more sessions whose IDs begin alike."""
    for number in range(2):
        path = tmp_path / "projects" / "-code-shop" / f"3333333{number}-0000-4000-8000-000000000003.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(jsonl([user("Is it late?", uuid=f"u{number}", cwd="/code/shop")]))
    with Pipeline(Home(home / "palaver")) as pipeline:
        pipeline.run(in_paths([tmp_path / "projects", DEMO]))
    return Home(home / "palaver")


@pytest.mark.parametrize("command", [("read",), ("show",), ("timeline",), ("export", "FOLDER"), ("forget",)])
@pytest.mark.parametrize("wanted", ["0b6f21c5", "0b6", "0b6f21c4-3d0e-4f57-9a41-2c7d5e8f1a02"])
@pytest.mark.usefixtures("archived")
def test_a_wrong_session_id_shows_similar_sessions(tmp_path: Path, command: tuple[str, ...], wanted: str) -> None:
    """An ID with a typo, or that is too short, shows the session that it could mean, with project and date."""
    name, *others = command
    reply = palaver(name, wanted, *(str(tmp_path / each) for each in others), code=2)
    assert "Did you mean 0b6f21c4-3d0e-4f57-9a41-2c7d5e8f1a01 (tide-clock, 2026-02-03)?" in reply.stderr


@pytest.mark.parametrize("command", [("read",), ("show",), ("timeline",), ("export", "FOLDER"), ("forget",)])
@pytest.mark.usefixtures("archived")
def test_an_ambiguous_session_id_shows_the_sessions(tmp_path: Path, command: tuple[str, ...]) -> None:
    """The beginning of several session IDs shows these sessions."""
    name, *others = command
    reply = palaver(name, "3333333", *(str(tmp_path / each) for each in others), code=2)
    assert "2 session IDs begin with 3333333\nGive more characters of the ID: 33333330-0000" in reply.stderr
    assert " (shop, 2026-03-01) or 33333331-0000-4000-8000-000000000003 (shop, 2026-03-01)." in reply.stderr


@pytest.mark.usefixtures("archived")
def test_an_id_like_no_session_shows_no_session() -> None:
    """An ID that resembles no session shows where IDs come from."""
    for command in ("show", "timeline"):
        for unknown in ("zzzqqqq", "obs-zzz", "ex_3333333"):
            assert "Did you mean" not in palaver(command, unknown, code=2).stderr
    reply = palaver("read", "zzzqqqq", code=2).stderr
    assert "Did you mean" not in reply
    assert "Use an ID from search results, a path" in reply


def test_every_command_shows_the_same_title_of_a_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The title of a session is that of its summary in every command."""
    monkeypatch.setenv("PALAVER_HOME", str(demo.archived(tmp_path).root))
    session, title = "0b6f", "Keep tide readings in SQLite"

    for words in (("show", session), ("read", session), ("forget", session), ("timeline", session), ("sessions",)):
        assert title in palaver(*words).stdout, words
    found = json.loads(palaver("search", "--in", "output", "sqlite", "--session", session, "--json").stdout)
    assert {match["session_title"] for match in found["matches"]} == {title}


def at_a_terminal(*arguments: str, lines: int, pager: str) -> str:
    """Return what a command prints at a terminal of 80 columns, without styles."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (lines, 80))
    environment = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES"}}
    environment |= {"PAGER": pager, "TERM": "xterm"}
    command = [sys.executable, "-m", "palaver", *arguments]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, env=environment) as process:
        os.close(theirs)
        shown = b""
        with os.fdopen(ours, "rb", buffering=0) as screen, suppress(OSError):
            while piece := screen.read(4096):
                shown += piece
    assert process.returncode == 0
    return re.sub(r"\x1b\[[\d;]*m", "", shown.decode().replace("\r\n", "\n"))


@pytest.fixture
def demo_session(built: Home, monkeypatch: pytest.MonkeyPatch) -> str:
    """Use the archived demo data, and return the ID of one of its sessions."""
    monkeypatch.setenv("PALAVER_HOME", str(built.root))
    return "1c90"


def test_a_long_page_opens_in_a_pager_at_a_terminal(demo_session: str) -> None:
    """A page that is longer than the screen opens in `PAGER`, without marks and with whole words. Others do not."""
    paged = at_a_terminal("read", demo_session, lines=24, pager="sed s/^/|/")
    whole = at_a_terminal("read", demo_session, lines=2_000, pager="sed s/^/|/")

    assert {row[:1] for row in paged.splitlines()} == {"|"}
    assert not any(row.startswith("|") for row in whole.splitlines())
    assert paged.replace("\n|", "\n").removeprefix("|").split() == whole.split()
    assert "recalled-" not in whole
    assert all(len(row) <= 80 or " " not in row.strip() for row in whole.splitlines() if row.isascii())


def test_plain_output_has_no_marks(demo_session: str) -> None:
    """In a pipe, agents get marks around quoted text, and people get none with --plain, in every command."""
    for words in (("read", demo_session), ("search", "tide"), ("sessions",), ("memories", "list"), ("context",)):
        help_text = palaver(*words[:2] if words[0] == "memories" else words[:1], "--help").stdout
        assert "--plain" in help_text
        assert "remove the marks" in " ".join(help_text.split())
    for words in (("read", demo_session), ("search", "tide"), ("sessions",), ("projects",)):
        marked, plain = palaver(*words).stdout, palaver(*words, "--plain").stdout
        assert "<recalled-" in marked
        assert "recalled-" not in plain
        assert "\x1b" not in plain
        assert len(plain.splitlines()) == len(marked.splitlines()) - 2


@pytest.mark.parametrize("worktree_first", [True, False])
def test_a_session_in_two_folders_is_shown_in_order_of_time(home: Path, tmp_path: Path, worktree_first: bool) -> None:
    """An agent that changes its folder continues a session in another file. The timeline and `read` show all parts."""
    main_folder = {"sessionId": SESSION, "cwd": "/code/kiln", "gitBranch": "main"}
    worktree = {"sessionId": SESSION, "cwd": "/code/kiln/.claude/worktrees/glaze", "gitBranch": "glaze"}
    asked = (("Plan the glaze", 9, main_folder), ("Mix the glaze", 10, worktree), ("Merge the glaze", 11, main_folder))
    for name, place in sorted({"-code-kiln": main_folder, "-code-kiln-w": worktree}.items(), reverse=worktree_first):
        path = tmp_path / "projects" / name / f"{SESSION}.jsonl"
        path.parent.mkdir(parents=True)
        lines = list[object]()
        for prompt, hour, at in asked:
            stamp = {"timestamp": f"2026-05-04T{hour:02}:00:00Z", **place}
            reply = assistant(text("Done. " * 200), id=f"m{hour}", uuid=f"a{hour}", **stamp)
            lines += [user(prompt, uuid=f"u{hour}", **stamp), reply] if at is place else []
        path.write_bytes(jsonl(lines))
        with Pipeline(Home(home / "palaver")) as pipeline:
            pipeline.run(in_paths([tmp_path / "projects"]))

    for words in (("timeline", SESSION), ("read", SESSION)):
        page = palaver(*words).stdout
        shown = re.findall("(?:^|exchange )((?:Plan|Mix|Merge) the glaze)$", page, re.MULTILINE)
        assert shown == [prompt for prompt, *_ in asked], words
    assert "3 exchanges, branch main" in palaver("sessions").stdout
    assert "# Directory: /code/kiln\n" in page
    assert page.count("# Title: Plan the glaze\n") == 3
    assert palaver("read", SESSION, "--raw").stdout.count("\n") == 6

    short = palaver("read", SESSION, "--budget", "500").stdout
    assert short.count("# Title: ") == 1
    assert re.findall("Next part: palaver read .*/-code-(.*)/.* (.*)", short) == [("kiln-w", "1-"), ("kiln", "3-")]


@pytest.fixture
def _two_branches(home: Path, tmp_path: Path) -> None:
    """Archive a session of two exchanges, each on another branch."""
    path = tmp_path / "projects" / "-code-kiln" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    asked = (("Fire the kiln", "main"), ("Cool the kiln", "next"))
    path.write_bytes(
        jsonl([user(prompt, uuid=branch, sessionId=SESSION, gitBranch=branch) for prompt, branch in asked])
    )
    with Pipeline(Home(home / "palaver")) as pipeline:
        pipeline.run(in_paths([tmp_path / "projects"]))


@pytest.mark.usefixtures("_two_branches")
def test_read_names_the_branches_of_the_lines_shown() -> None:
    """The branch above a conversation is that of its exchanges, as in the details of a hit."""
    assert "# Branch: main, next\n" in palaver("read", SESSION).stdout
    assert "# Branch: next\n" in palaver("read", SESSION, "2").stdout


@pytest.mark.usefixtures("_two_branches")
def test_deleted_lines_are_said_to_be_deleted() -> None:
    """Lines that the user deleted differ from lines without a conversation."""
    lines = f"{SESSION}:1-1"
    palaver("forget", lines, "--confirm", json.loads(palaver("forget", lines, "--json").stdout)["token"])

    assert "These lines were deleted." in palaver("read", SESSION, "1").stdout
