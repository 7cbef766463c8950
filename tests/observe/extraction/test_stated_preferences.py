"""Lasting preferences are found in the typed text of prompts, and nowhere else."""

import json
from pathlib import Path

import pytest

from palaver.observe.extraction.preferences import Certainty, stated_sentences

from ...cases import for_each

EXAMPLES = json.loads(Path(__file__).with_name("preferences.json").read_text(encoding="utf-8"))
"""Prompts in eight languages. An empty preference means that nothing may be proposed."""


def preferences(prompt: str) -> list[str]:
    return [each.text for each in stated_sentences(prompt) if each.certainty >= Certainty.RULE]


@for_each("example", EXAMPLES, label=lambda each: f"{each['language']}: {each['prompt'][:40]}")
def test_examples(example: dict[str, str]) -> None:
    """The stated preference of an example is found, and no look-alike is."""
    assert preferences(example["prompt"]) == ([example["preference"]] if example["preference"] else [])


@for_each(
    "prompt",
    [
        "never mind, we'll look at it later",
        "Stop hook feedback:\n[npm test]: Always run the tests before you stop working.",
        "Stop hook feedback:\nAlways run the tests before you stop working.",
        "The bot wrote this, what do you think of it\n> Always validate the input of every handler.",
        'CodeRabbit says: "Good start. Always validate the input of every handler."',
        "⚠️ Potential issue\nAlways validate the input of every handler.",
        "## Guidelines\n- Always use conventional commits.\n- Never commit to main.",
        "Review comment:\nAlways validate the input of every handler.",
        "Never worked on my machine, the login that is.",
        "Please always use the staging database for this task.",
        "I prefer the second option because it is simpler.",
        "From now on I never use `eval` in any file? → Yes",
        "Always use tabs?",
        "Always do it like that.",
        "we don't need this button any more",
        "we don't need the dialog, it is enough to show a message",
        "avoid using this in the footer",
        "Make sure everything fits on one line.",
        "Make sure everything is tested, and always push along the way.",
        "also can we push the traces to a private bucket, don't want my traces to be public",
        "Alright, for every test in parser/parser_test.py I'd like to see literal values.",
        "avoid inventing our own.",
        "we use migrations in staging, so I don't think we need to avoid them",
        "the pattern was changed yesterday",
    ],
)
def test_pasted_text_and_passing_remarks_are_not_found(prompt: str) -> None:
    """Pasted, quoted and generated text, questions and rules for one task state no preference."""
    assert preferences(prompt) == []


@pytest.mark.parametrize(
    "sentence",
    [
        "Always write tests in the folder of the parser.",
        "never push to main without asking me",
        "please always answer in German",
        "I prefer pnpm over npm in all projects.",
        "In the future, please run the tests before you commit.",
        "use uv instead of pip from now on",
        "we don't need backward compatibility",
        "avoid adding new dependencies.",
        "our pattern is to name a test after its module",
    ],
)
def test_lasting_rules_are_found_among_other_text(sentence: str) -> None:
    """A rule is found between other sentences and beside pasted text."""
    assert preferences(f"Fix the login, it is slow. {sentence}\nThanks!") == [sentence]
    assert preferences(f"I get an error.\n\n```\nAlways use the pool.\n```\n\n{sentence}") == [sentence]


def test_limit_applies_to_the_rest_of_the_line() -> None:
    """After "for this PR" only a sentence that says that it lasts is a preference."""
    assert preferences("For this PR leave the tests alone. Never touch the lock file.") == []
    lasting = "From now on never touch the lock file."
    assert preferences(f"For this PR leave the tests alone. {lasting}") == [lasting]


def test_correction_is_less_certain_than_a_rule() -> None:
    """A correction is found with low certainty, because it may hold for one task only."""
    (found,) = stated_sentences("no, you should put helpers into core/text.py")
    assert found.certainty is Certainty.CORRECTION


def test_text_after_a_question_about_it_is_not_found() -> None:
    """After "does this still apply?" the rest of the line may be the text in question."""
    assert preferences("Does this still apply? Always run the generator.") == []
    assert preferences("Does the login work? Always run the generator.") == ["Always run the generator."]
