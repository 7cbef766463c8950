"""Before a command or an edit, past sessions of the project tell what it cost."""

import pytest

from palaver.archiver.store import Store
from palaver.core.home import Home
from palaver.observe.commands.known_fixes import SIMILARITY_MIN, KnownCost, command_cost, file_cost, latest_sessions

from .shell_history import MISSING, ShellHistory

ROOT = "/home/demo/shop"
CART = f"{ROOT}/src/cart.py"
FAILED = ("npm run lint", "error: 1 problem", True)


def cost_of_command(home: Home, command: str, project: str = "shop") -> KnownCost | None:
    with Store.open(home.database) as store:
        sessions = latest_sessions(store, f"project:{project}")
        return command_cost(store, sessions, command, f"/home/demo/{project}")


def cost_of_file(home: Home, path: str = CART) -> KnownCost | None:
    with Store.open(home.database) as store:
        return file_cost(store, latest_sessions(store, "project:shop"), path, ROOT)


def test_a_failed_command_names_what_worked(shell: ShellHistory) -> None:
    """A command that failed in two sessions is shown with the command that worked, but without the error."""
    for day in (2, 6):
        shell.session(("npm test", MISSING, True), ("bun run test", "12 pass", False), day=day)
    home = shell.archive()

    found = cost_of_command(home, f"cd {ROOT} && npm test 2>&1 | tail -20")

    assert found is not None
    assert found.text == "`npm test` failed 2 times; `bun run test` worked"
    assert (found.strength, found.remedy) == (1.0, "bun run test")
    assert MISSING not in found.text


def test_a_repair_is_known_where_it_was_repeated(shell: ShellHistory) -> None:
    """A repair that another project learned first is known in the project that confirmed it, and in no third one."""
    for day, project in ((2, "cart"), (6, "shop")):
        shell.session(("npm test", MISSING, True), ("bun run test", "12 pass", False), day=day, project=project)
    shell.session(("ls", "a", False), project="till")
    home = shell.archive()

    assert cost_of_command(home, "npm test", "shop") is not None
    assert cost_of_command(home, "npm test", "till") is None


def test_other_commands_are_less_similar(shell: ShellHistory) -> None:
    """The strength is the share of common words, so a threshold separates other commands."""
    shell.session(("npm test", MISSING, True), ("bun run test", "12 pass", False))
    home = shell.archive()

    near, far = cost_of_command(home, "npm --watch test"), cost_of_command(home, "git status")

    assert near is not None
    assert near.strength == pytest.approx(2 / 3)
    assert far is None or far.strength == 0
    assert cost_of_command(home, "bun run test") is None
    assert cost_of_command(home, "npm test || bun run test") is None
    assert cost_of_command(home, "") is None
    assert cost_of_command(home, "npm test", "cart") is None


@pytest.mark.parametrize(
    ("failed", "worked", "command", "applies"),
    [
        ("git push", "git pull --rebase", "git push origin main", True),
        ("git push", "git push -u origin main", "git push -u origin feature", False),
        ("git push", "git pull --rebase", "git pushall origin", False),
        ("git push origin main", "git pull --rebase", "git push", False),
        ("pytest", "uv run pytest", "pytest tests/cart -q", True),
        ("make", "make build", "make lint", False),
    ],
)
def test_a_failed_subcommand_applies_to_its_calls(
    shell: ShellHistory, failed: str, worked: str, command: str, applies: bool
) -> None:
    """A failed program or subcommand applies to calls with further arguments, unless these are those that worked."""
    shell.session((failed, "error: unknown option", True), (worked, "ok", False), (failed, "ok", False))
    found = cost_of_command(shell.archive(), command)

    assert (found is not None and found.strength >= SIMILARITY_MIN) == applies


def test_the_message_of_a_commit_does_not_matter(shell: ShellHistory) -> None:
    """A commit that failed applies to a commit with another message, also one of several lines."""
    shell.session(
        ("git commit -m 'Add the cart'", "lint failed", True),
        ("bun run lint:fix", "ok", False),
        ("git commit -m 'Add the cart'", "1 file changed", False),
    )
    home = shell.archive()

    for message in ('"Add the till"', "\"$(cat <<'EOF'\nAdd the till\n\nIt counts.\nEOF\n)\""):
        found = cost_of_command(home, f"git commit -m {message}")
        assert found is not None
        assert (found.strength, found.remedy) == (1.0, "bun run lint:fix")


def test_a_file_names_the_check_that_failed_after_its_edits(shell: ShellHistory) -> None:
    """A file is shown with the check that failed after its past edits, and how often."""
    for day in (2, 4, 6):
        shell.session((CART, "ok", False), FAILED, day=day)
    shell.session((CART, "ok", False), ("npm run lint", "ok", False), day=8)
    home = shell.archive()

    found = cost_of_file(home)

    assert found is not None
    assert found.text == "`npm run lint` failed after 3 of the last 4 edits of src/cart.py"
    assert found.strength == 0.75
    assert found.id.startswith("ex-")


@pytest.mark.parametrize(
    "runs",
    [
        pytest.param([(CART, "ok", False), FAILED], id="one failure"),
        pytest.param([FAILED, (CART, "ok", False)], id="before the edit"),
        pytest.param([(CART, "ok", False), ("cat x", "error", True)], id="no check"),
        pytest.param([(f"{ROOT}/other/cart.py", "ok", False), FAILED], id="another file of this name"),
    ],
)
def test_a_file_without_repeated_failures_costs_nothing(shell: ShellHistory, runs: list[tuple[str, str, bool]]) -> None:
    """One failed check, a check before the edit, another command or another file of the same name do not count."""
    shell.session(*runs)
    if runs != [(CART, "ok", False), FAILED]:
        shell.session(*runs, day=3)

    assert cost_of_file(shell.archive()) is None


def test_files_of_the_same_name_in_other_projects_hide_nothing(
    shell: ShellHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later edits of a file of this name in another project leave the edits of this project in the answer."""
    monkeypatch.setattr("palaver.observe.commands.known_fixes._EDITS_READ", 2)
    for day in (2, 4):
        shell.session((CART, "ok", False), FAILED, day=day)
    for day in (6, 8):
        shell.session(("/home/demo/till/src/cart.py", "ok", False), project="till", day=day)

    assert cost_of_file(shell.archive()) is not None
