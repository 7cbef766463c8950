"""Filler reports the state of git or the progress of an agent, not facts about the program."""

import pytest

from palaver.core.conversation import Kind, Speaker, Turn
from palaver.observe.rules.statements import is_filler, statements


def is_filler_text(text: str) -> bool:
    (statement,) = statements(Turn(1, Speaker.ASSISTANT, Kind.PROSE, text))
    return is_filler(statement)


@pytest.mark.parametrize(
    "fact",
    [
        "Only two files are read at startup, because the index is loaded lazily.",
        "Changes are saved to the journal before the reply is sent.",
        "Old agents are blocked by the lease until it expires.",
        "Option A is faster than B for small carts.",
        "3 files per transaction are 2 % faster than one.",
        "The watcher reloads the index when a file changed on disk.",
        "Workers are now started on the first request.",
    ],
)
def test_facts_about_files_and_agents(fact: str) -> None:
    """A fact about files, changes, options or agents of the program is no filler."""
    assert not is_filler_text(fact)


@pytest.mark.parametrize(
    "filler",
    [
        "Only the two cart files are staged.",
        "Only these three files were changed.",
        "The changes are included in the last commit.",
        "3 files changed, 40 insertions.",
        "The review agents are still running in the background.",
        "Two agents have finished.",
        "The dispatched agent was instructed to keep the tests.",
        "The only repo changes are `settings.json` and its test.",
        "Option 1 is a 2-minute fix.",
    ],
)
def test_state_of_git_and_agents(filler: str) -> None:
    """Staged files, the content of a commit, running agents and options without a comparison are filler."""
    assert is_filler_text(filler)


def test_possibilities_are_no_facts() -> None:
    """Items of a list of which only one is true are no facts."""
    listed = "- The session was never archived.\n- The project is not registered."

    for introduction, expected in (("Likely one of these is true:", True), ("Two things are true:", False)):
        found = statements(Turn(1, Speaker.ASSISTANT, Kind.PROSE, f"{introduction}\n\n{listed}"))
        assert {is_filler(statement) for statement in found} == {expected}
