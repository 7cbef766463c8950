"""Authors of the texts in Codex rollouts: the user and the host."""

from typing import Any

import pytest

from palaver.core.conversation import Kind, Speaker

from .. import reading
from ..reading import skipped
from .codex_lines import (
    CODEX,
    agent_reply,
    authors,
    completed_item,
    event,
    events,
    item,
    message_item,
    meta,
    prompt_event,
    summary,
    turns,
    user_prompt,
)


@pytest.mark.parametrize(
    "records",
    [
        [message_item("Fix it"), prompt_event("Fix it")],
        [prompt_event("Fix it"), message_item("Fix it")],
        [prompt_event("Fix it")],
        [message_item("Fix it")],
        [message_item("Fix it"), completed_item("UserMessage", content=[{"type": "text", "text": "Fix it"}])],
        [completed_item("UserMessage", content=[{"type": "text", "text": "Fix it"}])],
        [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Fix it"}]}],
    ],
)
def test_a_prompt_counts_once_however_often_it_is_recorded(records: list[object]) -> None:
    """A prompt counts once if recorded as an item, as an event, or as both in any order."""
    assert authors(*records) == [(Speaker.HUMAN, Kind.PROMPT, "Fix it")]


def test_the_same_words_typed_again_are_another_prompt() -> None:
    """A prompt with the same text as an earlier prompt is a separate prompt."""
    assert reading.prompts(CODEX, meta(), prompt_event("A"), prompt_event("B"), message_item("A")) == ["A", "B", "A"]
    assert reading.prompts(CODEX, meta(), *user_prompt("go on"), *agent_reply("Done."), *user_prompt("go on")) == [
        "go on",
        "go on",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "<environment_context>\n  <cwd>/work</cwd>\n</environment_context>",
        "<user_instructions>\nBe brief.\n</user_instructions>",
        "# AGENTS.md instructions for /work\n\n<INSTRUCTIONS>\nBe brief.\n</INSTRUCTIONS>",
        "<turn_aborted>\nThe user interrupted.\n</turn_aborted>",
        "<skill>\n<name>x</name>\n</skill>",
        "<permissions instructions>\nAsk.\n</permissions instructions>",
        '<subagent_notification>{"status": "done"}</subagent_notification>',
        '<some_new_thing source="goal">\nContinue.\n</some_new_thing>',
    ],
)
def test_the_programs_own_texts_are_injected(text: str) -> None:
    """An item that consists of one of the program's tags is injected."""
    assert authors(message_item(text)) == [(Speaker.HOST, Kind.INJECTED, text)]


@pytest.mark.parametrize(
    "text",
    [
        "<my_config>\n  <a/>\n</my_config>",
        "<div>hello</div>",
        "Why does <environment_context> appear?",
        "<environment_context> is what I see, why?",
    ],
)
def test_pasted_tags_stay_a_prompt(text: str) -> None:
    """Events record typed text, so only the program's known tags count as envelopes in events."""
    assert reading.prompts(CODEX, meta(), prompt_event(text)) == [text]


def test_an_injected_text_among_the_events_is_not_a_prompt() -> None:
    """Injected texts that older versions recorded as events are not prompts."""
    context = "<environment_context>x</environment_context>"

    assert authors(prompt_event(context)) == [(Speaker.HOST, Kind.INJECTED, context)]
    assert authors(prompt_event("Be brief.", kind="user_instructions")) == [(Speaker.HOST, Kind.INJECTED, "Be brief.")]


@pytest.mark.parametrize("heading", ["## My request for Codex:", "## My request:"])
def test_context_that_an_editor_adds_above_a_request_is_dropped(heading: str) -> None:
    """The prompt begins below the last heading that marks the request."""
    text = f"# Context from my IDE setup:\n\n## Active file: a.md\n{heading}\nquoted\n\n{heading}\nFix it"

    assert reading.prompts(CODEX, meta(), *user_prompt(text)) == ["Fix it"]


def test_comments_above_a_request_are_part_of_the_prompt() -> None:
    """Comments on lines of code, documents and web pages precede the request. Text of the program is dropped."""
    files = "# Files mentioned by the user:\n\n## plan.md: /home/demo/plan.md\n"
    first = "## Comment 1\nFile: shop/cart.py\nLine: 7\nComment: Round up the total"
    second = "## User Comment 2\nFile: shop/tax.py\nSide: R\nLines: 3-9\nComment:\nUse Decimal\n\n# and test: it"
    page = "## Comment 1\nPage URL: http://localhost/cart\nTarget: button\nComment:\nMake it green"
    cases = {
        (f"# Diff comments:\n\n{first}\n", ""): "Round up the total [shop/cart.py, line 7]",
        (f"# Diff comments:\n\n{first}\n\n{second}\n", "Then commit"): (
            "Round up the total [shop/cart.py, line 7]\n\nUse Decimal\n\n# and test: it [shop/tax.py, lines 3-9]"
            "\n\nThen commit"
        ),
        (f"{files}\n# Browser comments:\n\n{page}\n", ""): "Make it green [http://localhost/cart]",
        (f"# Browser comments:\n\n{page}\n\n{files}", "Do it"): "Make it green [http://localhost/cart]\n\nDo it",
        ("# Diff comments:\n\nComment: Rename it", ""): "Rename it",
        ("# Response annotations:\n[a new form]", ""): "# Response annotations:\n[a new form]",
        ("# Diff comments:\n\n## Comment 1\nFile: a.py\nComment:\n", "Hello"): "Hello",
    }
    found = {
        above: reading.prompts(CODEX, meta(), *user_prompt(f"{above}\n\n## My request for Codex:\n{below}\n"))
        for above, below in cases
    }

    assert found == {above: [expected] for (above, _), expected in cases.items()}


def test_context_of_the_program_above_an_empty_request_is_no_prompt() -> None:
    """A file list without a request is not the user's text."""
    text = "# Files mentioned by the user:\n\n## a.md: /home/demo/a.md\n\n## My request for Codex:\n"

    assert reading.prompts(CODEX, meta(), *user_prompt(text)) == []


def test_a_heading_that_the_user_writes_is_kept() -> None:
    """A request heading without editor context above it is part of the prompt."""
    text = "Please add this:\n## My request:\nFix it"

    assert reading.prompts(CODEX, meta(), prompt_event(text)) == [text]


def test_pictures_are_named_by_type_and_size() -> None:
    """A picture is replaced by its type and size."""
    data = "data:image/png;base64," + "A" * 4096
    shown = event("user_message", message="What is this?", images=[data])
    for_model = item(
        "message",
        role="user",
        content=[
            {"type": "input_text", "text": "<image name=[Image #1]>"},
            {"type": "input_image", "image_url": data},
            {"type": "input_text", "text": "</image>"},
            {"type": "input_text", "text": "What is this?"},
        ],
    )

    assert reading.prompts(CODEX, meta(), for_model, shown) == ["What is this?\n[image/png, 3 KB]"]
    assert reading.prompts(CODEX, meta(), shown, for_model) == ["What is this?\n[image/png, 3 KB]"]


def test_a_shell_command_of_the_user_is_the_users() -> None:
    """The user is the author of a shell command that the user ran. Its output is kept."""
    printed = "<result>\nExit code: 1\nOutput:\nno\n</result>"
    call, result = turns(
        message_item(f"<user_shell_command>\n<command>\nls\n</command>\n{printed}\n</user_shell_command>")
    )

    assert (call.speaker, call.kind, call.text) == (Speaker.HUMAN, Kind.CALL, "! ls")
    assert (result.kind, result.text, result.failed) == (Kind.RESULT, "Exit code 1\nno", True)
    assert call.call == result.call


def test_a_review_is_a_prompt_with_a_command() -> None:
    """The program is the author of the sentence after a review request, and the verdict counts once."""
    output: dict[str, Any] = {"overall_explanation": "Not yet.", "findings": []}
    records = [
        event("entered_review_mode", user_facing_hint="current changes"),
        prompt_event("Review the current code changes."),
        event("exited_review_mode", review_output=output),
        item("message", role="assistant", id="review_rollout_assistant", content=[{"text": "Not yet."}]),
        event("agent_message", message="Not yet."),
    ]

    assert summary(*records) == [
        (Kind.PROMPT, "/review current changes"),
        (Kind.INJECTED, "Review the current code changes."),
        (Kind.PROSE, "Not yet."),
    ]
    assert summary(*records[:3])[-1] == (Kind.PROSE, "Not yet.")


def test_developer_messages_are_context() -> None:
    """Developer messages are skipped as context, because they are instructions for the model."""
    assert skipped(events(message_item("Rules", role="developer"))) == [(2, "context")]
