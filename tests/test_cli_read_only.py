"""With PALAVER_READ_ONLY=1, every command changes no byte of the home or refuses, and a read-only disk can be read."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from palaver.archiver.store import Store
from palaver.cli import main
from palaver.cli.commands import READING, WRITING
from palaver.core.home import Home

from . import demo
from .commands import LEAVES
from .unprivileged import let_read, let_write, start

ARGUMENTS = {
    "ask": ("what", "time", "--no-model"),
    "blame": ("{files}/script.py",),
    "completion": ("bash",),
    "documents add": ("{files}",),
    "documents remove": ("{files}",),
    "export": ("--all", "{files}/export"),
    "fix": ("ENOENT",),
    "forget": ("obs-20",),
    "hooks run": ("session-start",),
    "handoff": ("0b6f",),
    "how": ("make", "test"),
    "index": ("--once", "{files}"),
    "install --print": ("claude-code",),
    "memories edit": ("{memory}",),
    "memories graph": ("{memory}",),
    "memories history": ("{memory}",),
    "memories review --approve": ("{memory}",),
    "memories review --decline": ("{memory}",),
    "memories show": ("{memory}",),
    "memories undo": ("{memory}",),
    "mnemonics allow": ("{files}",),
    "mnemonics disallow": ("{files}",),
    "model use": ("packaged",),
    "read": ("obs-20",),
    "recall": ("SQLite",),
    "remember": ("Use SQLite",),
    "resume": ("0b6f", "--print", "--folder", "{files}"),
    "resume --undo": ("0b6f",),
    "share": ("0b6f", "--yes", "--to", "{files}/shared.html"),
    "search": ("SQLite",),
    "session pin": ("0b6f",),
    "session rename": ("0b6f",),
    "session tag": ("0b6f", "later"),
    "show": ("obs-20", "{memory}"),
    "timeline": ("obs-20",),
    "team join": ("http://127.0.0.1:9", "CODE"),
    "team share": ("shop",),
    "team unshare": ("shop",),
}
"""Arguments of commands that require some."""
SERVERS = {"mcp", "view"}
"""Commands that do not end. `tests/agents/test_read_only.py` tests them."""
OF_TEAMS = {use for use in READING if use.startswith("team ")}
"""Commands that need a team or its database. `tests/team` tests them."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Return a home with transcripts, memories, a backup and an index."""
    made = demo.remembering(tmp_path_factory.mktemp("read-only"))
    with Store.open(made.database) as store:
        store.back_up()
    let_write(made.root)  # Only the owner has permissions, as the commands would create the files.
    return made


def contents(root: Path) -> dict[str, str]:
    """Return the modification time and the SHA-256 of each file, and the modification time of each folder."""
    return {
        str(path.relative_to(root)): f"{path.stat().st_mtime_ns} "
        + (hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "")
        for path in (root, *root.rglob("*"))
    }


def memory_id() -> str:
    """Return the ID of the newest memory."""
    listed = json.loads(CliRunner().invoke(main, ["memories", "list", "--json"]).stdout)
    return str(listed["memories"][0]["id"])


def words_of(use: str, files: Path) -> list[str]:
    """Return the arguments for a use of a command, such as `fsck --repair`."""
    arguments = [text.format(files=files, memory=memory_id()) for text in ARGUMENTS.get(use, ())]
    return [*use.split(), *arguments]


def test_every_command_is_declared() -> None:
    """Each command reads or writes, and each declared option exists."""
    plain = {use for use in READING | WRITING if "--" not in use}
    assert plain == {" ".join(words) for words in LEAVES}
    assert not READING & WRITING
    for use in READING | WRITING:
        path, _, option = use.partition(" --")
        options = {name for each in LEAVES[tuple(path.split())].params for name in each.opts}
        assert not option or f"--{option}" in options, use


def test_no_command_changes_a_byte(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In read-only mode, commands that read succeed, commands that write are refused, and the home stays the same."""
    monkeypatch.setenv("PALAVER_HOME", str(home.root))
    monkeypatch.setenv("PALAVER_READ_ONLY", "1")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text("print(1)\n")
    before, failures = contents(home.root), list[str]()
    for use in sorted(READING | WRITING):
        if use in SERVERS | OF_TEAMS:
            continue
        result = CliRunner().invoke(main, words_of(use, tmp_path))
        refused = "PALAVER_READ_ONLY" in result.stderr and result.exit_code == 1
        if refused is not (use in WRITING) or (use in READING and result.exit_code):
            failures.append(f"{use}: {result.exit_code} {result.output[-300:]}")
        if contents(home.root) != before:
            failures.append(f"{use} changed the home")
            before = contents(home.root)

    assert failures == []


READER = """
import json, sys
from click.testing import CliRunner
from palaver.cli import main

for words in sys.stdin.read().splitlines():
    result = CliRunner().invoke(main, words.split())
    print(json.dumps([words, result.exit_code, result.output]), flush=True)
"""


def check_reading(folder: Path, home: Home, hint: str) -> None:
    """Check that a process that cannot write to the home can read and verify it, and is refused to write."""
    reading = ["fsck", "search SQLite", "recall SQLite", "read obs-20", "context", "status", "stats", "memories list"]
    commands = [*reading, "sessions", f"export --all {folder / 'export'}", "doctor --deep", "remember fact"]
    with start(READER, PALAVER_HOME=str(home.root)) as process:
        rows = process.communicate("\n".join(commands))[0].splitlines()
    found = {words: (code, output) for words, code, output in map(json.loads, rows)}

    assert "No problems found" in found["fsck"][1]
    assert {words: code for words, (code, _) in found.items() if code} == {"doctor --deep": 1, "remember fact": 1}
    assert "is read-only. Search works" in found["doctor --deep"][1]
    assert found["doctor --deep"][1].count("\n- ") == 1
    assert "is read-only, and" in found["remember fact"][1]
    assert hint in found["remember fact"][1]


def test_the_module_refuses_to_write_as_the_command_does(home: Home, tmp_path: Path) -> None:
    """`python -m palaver` refuses a command that writes, also a subcommand, before it starts."""
    environment = os.environ | {"PALAVER_HOME": str(home.root), "PALAVER_READ_ONLY": "1", "HOME": str(tmp_path)}
    for arguments in (("remember", "Use SQLite"), ("memories", "undo", "mem_1")):
        command = [sys.executable, "-m", "palaver", *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)

        assert done.returncode == 1
        assert f"`palaver {' '.join(arguments[:-1])}` has to write" in done.stderr


def test_a_home_without_write_permission_can_be_read_and_verified(home: Home, tmp_path: Path) -> None:
    """Every byte stays the same for a process without write permission."""
    copied = Home(tmp_path / "copied")
    shutil.copytree(home.root, copied.root)
    let_read(copied.root)
    before = contents(copied.root)

    check_reading(tmp_path, copied, "chmod")
    assert contents(copied.root) == before
    let_write(copied.root)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system in memory. Skip the test without permission to mount."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", folder], check=False).returncode:
        pytest.skip("needs the right to mount")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_home_on_a_read_only_disk_can_be_read_and_verified(home: Home, tmp_path: Path, disk: Path) -> None:
    """A home on a disk that is mounted read-only can be searched, exported and verified."""
    copied = Home(disk / "home")
    shutil.copytree(home.root, copied.root)
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)

    check_reading(tmp_path, copied, "read-only file system")
