"""Before a command or an edit, the hook adds one line about what it cost, once in a session."""

from pathlib import Path

import pytest

from palaver.agents.hooks.hooks import HookAnswer, HookCall, HookPlace, tool_text
from palaver.archiver.store import Store
from palaver.core.home import Home
from palaver.core.hooks import HookEvent
from palaver.core.tokens import count
from palaver.observe.archive import Archive

from ...observe.commands.shell_history import MISSING, ShellHistory

ROOT = "/home/demo/shop"
CART = f"{ROOT}/src/cart.py"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Return an archive in which a command failed twice, and a check after each of three edits."""
    shell = ShellHistory(tmp_path, tmp_path / "palaver")
    for day in (2, 4, 6):
        shell.session(("npm test", MISSING, True), ("bun run test", "12 pass", False), day=day)
        shell.session((CART, "ok", False), ("npm run lint", "error: 1 problem", True), day=day + 1)
    return shell.archive()


def answer(
    home: Home, *, command: str = "", file: str = "", cwd: str = ROOT, shown: frozenset[str] = frozenset()
) -> HookAnswer:
    call = HookCall(HookEvent.TOOL, "PreToolUse", "s1", cwd, command=command, file=file)
    with Archive(home) as archive:
        return tool_text(call, HookPlace(archive, "project:shop", Path(ROOT), shown))


def test_a_failed_command_is_answered_with_what_worked(home: Home) -> None:
    """A command that failed before gets one line within the budget, without the error, and once in a session."""
    found = answer(home, command="npm test")

    assert "`npm test` failed 3 times; `bun run test` worked" in found.text
    assert MISSING not in found.text
    assert count(found.text) <= HookEvent.TOOL.hook.budget
    assert answer(home, command="npm test", shown=frozenset(found.items)) == HookAnswer()


def test_an_edit_is_answered_with_the_check_that_failed(home: Home) -> None:
    """A file gets the check that failed after most of its edits."""
    assert "`npm run lint` failed after 3 of the last 3 edits of src/cart.py" in answer(home, file=CART).text


def test_paths_are_relative_to_the_folder_of_the_project(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder below, commands and files are still compared relative to the folder of the project."""
    roots: list[str] = []

    def cost(_store: Store, _sessions: object, _command: str, root: str) -> None:
        roots.append(root)

    monkeypatch.setattr("palaver.observe.commands.known_fixes.command_cost", cost)
    answer(home, command="npm test", cwd=f"{ROOT}/src")

    assert roots == [ROOT]
    assert answer(home, file=CART, cwd=f"{ROOT}/src").text


def test_other_calls_get_nothing(home: Home) -> None:
    """A command or a file without a known cost, and a call with neither, get no text."""
    assert answer(home, command="git status") == HookAnswer()
    assert answer(home, file=f"{ROOT}/src/till.py") == HookAnswer()
    assert answer(home) == HookAnswer()
