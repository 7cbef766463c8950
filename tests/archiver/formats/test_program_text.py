"""Text of the agents' programs is never the user's word."""

import re
from collections import Counter

import pytest

from palaver.archiver.formats.registry import recognise
from palaver.archiver.formats.transcript_format import NOTICES, REMINDERS, TAGS, split_program_text, without_reminders
from palaver.archiver.lines import head, opened, split
from palaver.core.conversation import Speaker, Turn

from ...cases import for_each
from ...shared import SAMPLES

_TAG = re.compile(r"^\s*<([A-Za-z][\w:]*[-_][\w:-]*)(?=[\s>])[^<>]*>(?=.*</\1>)", re.MULTILINE | re.DOTALL)
"""Pattern for a tag that begins a line, is closed, and has a name of several words."""
WRITTEN_BY_USERS = {
    "anti_patterns",
    "checkpoint_response",
    "debug_file",
    "execution_context",
    "planning_context",
    "prior_state",
    "success_criteria",
    "vulnerability_patterns",
}
"""Tags in the users' own slash commands."""


@for_each("tag", sorted(TAGS))
def test_passages_of_the_program_are_separated(tag: str) -> None:
    """A passage can stand alone, or before and after what was typed. Only its content is left."""
    passage = f'<{tag} id="1">\nThe build ended.\n</{tag}>'
    alone, mixed = split_program_text(passage), split_program_text(f"{passage}\nGo on, please\n\n{passage}")

    assert (alone.typed, mixed.typed) == ("", "Go on, please")
    assert (alone.reminders if tag in REMINDERS else alone.added) == "The build ended."


@pytest.mark.parametrize(
    "text",
    [
        "Why does <task-notification> appear?",
        "<task-notification>x</task-notification> is what I see",
        "<task-notification>\nnever closed",
        "Explain `<system-reminder>x</system-reminder>` to me",
        "<div>\nmine\n</div>",
    ],
)
def test_quoted_tags_are_typed(text: str) -> None:
    """A tag within a line, or without its closing tag, was typed."""
    assert split_program_text(text).typed == text


def test_a_passage_can_quote_its_own_tag() -> None:
    """The passage ends at the closing tag that matches, or at the last one that ends a line."""
    for quoted in (
        "<task-notification>\nan example\n</task-notification>",
        "`</task-notification>` ends it",
        "`<task-notification>` begins it",
    ):
        found = split_program_text(f"<task-notification>\n{quoted}\nmore\n</task-notification>\nGo on")
        assert found.typed == "Go on", quoted
        assert "more" in found.added, quoted


@pytest.mark.parametrize("notice", NOTICES)
def test_a_notice_ends_at_a_passage_or_with_the_text(notice: str) -> None:
    """Some versions write a paragraph before a notification. What follows the notification was typed."""
    passage = "<task-notification>\nended\n</task-notification>"

    assert split_program_text(f"{notice}\nNobody typed this.\n\n{passage}\nGo on").typed == "Go on"
    assert split_program_text(f"{notice}\nNobody typed this.").typed == ""


def test_results_of_tools_lose_only_reminders() -> None:
    """A tool can print any other tag."""
    printed = "<task-notification>\nx\n</task-notification>"

    assert without_reminders(f"{printed}\n<system-reminder>\ny\n</system-reminder>") == printed


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="no samples here")
def test_no_tag_of_a_program_is_the_users_word_in_real_transcripts() -> None:
    """In the samples of all agents, no turn of a user contains a closed tag of several words at the start of a line."""
    found = Counter[str]()
    for path in sorted(SAMPLES.rglob("*.json*")):
        with opened(path) as file:
            start = head(file)
            known = recognise(start, path.name)
            if known is None:
                continue
            for event in known.reader(known.identify(path, start)).read(split(file)):
                if isinstance(event, Turn) and event.speaker is Speaker.HUMAN:
                    found.update(f"{known.agent} {match[1]}" for match in _TAG.finditer(event.text))

    assert {name for name in found if name.split()[1] not in WRITTEN_BY_USERS} == set()
