"""Prompts that the user queued while Claude Code worked."""

import pytest

from .claude_lines import HOST, HUMAN, PROMPT, assistant, jsonl, queue, skipped, text, turns, user


def test_a_queued_prompt_that_is_sent_counts_once() -> None:
    """A queued prompt counts on the line where it was sent. Its queue line is skipped."""
    records = (user("one"), queue("enqueue", "two  words"), assistant(text("ok")), queue("dequeue"), user("two words"))

    assert [(turn.line, turn.text) for turn in turns(*records)] == [(1, "one"), (3, "ok"), (5, "two words")]
    assert skipped(*records) == [(4, "bookkeeping"), (2, "queued")]


def test_a_prompt_that_a_resumed_session_sends_after_its_history_counts_once() -> None:
    """A resumed session records the queued prompt, then a copy of older exchanges, and then the sent prompt."""
    now, before = "2026-03-01T10:00:00.000Z", "2026-02-28T09:00:00.000Z"
    history = (user("one", timestamp=before), assistant(text("ok"), timestamp=before))
    records = (queue("enqueue", "two"), queue("dequeue"), *history, user("two", timestamp=now))

    assert [(turn.line, turn.text) for turn in turns(*records)] == [(3, "one"), (4, "ok"), (5, "two")]
    assert skipped(*records) == [(2, "bookkeeping"), (1, "queued")]


def test_a_queued_prompt_that_is_never_sent_is_kept() -> None:
    """A prompt that stays in the queue belongs to the exchange in which it was typed."""
    records = (queue("enqueue", "two"), user("one", timestamp="2026-02-28T09:00:00.000Z"))

    assert [(turn.line, turn.text) for turn in turns(*records)] == [(1, "two"), (2, "one")]


def test_a_line_with_other_events_than_a_queued_prompt_is_not_skipped() -> None:
    """A line with other events besides a queued prompt is not skipped. Two queued prompts are skipped once."""
    joined = jsonl([assistant(text("ok")), queue("enqueue", "two")]).replace(b"\n", b"")
    both = jsonl([queue("enqueue", "two"), queue("enqueue", "two")]).replace(b"\n", b"")

    sent = jsonl([queue("enqueue", "two"), user("two")]).replace(b"\n", b"")

    assert skipped(joined, user("two")) == []
    assert skipped(sent) == []
    assert skipped(both, user("two")) == []
    assert skipped(both, queue("popAll")) == [(2, "bookkeeping"), (1, "withdrawn")]


def test_a_queued_prompt_that_is_read_in_the_middle_of_work_is_kept() -> None:
    """A prompt that older versions recorded only in the queue is kept."""
    records = (user("one"), queue("enqueue", "and commit"), queue("remove"), assistant(text("ok")))

    assert [(turn.line, turn.kind, turn.text) for turn in turns(*records) if turn.speaker is HUMAN] == [
        (1, PROMPT, "one"),
        (2, PROMPT, "and commit"),
    ]


def test_a_queued_prompt_that_is_attached_counts_once() -> None:
    """A queued prompt that newer versions repeat as an attachment counts once."""
    attached = {"type": "queued_command", "prompt": "and commit", "commandMode": "prompt", "origin": {"kind": "human"}}
    notice = {"type": "queued_command", "prompt": "job done", "commandMode": "task-notification"}
    records = (
        queue("enqueue", "and commit"),
        {"type": "attachment", "attachment": attached},
        {"type": "attachment", "attachment": notice},
    )

    assert [(turn.line, turn.speaker, turn.text) for turn in turns(*records)] == [
        (2, HUMAN, "and commit"),
        (3, HOST, "job done"),
    ]


@pytest.mark.parametrize("queued", ["", "and commit"])
@pytest.mark.parametrize("later", ["typo", "and commit"])
def test_a_prompt_that_was_read_is_not_withdrawn(queued: str, later: str) -> None:
    """Withdrawing affects only prompts that are still in the queue."""
    worked = (user("one"), queue("enqueue", "and commit"), queue("remove", queued), assistant(text("ok")))
    records = (*worked, queue("enqueue", later), queue("popAll"))

    assert [(turn.line, turn.text) for turn in turns(*records)] == [(1, "one"), (4, "ok"), (2, "and commit")]
    assert (5, "withdrawn") in skipped(*records)


def test_a_withdrawn_prompt_is_dropped() -> None:
    """A prompt that the user withdraws, edits and sends again counts only in its final form."""
    assert skipped(queue("enqueue", "typo"), queue("popAll")) == [(2, "bookkeeping"), (1, "withdrawn")]


@pytest.mark.parametrize("content", ['{"task_id": "b1"}', "<task-notification>x</task-notification>"])
def test_notices_in_the_queue_are_not_prompts(content: str) -> None:
    """Reports of background tasks in the queue are not prompts."""
    assert skipped(queue("enqueue", content)) == [(1, "queued")]


@pytest.mark.parametrize("first", ["text", "picture"])
def test_a_queued_prompt_with_a_picture_counts_once(first: str) -> None:
    """Only the record of the sent prompt contains the picture, before or after the text."""
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}}
    blocks = [text("see the logo"), picture] if first == "text" else [picture, text("see the logo")]
    attachment = {"type": "attachment", "attachment": {"type": "queued_command", "prompt": blocks}}

    for sent in (attachment, user(blocks)):
        found = turns(user("one"), queue("enqueue", "see the logo"), queue("remove"), sent)
        assert [(turn.line, "see the logo" in turn.text) for turn in found] == [(1, False), (4, True)]
        assert "[image/png, 0 KB]" in found[1].text
