"""Commands, fixes and open items are searched by one query."""

import pytest

from palaver.core.errors import InvalidInput, UnknownProject
from palaver.core.home import Home
from palaver.core.query import Query
from palaver.core.results import CommandList, ComputedList, FixList
from palaver.observe.list_search import ListSearch
from palaver.search.archive_search import ArchiveSearch

from .shell_history import MISSING, ShellHistory


def rows(home: Home, query: Query) -> ComputedList:
    """Return the rows of the kind that the query names."""
    with ArchiveSearch(home) as search:
        return ListSearch(search).find(query)


def commands(home: Home, query: Query) -> list[str]:
    """Return the commands of a query for commands."""
    found = rows(home, query)
    assert isinstance(found, CommandList)
    return [row.command for row in found.commands]


@pytest.fixture
def home(shell: ShellHistory) -> Home:
    """Return an archive of two projects with different commands."""
    shell.session(("bun test", "12 pass", False), ("bun lint", "ok", False), ("git status", "ok", False))
    shell.session(("npm test", MISSING, True), ("pytest -q", "9 passed", False), project="tide", day=2)
    return shell.archive()


def test_without_a_query_the_commands_of_all_tasks_are_listed(home: Home) -> None:
    """Commands without a task, such as those of git, are left out. The most recently used project comes first."""
    assert commands(home, Query.newest(kinds=["command"])) == ["pytest", "bun test", "bun lint"]
    assert commands(home, Query.newest(kinds=["command"], projects=["shop"])) == ["bun test", "bun lint"]


def test_commands_of_the_own_project_are_preferred(home: Home) -> None:
    """Only commands of the user's project are listed if it has any. A filter for projects takes precedence."""

    def asked(here: str, *projects: str) -> list[str]:
        return commands(home, Query.parse("run the tests", kinds=["command"], projects=projects, here=here))

    assert [asked("shop"), asked("elsewhere"), asked("shop", "tide")] == [
        ["bun test"],
        ["pytest", "bun test"],
        ["pytest"],
    ]


def test_words_that_no_command_contains_are_named(home: Home) -> None:
    """Otherwise, the command of all tests would look like the one of the integration tests."""
    found = rows(home, Query.parse("how are the integration tests run", kinds=["command"]))

    assert isinstance(found, CommandList)
    assert (found.total, found.missing) == (2, ("integration",))


def test_the_first_wording_with_rows_is_used(home: Home) -> None:
    """Other wordings are used only if the query itself has no rows."""
    assert commands(home, Query.parse("deploy", kinds=["command"], also=["lint"])) == ["bun lint"]
    assert commands(home, Query.parse("lint", kinds=["command"], also=["test"])) == ["bun lint"]


def test_an_error_without_a_fix_has_the_closest_passages(home: Home) -> None:
    """A command that merely failed is no fix."""
    found, limited = (rows(home, Query.parse("Go on", kinds=["fix"], limit=limit)) for limit in (10, 1))

    assert isinstance(found, FixList)
    assert isinstance(limited, FixList)
    assert found.nearest
    assert limited.nearest
    assert (found.fixes, limited.fixes, len(limited.nearest.hits)) == ((), (), 1)
    assert len(found.nearest.hits) > 1


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (Query.newest(kinds=["fix"]), "Kind fix needs an error message"),
        (Query.parse("test", kinds=["command"], types=["decision"]), "only projects can be filtered"),
        (Query.parse(["npm test", "bun"], kinds=["command"]), "Kind command takes one query"),
    ],
)
def test_what_does_not_apply_is_refused(home: Home, query: Query, message: str) -> None:
    """A filter that has no effect would lead to rows that it excludes."""
    with pytest.raises(InvalidInput, match=message):
        rows(home, query)


def test_an_unknown_project_is_an_error(home: Home) -> None:
    """The list of an unknown project would look as if the project had no commands."""
    with pytest.raises(UnknownProject):
        rows(home, Query.parse("test", kinds=["command"], projects=["shopp"]))
