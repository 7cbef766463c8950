"""`palaver resume`: the agent is started in a session, and a deleted session is restored first."""

import errno
import hashlib
import json
import os
import pty
import shlex
import shutil
import subprocess
import sys
import time
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from palaver.archiver.copies import restorer
from palaver.archiver.copies.raw_copy import RawArchive
from palaver.archiver.copies.verification import CopyCompressor
from palaver.archiver.formats.resume_commands import COMMANDS
from palaver.archiver.ingest.ingest import Ingest
from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.store import Source, Store
from palaver.cli import main
from palaver.core.conversation import Session, SessionKind
from palaver.core.errors import InvalidInput
from palaver.core.home import Home

from .archiver.formats.claude_code.claude_lines import assistant, jsonl, text, user
from .archiver.formats.container_files import database
from .archiver.formats.copilot import test_copilot as copilot
from .archiver.formats.gemini import test_gemini as gemini
from .archiver.formats.opencode import test_opencode as opencode
from .cases import for_each

SESSION = "5a1e0c9b-0000-4000-8000-000000000001"
AGENT = '#!/bin/sh\nprintf "%s\\0" "$(basename "$0")" "$PWD" "$@" > "$STARTED"\n'
"""Program that stands in for every agent. It records its name, its folder and its arguments."""


class Sandbox:
    """Claude Code's session folder with a session of two files, its project, and programs that stand in for agents."""

    def __init__(self, home: Path, root: Path) -> None:
        self.home = Home(home / "palaver")
        self.project, self.started = root / "shop", root / "started"
        self.folder = home / ".claude" / "projects" / "-shop"
        self.file = self.folder / f"{SESSION}.jsonl"
        self.subagent = self.folder / SESSION / "subagents" / "agent-a4c8.jsonl"
        self.project.mkdir()
        fields = {"sessionId": SESSION, "cwd": str(self.project)}
        self.write(self.file, user("Paint the door?", uuid="u1", **fields), assistant(text("Blue."), **fields))
        task: dict[str, Any] = {**fields, "agentId": "a4c8", "isSidechain": True}
        self.write(self.subagent, user("Find the paint", uuid="u2", **task), assistant(text("Shelf 3."), **task))
        (root / "bin").mkdir()
        for program in {command.resume[0] for command in COMMANDS.values()}:
            (root / "bin" / program).write_text(AGENT)
            (root / "bin" / program).chmod(0o700)
        self.environment = {"PATH": f"{root / 'bin'}:/usr/bin:/bin", "STARTED": str(self.started)}

    def write(self, path: Path, *records: object) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(jsonl(records))
        os.utime(path, (1_770_000_000, 1_770_000_000))

    def digests(self) -> dict[str, str]:
        """Return the SHA-256 of each file in the session folder."""
        files = (path for path in self.folder.parent.rglob("*") if path.is_file())
        return {str(path.relative_to(self.folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}

    def delete(self) -> dict[str, str]:
        """Delete the agent's files, and return their digests."""
        before = self.digests()
        shutil.rmtree(self.folder)
        return before

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `palaver` in a separate process, which an agent may replace. Standard input is not a terminal."""
        return subprocess.run(
            [sys.executable, "-m", "palaver", *arguments], env=os.environ | self.environment, capture_output=True,
            text=True, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def call(self) -> list[str]:
        """Return the name, the folder and the arguments of the agent that was started."""
        return self.started.read_text().split("\0")[:-1]


def palaver(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def archive(home: Home, folder: Path) -> None:
    with Store.create(home.database) as store:
        Ingest(store, RawArchive(home.archive)).run(in_paths([folder]))


@pytest.fixture
def sandbox(home: Path, tmp_path: Path) -> Sandbox:
    made = Sandbox(home, tmp_path)
    made.home.make()
    archive(made.home, made.folder.parent)
    return made


def test_the_agent_is_started_in_the_folder_of_the_session(sandbox: Sandbox) -> None:
    """An existing session is resumed by its full ID, and no file is changed."""
    before = sandbox.digests()
    ran = sandbox.run("resume", SESSION[:6])
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    assert sandbox.call() == ["claude", str(sandbox.project), "--resume", SESSION]
    assert sandbox.digests() == before
    assert not sandbox.home.restored.exists()


@pytest.mark.parametrize("compressed", [False, True])
def test_a_deleted_session_is_restored_byte_for_byte(sandbox: Sandbox, compressed: bool) -> None:
    """The session and its sub-agent get the same bytes, the current time, and permissions of the owner only."""
    if compressed:
        with Store.open(sandbox.home.database) as store:
            assert CopyCompressor(store, RawArchive(sandbox.home.archive)).run().compressed == 2
    before, at = sandbox.delete(), time.time()
    ran = sandbox.run("resume", SESSION, "--yes")
    assert (ran.returncode, ran.stdout) == (0, "")
    assert "Restored 2 files in the folder of claude-code" in ran.stderr
    assert sandbox.call() == ["claude", str(sandbox.project), "--resume", SESSION]
    assert sandbox.digests() == before
    for path in (sandbox.file, sandbox.subagent):
        assert at - 2 <= path.stat().st_mtime <= time.time()
        assert path.stat().st_mode & 0o777 == 0o600


def test_result_files_are_restored_with_their_session(sandbox: Sandbox) -> None:
    """`--undo` removes them too. A file that exists is not changed."""
    results = sandbox.folder / SESSION / "tool-results"
    results.mkdir()
    for name in ("b1.txt", "b2.txt"):
        (results / name).write_bytes(b"\xff" + name.encode() * 100_000)
    fields = {"sessionId": SESSION, "cwd": str(sandbox.project)}
    with sandbox.file.open("ab") as file:
        rows = [user(f"Read {results / name}", uuid=name, **fields) for name in ("b1.txt", "b2.txt")]
        file.write(jsonl(rows))
    archive(sandbox.home, sandbox.folder.parent)
    before = sandbox.delete()
    results.mkdir(parents=True)
    (results / "b2.txt").write_text("mine")

    ran = sandbox.run("resume", SESSION, "--yes")

    assert (ran.returncode, ran.stdout) == (0, "")
    assert "Restored 3 files" in ran.stderr
    assert (results / "b2.txt").read_text() == "mine"
    after = sandbox.digests()
    assert {name: digest for name, digest in after.items() if not name.endswith("b2.txt")} == {
        name: digest for name, digest in before.items() if not name.endswith("b2.txt")
    }
    palaver("resume", SESSION, "--undo")
    assert sandbox.digests().keys() == {f"{SESSION}/tool-results/b2.txt"}


def test_a_restored_session_is_not_archived_twice(sandbox: Sandbox) -> None:
    """The next run adds only what the agent appends to a restored file."""
    sandbox.delete()
    sandbox.run("resume", SESSION, "--yes")
    archive(sandbox.home, sandbox.folder.parent)
    with Store.open(sandbox.home.database) as store:
        assert (len(store.sources.all()), len(store.items.all_keys())) == (2, 2)
    with sandbox.file.open("ab") as file:
        file.write(jsonl([user("And the window?", uuid="u3", sessionId=SESSION, cwd=str(sandbox.project))]))
    archive(sandbox.home, sandbox.folder.parent)
    with Store.open(sandbox.home.database) as store:
        assert (len(store.sources.all()), len(store.items.all_keys())) == (2, 3)


def test_print_shows_a_line_for_the_shell_and_restores_nothing(sandbox: Sandbox) -> None:
    """The line is quoted, and the JSON has the arguments."""
    line = f"cd {shlex.quote(str(sandbox.project))} && claude --resume {SESSION}\n"
    assert palaver("resume", SESSION, "--print").stdout == line
    sandbox.delete()
    printed = palaver("resume", SESSION, "--print")
    assert printed.stdout == line
    assert "The agent has deleted this session" in printed.stderr
    shown = json.loads(palaver("resume", SESSION, "--json").stdout)
    assert shown == {
        "command": ["claude", "--resume", SESSION], "folder": str(sandbox.project), "line": line.strip(),
        "missing_files": 2,
    }  # fmt: skip
    assert not sandbox.folder.exists()


def test_lists_and_details_contain_the_line(sandbox: Sandbox) -> None:
    """The line of a deleted session is `palaver resume`, and a sub-agent has none."""
    line = f"cd {sandbox.project} && claude --resume {SESSION}"
    assert f"\nResume: {line}\n" in palaver("show", SESSION).stdout
    lines = {one["kind"]: one["resume"] for one in json.loads(palaver("sessions", "--json").stdout)["sessions"]}
    assert lines == {"main": line, "subagent": ""}
    sandbox.delete()
    assert "\nResume: palaver resume 5a1e\n" in palaver("show", SESSION).stdout


# Refusals


def refused(sandbox: Sandbox, *arguments: str, code: int = 2) -> str:
    """Run a command that fails, and return its message. Assert that it neither starts an agent nor restores a file."""
    before = sandbox.digests()
    ran = sandbox.run("resume", *arguments)
    assert (ran.returncode, ran.stdout) == (code, ""), ran
    assert not sandbox.started.exists()
    assert sandbox.digests() == before
    assert not sandbox.home.restored.exists()
    return ran.stderr


def test_nothing_is_restored_without_a_question(sandbox: Sandbox) -> None:
    """Without a terminal, the command needs --yes."""
    sandbox.delete()
    message = refused(sandbox, SESSION)
    assert "there is no terminal to ask whether to restore it" in message
    assert "Add --yes" in message


@pytest.mark.parametrize("erase", [(), ("--erase",)])
def test_a_session_with_deleted_lines_is_not_restored(sandbox: Sandbox, erase: tuple[str, ...]) -> None:
    """Neither a forgotten nor an erased line returns to the agent's folder."""
    with sandbox.file.open("ab") as file:
        file.write(jsonl([user("My PIN is 4711", uuid="u3", sessionId=SESSION, cwd=str(sandbox.project))]))
    archive(sandbox.home, sandbox.folder.parent)
    token = json.loads(palaver("forget", "--mentions", "PIN", *erase, "--json").stdout)["token"]
    assert palaver("forget", "--mentions", "PIN", *erase, "--confirm", token).exit_code == 0
    sandbox.delete()
    assert "some of its lines were deleted from the archive" in refused(sandbox, SESSION, "--yes", code=1)


def test_a_copy_that_differs_from_the_original_is_not_restored(sandbox: Sandbox) -> None:
    """A copy with masked bytes has other digests than the file that the agent wrote."""
    with Store.open(sandbox.home.database) as store:
        source = next(source for source in store.sources.all() if source.path == sandbox.file)
        copy = sandbox.home.archive / source.archived
        copy.write_bytes(copy.read_bytes().replace(b"Blue.", b"*****"))
        assert source.id is not None
        store.sources.save_checksums(source.id)
    sandbox.delete()
    assert "its copy differs from the file that the agent wrote" in refused(sandbox, SESSION, "--yes", code=1)


def test_a_damaged_file_prevents_the_whole_restoration(sandbox: Sandbox) -> None:
    """If the copy of a sub-agent is damaged, the session is not restored either."""
    with Store.open(sandbox.home.database) as store:
        source = next(source for source in store.sources.all() if source.path == sandbox.subagent)
        (sandbox.home.archive / source.archived).write_bytes(b"damaged")
    sandbox.delete()
    assert source.archived in refused(sandbox, SESSION, "--yes", code=1)


def test_a_file_outside_the_folder_of_the_agent_is_not_restored(sandbox: Sandbox, tmp_path: Path) -> None:
    """A transcript that was archived from another folder does not return there."""
    other = tmp_path / "other" / f"{SESSION.replace('5a1e', '6b2f')}.jsonl"
    sandbox.write(other, user("Elsewhere?", uuid="u9", sessionId=other.stem, cwd=str(sandbox.project)))
    archive(sandbox.home, other.parent)
    shutil.rmtree(other.parent)
    assert "is not in a session folder of claude-code" in refused(sandbox, other.stem, "--yes", code=1)
    assert not other.parent.exists()


def test_a_link_does_not_lead_out_of_the_folder_of_the_agent(sandbox: Sandbox, tmp_path: Path) -> None:
    """If the project's session folder became a link, nothing is written to its target."""
    sandbox.delete()
    (tmp_path / "target").mkdir()
    sandbox.folder.symlink_to(tmp_path / "target")
    assert "is not in a session folder of claude-code" in refused(sandbox, SESSION, "--yes", code=1)
    assert list((tmp_path / "target").iterdir()) == []


def test_a_file_system_without_hard_links_is_reported(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without hard links, a file could be replaced, so nothing is restored."""
    sandbox.delete()
    before = sandbox.digests()

    def link(source: str, target: Path) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM), source, None, str(target))

    monkeypatch.setattr(os, "link", link)
    monkeypatch.setenv("PATH", sandbox.environment["PATH"])

    ran = palaver("resume", SESSION, "--yes")

    assert "cannot be linked: Operation not permitted" in ran.stderr
    assert sandbox.digests() == before


def test_a_file_that_appears_meanwhile_is_not_replaced(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the agent writes the file during the restoration, its file stays, and no other file is restored."""
    sandbox.delete()
    sandbox.write(sandbox.subagent, "new")
    new = sandbox.digests()

    def exists(_source: Source) -> bool:
        return False

    monkeypatch.setattr(restorer, "_exists", exists)
    monkeypatch.setenv("PATH", sandbox.environment["PATH"])
    ran = palaver("resume", SESSION, "--yes")
    assert (ran.exit_code, ran.stderr.splitlines()[0]) == (
        1, f"palaver: {sandbox.subagent}: a file exists at this path and was not changed",
    )  # fmt: skip
    assert sandbox.digests() == new


def test_a_moved_project_needs_its_new_folder(sandbox: Sandbox, tmp_path: Path) -> None:
    """In another folder, Claude Code gets the path of the session's file, because it does not find the ID there."""
    before, moved = sandbox.delete(), tmp_path / "moved shop"
    sandbox.project.rename(moved)
    message = refused(sandbox, SESSION, "--yes")
    assert f"The folder of the session does not exist: {sandbox.project}" in message
    assert "--folder DIR" in message
    assert sandbox.run("resume", SESSION, "--yes", "--folder", str(moved)).returncode == 0
    assert sandbox.call() == ["claude", str(moved), "--resume", str(sandbox.file)]
    assert sandbox.digests() == before


def test_an_agent_that_needs_its_folder_is_not_started_in_another(
    sandbox: Sandbox, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gemini CLI finds a session only in its own project."""
    monkeypatch.setenv("GEMINI_CLI_HOME", str(home))
    chats = home / ".gemini" / "tmp" / "shop" / "chats"
    path = chats / "session-2026-03-01T10-00-f7633853.jsonl"
    sandbox.write(path, gemini.HEADER, gemini.user(1, "Paint?"), gemini.model(2, "Blue."))
    (chats.parent / ".project_root").write_text(str(sandbox.project))
    archive(sandbox.home, home / ".gemini")
    before = path.read_bytes()
    path.unlink()
    sandbox.project.rename(tmp_path / "moved")
    message = refused(sandbox, gemini.SESSION, "--yes", "--folder", str(tmp_path / "moved"))
    assert "gemini cannot resume this session in another folder" in message

    (tmp_path / "moved").rename(sandbox.project)
    assert sandbox.run("resume", gemini.SESSION, "--yes").returncode == 0
    assert sandbox.call() == ["gemini", str(sandbox.project), "--resume", gemini.SESSION]
    assert path.read_bytes() == before


def test_a_session_in_several_files_gets_a_brief(sandbox: Sandbox, home: Path) -> None:
    """Copilot keeps a session in a folder of files, so a deleted one is not restored but described."""
    folder = home / ".copilot" / "session-state" / copilot.SESSION
    started = copilot.started(cwd=str(sandbox.project))
    sandbox.write(folder / "events.jsonl", started, copilot.user("Paint the fence?"), copilot.assistant("Green."))
    archive(sandbox.home, home / ".copilot")
    assert sandbox.run("resume", copilot.SESSION).returncode == 0
    assert sandbox.call() == ["copilot", str(sandbox.project), f"--resume={copilot.SESSION}"]
    sandbox.started.unlink()

    shutil.rmtree(folder)
    assert "copilot has deleted this session" in refused(sandbox, copilot.SESSION, "--print")
    ran = sandbox.run("resume", copilot.SESSION, "--yes")
    assert (ran.returncode, sandbox.started.exists(), folder.exists()) == (0, False, False)
    assert "Paint the fence?" in ran.stdout
    assert f"palaver handoff {copilot.SESSION} --to AGENT" in ran.stderr


def test_a_session_in_a_database_gets_a_brief_if_the_database_is_gone(sandbox: Sandbox, home: Path) -> None:
    """OpenCode resumes a session of its database. Palaver does not restore the database."""
    path, native_id = home / ".local" / "share" / "opencode" / "opencode.db", "ses_0a1B2c3D4"
    with closing(database(path, opencode.SCHEMA)) as program:
        opencode.put(program, {**opencode.SESSION, "id": native_id, "directory": str(sandbox.project)})
    archive(sandbox.home, path.parent)
    assert sandbox.run("resume", native_id).returncode == 0
    assert sandbox.call() == ["opencode", str(sandbox.project), "--session", native_id]
    sandbox.started.unlink()

    shutil.rmtree(path.parent)
    ran = sandbox.run("resume", native_id, "--yes")
    assert (ran.returncode, sandbox.started.exists(), path.parent.exists()) == (0, False, False)
    assert "opencode has deleted this session, and it is not stored in one file" in ran.stderr
    assert "## Goal" in ran.stdout


def test_other_sessions_are_refused(sandbox: Sandbox) -> None:
    """The session of a sub-agent, an unknown session and a missing program are errors with a next step."""
    assert f"palaver resume {SESSION}" in refused(sandbox, "agent-a4c8")
    assert "Unknown ID: ffff" in refused(sandbox, "ffff")
    sandbox.delete()
    sandbox.environment["PATH"] = "/usr/bin:/bin"
    assert "claude is not installed, or not on PATH" in refused(sandbox, SESSION, "--yes")


def test_a_read_only_home_restores_nothing(sandbox: Sandbox) -> None:
    """In read-only mode, an existing session can be resumed, but a deleted one cannot be restored."""
    sandbox.environment["PALAVER_READ_ONLY"] = "1"
    assert sandbox.run("resume", SESSION).returncode == 0
    sandbox.started.unlink()
    sandbox.delete()
    assert "is read-only" in refused(sandbox, SESSION, "--yes", code=1)
    assert "is read-only" in refused(sandbox, SESSION, "--undo", code=1)


# Undo


def test_undo_removes_the_restored_files(sandbox: Sandbox) -> None:
    """Undo removes the files that were restored, and only once."""
    sandbox.delete()
    sandbox.run("resume", SESSION, "--yes")
    undone = palaver("resume", SESSION, "--undo")
    removed = {f"Removed: {sandbox.file}", f"Removed: {sandbox.subagent}"}
    assert set(undone.stdout.splitlines()) == removed
    assert sandbox.digests() == {}
    again = palaver("resume", SESSION, "--undo")
    assert (again.exit_code, again.stderr.splitlines()[0]) == (2, "palaver: No file of this session was restored")
    assert sandbox.run("resume", SESSION, "--yes").returncode == 0
    assert len(sandbox.digests()) == 2


def test_undo_keeps_a_session_that_was_continued(sandbox: Sandbox) -> None:
    """If a restored file grew, or was never restored, nothing is removed."""
    assert palaver("resume", SESSION, "--undo").exit_code == 2
    sandbox.delete()
    sandbox.run("resume", SESSION, "--yes")
    with sandbox.file.open("ab") as file:
        file.write(b"{}\n")
    before = sandbox.digests()
    undone = palaver("resume", SESSION, "--undo")
    assert (undone.exit_code, undone.stdout) == (2, "")
    assert f"{sandbox.file} has changed since it was restored" in undone.stderr
    assert sandbox.digests() == before


# Questions


def at_a_terminal(sandbox: Sandbox, typed: str) -> str:
    """Run `palaver resume` at a terminal, type an answer, and return the output."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "palaver", "resume", SESSION], env=os.environ | sandbox.environment, stdin=theirs,
        stdout=theirs, stderr=theirs, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    with os.fdopen(ours, "r+b", buffering=0) as screen:
        screen.write(typed.encode())
        try:
            while piece := screen.read(4096):
                shown += piece
        except OSError:
            pass  # On Linux, reading fails when the program has ended.
    process.wait()
    return shown.decode()


def test_the_user_is_asked_before_files_are_restored(sandbox: Sandbox) -> None:
    """The answer no restores nothing, and the answer yes restores the session and starts the agent."""
    before = sandbox.delete()
    shown = at_a_terminal(sandbox, "n\n")
    assert "The archive has 2 files of it" in shown
    assert str(sandbox.file) in "".join(shown.split())
    assert (sandbox.digests(), sandbox.started.exists()) == ({}, False)
    at_a_terminal(sandbox, "y\n")
    assert (sandbox.digests(), sandbox.call()[0]) == (before, "claude")


def test_the_user_is_asked_for_the_folder_of_a_moved_project(sandbox: Sandbox, tmp_path: Path) -> None:
    """At a terminal, the new folder can be typed."""
    sandbox.project.rename(tmp_path / "moved")
    at_a_terminal(sandbox, f"{tmp_path / 'moved'}\n")
    assert sandbox.call() == ["claude", str(tmp_path / "moved"), "--resume", str(sandbox.file)]


# The table


@pytest.mark.parametrize(
    ("agent", "native_id", "path", "arguments"),
    [
        ("claude-code", SESSION, "/x", ["claude", "--resume", SESSION]),
        ("codex", SESSION, "/x", ["codex", "resume", SESSION]),
        ("copilot", SESSION, "/x", ["copilot", f"--resume={SESSION}"]),
        ("crush", SESSION, "/crush.db/x", ["crush", "--session", SESSION]),
        ("cursor", SESSION, "/chats/1/2/store.db/x.jsonl", ["cursor-agent", f"--resume={SESSION}"]),
        ("droid", SESSION, "/x", ["droid", "--resume", SESSION]),
        ("gemini", SESSION, "/x", ["gemini", "--resume", SESSION]),
        ("goose", "20260301_1", "/sessions.db/x", ["goose", "session", "--resume", "--session-id", "20260301_1"]),
        ("gptme", "2026-03-01-a-b", "/x", ["gptme", "--name", "2026-03-01-a-b"]),
        (
            "junie",
            "session-260301-100000-ab12",
            "/x",
            ["junie", "--resume", "--session-id", "session-260301-100000-ab12"],
        ),
        ("kiro", SESSION, "/cli/x.jsonl", ["kiro-cli", "chat", "--resume-id", SESSION]),
        ("grok", SESSION, "/x", ["grok", "--resume", SESSION]),
        ("hermes", "20260301_100000_ab12cd", "/state.db/x", ["hermes", "--resume", "20260301_100000_ab12cd"]),
        ("opencode", "ses_0a1B2c3D4", "/x", ["opencode", "--session", "ses_0a1B2c3D4"]),
        ("openhands", SESSION, "/base_state.json/x", ["openhands", "--resume", SESSION]),
        ("openhands", "0c" * 16, "/base_state.json/x", ["openhands", "--resume", "0c" * 16]),
        ("pi", SESSION, "/x", ["pi", "--session", SESSION]),
        ("qwen-code", SESSION, "/x", ["qwen", "--resume", SESSION]),
        ("vibe", SESSION, "/x", ["vibe", "--resume", SESSION]),
    ],
)
def test_each_agent_has_its_own_option(agent: str, native_id: str, path: str, arguments: list[str]) -> None:
    """Each agent gets its ID as one argument."""
    session, command = Session(agent, native_id, cwd="/code"), COMMANDS[agent]
    assert command.can_resume(session, Path(path))
    assert command.arguments(session, Path(path), Path("/code")) == arguments
    assert not command.prompted or command.arguments_with("-x {id}")[-1] == "-x {id}"


@for_each(
    "agent, native_id",
    product(COMMANDS, ["--help", "", f"{SESSION}\n", f"{SESSION} -p", "$(reboot)", "../x", "ses_;ls"]),
)
def test_an_invalid_id_reaches_no_agent(agent: str, native_id: str) -> None:
    """An ID that an agent cannot have made is refused, whatever a transcript says."""
    assert not COMMANDS[agent].can_resume(Session(agent, native_id), Path("/chats/store.db/x"))


def test_only_sessions_of_the_command_line_can_be_resumed() -> None:
    """Cursor's command line does not know the conversations of its editor, and no agent resumes a sub-agent."""
    assert not COMMANDS["cursor"].can_resume(Session("cursor", SESSION), Path("/User/state.vscdb/x"))
    assert not COMMANDS["codex"].can_resume(Session("codex", SESSION, SessionKind.SUBAGENT), Path("/x"))


def test_a_session_without_conversation_has_no_source(sandbox: Sandbox) -> None:
    """A session whose exchanges are all gone is an error, not a crash."""
    with Store.open(sandbox.home.database) as store:
        number = store.sessions.save(Session("claude-code", SESSION.replace("5a1e", "7c3d")))
        with pytest.raises(InvalidInput, match="no conversation"):
            restorer.SessionRestorer(sandbox.home, store, number).source()


def test_the_record_names_no_path_of_the_agent(sandbox: Sandbox) -> None:
    """The record has archive paths, sizes and digests, because paths of agents can contain secrets."""
    sandbox.delete()
    sandbox.run("resume", SESSION, "--yes")
    recorded = json.loads(sandbox.home.restored.read_text())
    assert [(file["agent"], file["session_id"], len(file["sha256"])) for file in recorded] == [
        ("claude-code", SESSION, 64)
    ] * 2
    assert str(sandbox.folder) not in sandbox.home.restored.read_text()
