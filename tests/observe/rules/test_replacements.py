"""An observation is replaced only if the next exchange corrects it, a plan is carried out, or a commit is reverted."""

import pytest

from palaver.core.observation import Evidence, Observation, ObservationType
from palaver.observe.rules.notes import find_replacements

from .exchange_script import Script
from .test_session_card import one_file


def noted(title: str, *files: str, type: ObservationType = ObservationType.FEATURE) -> Observation:  # noqa: A002
    return Observation(type, title, files_modified=files, evidence=(Evidence(1, 1, "quote"),))


def links(prompt: str, later: Observation | None = None) -> list[tuple[int, int, int]]:
    exchanges = one_file(Script().asked("Add a footer").said("Done."), Script().asked(prompt).said("Moved the footer."))
    parts = [(0, noted("Added a footer to the header bar", "page.py")), (1, later or noted("Moved it", "page.py"))]
    return [(each.earlier, each.later, each.line) for each in find_replacements(parts, exchanges)]


@pytest.mark.parametrize(
    "prompt",
    [
        "no, the footer belongs below the page",
        "No! Below the page.",
        "it should not be in the header bar",
        "That's not what I asked for",
        "are you sure? I see nothing",
        "please revert that, we have one already",
        "yeah, undo that",
        "hm, that isn't a footer",
        "it still doesn't show up",
    ],
)
def test_correction_by_the_user(prompt: str) -> None:
    """A prompt that begins with a correction replaces the result of the exchange before it."""
    assert links(prompt) == [(0, 1, 3)]


@pytest.mark.parametrize(
    "prompt",
    [
        "no need to test it, add a search box",
        "This is not urgent, but the footer needs a link",
        "It's not on main yet. Push the footer",
        "Actually, add a search box as well",
        "no problem, add a search box",
        "Now revert to the plan and add a search box",
        "Add a search box. It should not be red",
        "commit this",
        "Is that wrong in the print view too?",
    ],
)
def test_other_prompts_replace_nothing(prompt: str) -> None:
    """A new request is no correction."""
    assert links(prompt) == []


def test_another_subject_is_not_replaced() -> None:
    """A correction replaces nothing if the observations share no file and few words, or if the user decided it."""
    assert links("no, look at the menu", later=noted("Sorted by name", "menu.py")) == []
    assert links("no, below", later=noted("Below", "page.py", type=ObservationType.DECISION)) == []


def test_reverted_commit() -> None:
    """An observation of a commit is replaced by the observation of the exchange that reverts it."""
    exchanges = one_file(
        Script().asked("commit").ran("git commit -m 'Add a footer'"),
        Script().asked("Sort the menu"),
        Script().asked("Take the footer out").ran("git commit -m 'Revert \"Add a footer\"'"),
    )
    parts = [(0, noted("Add a footer")), (1, noted("Sorted the menu")), (2, noted("Took the footer out"))]

    assert [(each.earlier, each.later, each.line) for each in find_replacements(parts, exchanges)] == [(0, 2, 6)]


def test_reverted_commit_of_earlier_work() -> None:
    """If the commit only recorded earlier work, the observation of that work is replaced."""
    exchanges = one_file(
        Script().asked("Add a footer").edited("page.py"),
        Script().asked("commit").ran("git commit -m 'Add a footer'"),
        Script().asked("Take the footer out").ran("git commit -m 'Revert \"Add a footer\"'"),
    )
    parts = [(0, noted("Footer with links on every page", "page.py")), (2, noted("Took the footer out"))]

    assert [(each.earlier, each.later) for each in find_replacements(parts, exchanges)] == [(0, 1)]


def test_reverted_commit_with_a_repair() -> None:
    """A revert replaces the outcome of the commit, not a repaired command of the same exchange."""
    exchanges = one_file(
        Script().asked("Add a footer").edited("page.py").ran("git commit -m 'Add a footer'"),
        Script().asked("Take the footer out").ran("git commit -m 'Revert \"Add a footer\"'"),
    )
    repair = noted("Use pnpm instead of npm", "page.py", type=ObservationType.DEBUG)
    after = (1, noted("Took the footer out"))
    named = [(0, noted("Add a footer")), (0, repair), after]
    renamed = [(0, noted("Links on every page", "page.py")), (0, repair), after]

    assert [(each.earlier, each.later) for each in find_replacements(named, exchanges)] == [(0, 2)]
    assert [(each.earlier, each.later) for each in find_replacements(renamed, exchanges)] == [(0, 2)]


def test_revert_in_the_same_exchange() -> None:
    """A commit that is reverted in its own exchange replaces nothing."""
    script = Script().asked("Add a footer").ran("git commit -m 'Add a footer'")
    exchanges = one_file(script.ran("git commit -m 'Revert \"Add a footer\"'"))

    assert find_replacements([(0, noted("Add a footer", "page.py"))], exchanges) == []


def test_refused_commits_replace_nothing() -> None:
    """A commit or a revert that was refused replaces nothing."""
    parts = [(0, noted("Add a footer", "page.py")), (1, noted("Took the footer out"))]
    revert = "git commit -m 'Revert \"Add a footer\"'"
    for refused in (0, 1):
        exchanges = one_file(
            Script().asked("commit").ran("git commit -m 'Add a footer'", failed=refused == 0),
            Script().asked("Take the footer out").ran(revert, failed=refused == 1),
        )

        assert find_replacements(parts, exchanges) == []
