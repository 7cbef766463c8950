"""A search for a task finds the commands that a project uses for the task."""

import pytest

from palaver.archiver.reading.exchanges import mark_rewound
from palaver.archiver.store import Store
from palaver.core.home import Home
from palaver.core.reports import ProjectCommand
from palaver.observe.commands.project_commands import known_tasks, project_commands

from .shell_history import MISSING, ShellHistory


def commands(home: Home, task: str, *projects: str) -> list[ProjectCommand]:
    with Store.open(home.database) as store:
        return project_commands(store, task, projects)


def test_command_of_most_sessions_comes_first(shell: ShellHistory) -> None:
    """A command is counted by run and by session, with its failures, its usual form and its last use."""
    shell.session(("go test ./cart -v", "ok", False), ("go test ./till", "ok", False), ("go test ./till", "ok", False))
    for day in (4, 7, 5):
        shell.session(("mise run test 2>&1 | tail -3", "ok", False), ("mise run test", "FAIL", True), day=day)

    first, second = commands(shell.archive(), "test")

    assert (first.command, first.succeeded, first.failed, first.sessions) == ("mise run test", 3, 3, 3)
    assert first.at == 1_772_877_600_000
    assert (second.command, second.usual, second.succeeded) == ("go test", "go test ./till", 3)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("test", ["bun run test", "bun run test:unit"]),
        ("How do we run the tests?", ["bun run test", "bun run test:unit"]),
        ("unit tests", ["bun run test", "bun run test:unit"]),
        ("linting", ["bun run lint"]),
        ("run the linter", ["bun run lint"]),
        ("type check", ["npx tsc"]),
        ("types", ["npx tsc"]),
        ("start the server", ["bun run dev"]),
        ("css", ["bun run css:watch"]),
        ("rebase", ["git rebase"]),
        ("deploy", []),
        ("main", []),
        ("the", []),
    ],
)
def test_task_in_any_words(shell: ShellHistory, asked: str, expected: list[str]) -> None:
    """A task is recognised in any of its words. Other words are searched in the commands, but not in paths."""
    lines = "bun run test; bun run test; bun run test:unit; bun run lint; npx tsc --noEmit; bun run dev; ls tests"
    runs = [(line, "ok", False) for line in [*lines.split("; "), "bun run css:watch", "git rebase main/css"]]
    shell.session(*runs)

    assert [each.command for each in commands(shell.archive(), asked)] == expected


def test_commands_that_never_succeeded_are_left_out(shell: ShellHistory) -> None:
    """A command that only failed is no answer, even if a filter hid its exit status."""
    shell.session(("npm test", MISSING, True), ("npm test | tail -5", MISSING, False), ("bun run test", "ok", False))

    assert [each.command for each in commands(shell.archive(), "test")] == ["bun run test"]


def test_projects_are_separate(shell: ShellHistory) -> None:
    """Commands are grouped by project, the last used project first, and can be limited to projects."""
    shell.session(("make test", "ok", False), day=2)
    shell.session(("tox", "ok", False), project="bakery", day=3)
    home = shell.archive()

    assert [(each.project, each.command) for each in commands(home, "test")] == [
        ("bakery", "tox"),
        ("shop", "make test"),
    ]
    assert [each.command for each in commands(home, "test", "shop")] == ["make test"]
    assert [each.command for each in commands(home, "test", "/home/demo/bakery")] == ["tox"]


def test_sessions_excluded_from_the_index_are_left_out(shell: ShellHistory) -> None:
    """A session that the user excluded from the index contributes nothing."""
    shell.session(("make test", "ok", False), asked="DO NOT INDEX THIS CHAT")
    shell.session(("tox", "ok", False))

    assert [each.command for each in commands(shell.archive(), "test")] == ["tox"]


def test_rewound_commands_are_left_out(shell: ShellHistory) -> None:
    """Commands that the user discarded by a rewind are neither counted nor listed."""
    shell.session(("npm test", "ok", False), ("make lint", "ok", False), ("tox", "ok", False))
    home = shell.archive()
    with Store.open(home.database) as store, store.transaction():
        [stored] = store.exchanges.load(store.items.all_keys()).values()
        rewound = mark_rewound(stored.exchange, 2, 6)  # the calls and results of the first two commands
        store.exchanges.replace(stored.session, stored.source, 0, [rewound])

    assert [each.command for each in commands(home, "test")] == ["tox"]
    with Store.open(home.database) as store:
        assert known_tasks(store) == ["test"]


def test_known_tasks(shell: ShellHistory) -> None:
    """The tasks with successful commands are listed."""
    shell.session(("make lint", "ok", False), ("tox", "ok", False), ("npm run build", "failed", True))

    with Store.open(shell.archive().database) as store:
        assert known_tasks(store) == ["test", "lint"]
