"""An exchange that only commits earlier work is recognised by the words of its commit."""

import pytest
from msgspec.structs import replace

from palaver.core.observation import Evidence, Observation, ObservationType
from palaver.observe.rules.outcome import committed_work
from palaver.observe.rules.rule_extractor import observe

from .exchange_script import Script, session

DONE = "[main 1a2b3c4] 1 file changed"
COMMIT = 'git commit -m "Add footer links to every page"'


def work(title: str = "Footer links for every page of the shop", *files: str) -> Observation:
    files = files or ("src/page.py",)
    return Observation(ObservationType.FEATURE, title, files_modified=files, evidence=(Evidence(1, 1, "quote"),))


def place_of_work(script: Script, *earlier: Observation) -> int | None:
    return committed_work(script.exchange, observe(script.exchange, session()).observations[0], earlier)


def test_commit_of_earlier_work() -> None:
    """The earlier observation whose title shares most words with the commit subject is found."""
    script = Script().asked("commit this").ran(COMMIT, DONE)

    assert place_of_work(script, work("Sorted the menu", "menu.py"), work()) == 1


def test_changelog_may_be_written() -> None:
    """An exchange that also records the work in a changelog did no other work."""
    script = Script().asked("commit and update the changelog").edited("CHANGELOG.md")

    assert place_of_work(script.ran(COMMIT, DONE), work()) == 0


@pytest.mark.parametrize(
    ("script", "earlier"),
    [
        (Script().asked("commit this").ran(COMMIT, DONE), work("Sorted the menu by name")),
        (Script().asked("commit this").ran('git commit -m "Sort the menu by price"', DONE), work()),
        (Script().asked("No, in the footer. And commit").edited("src/page.py").ran(COMMIT, DONE), work()),
        (Script().asked("and the history. Commit").edited("history_table.py").ran(COMMIT, DONE), work()),
        (Script().asked("commit").ran(COMMIT, DONE).ran('git commit -m "Sort the menu"', DONE), work()),
        (Script().asked("Add footer links to each page").edited("src/page.py"), work()),
    ],
)
def test_own_work(script: Script, earlier: Observation) -> None:
    """Another subject, an edit, several commits, or no commit indicate work of its own."""
    assert place_of_work(script, earlier) is None


def test_commit_without_facts() -> None:
    """A commit that states no facts is compared with the whole text of the earlier work."""
    earlier = replace(work("One line in the template"), facts=("Every page now has a footer with links.",))
    reason = "Visitors did not find `menu.py` without them, because nothing links to it."

    assert place_of_work(Script().asked("commit this").ran(COMMIT, DONE), earlier) == 0
    assert place_of_work(Script().asked("commit this").ran(f'{COMMIT[:-1]}\n\n{reason}"', DONE), earlier) is None
