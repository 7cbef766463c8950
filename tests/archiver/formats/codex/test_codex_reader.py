"""Repeated records, session facts and skipped records of Codex rollouts of all versions."""

import json
from typing import Any

import pytest

from palaver.core.conversation import Fact, Kind, SessionKind, Speaker, Turn

from .. import reading
from ..reading import changed_by_resuming, jsonl, notes, skipped, unaccounted
from .codex_lines import (
    CALL,
    CODEX,
    PARENT,
    SESSION,
    agent_reply,
    completed_item,
    event,
    events,
    item,
    line,
    message_item,
    meta,
    prompt_event,
    summary,
    tool_call,
    tool_output,
    turns,
    user_prompt,
)


def test_prose_is_read_from_items_and_not_doubled() -> None:
    """Prose is read from items, and the line of the equal event is skipped as repeated."""
    found = events(*user_prompt("Go"), *agent_reply("Done."))

    assert [turn.line for turn in found if isinstance(turn, Turn) and turn.kind is Kind.PROSE] == [5]
    assert skipped(found) == [(3, "repeated"), (4, "repeated")]


def test_prose_that_only_an_event_has_is_kept() -> None:
    """Prose that is recorded only as an event is read from the event."""
    assert summary(*user_prompt("Go"), event("agent_message", message="Done."))[-1] == (Kind.PROSE, "Done.")
    assert summary(*user_prompt("Go"), completed_item("AgentMessage", content=[{"type": "Text", "text": "Done."}]))[
        -1
    ] == (
        Kind.PROSE,
        "Done.",
    )


def test_reasoning_summaries_are_thinking_and_count_once() -> None:
    """Reasoning summaries count once, although events and later items repeat them."""
    first = {"type": "summary_text", "text": "Look"}
    second = {"type": "summary_text", "text": "Act"}
    records = [
        event("agent_reasoning", text="Look"),
        item("reasoning", summary=[first], encrypted_content="x"),
        event("agent_reasoning", text="Look"),
        event("agent_reasoning", text="Act"),
        item("reasoning", summary=[first, second], encrypted_content="x"),
        item("reasoning", summary=[first], encrypted_content="x"),
    ]

    assert summary(*records) == [(Kind.THINKING, "Look"), (Kind.THINKING, "Act")]


def test_an_equal_thought_in_another_exchange_is_kept() -> None:
    """A thought that repeats a thought of another exchange is kept."""
    thought = item("reasoning", summary=[{"text": "Look"}])

    assert summary(thought, *user_prompt("Go"), thought)[-1] == (Kind.THINKING, "Look")


def test_encrypted_reasoning_is_skipped() -> None:
    """Encrypted reasoning is skipped with the reason that it is encrypted."""
    assert skipped(events(item("reasoning", summary=[], encrypted_content="x"))) == [(2, "encrypted")]


def test_a_compaction_is_noted_and_its_copy_of_the_history_is_not_read() -> None:
    """A compaction is read without decoding its copy of the history, which may be damaged."""
    copy = (
        b'{"timestamp":"2026-03-01T10:00:00Z","type":"compacted","payload":{"message":"So far.","replacement_history":'
    )
    whole = line("compacted", {"message": "", "replacement_history": [message_item("Secret")["payload"]]})

    assert summary(copy + b"[broken") == [(Kind.COMPACTION, "So far.")]
    assert summary(whole) == [(Kind.COMPACTION, "Conversation compacted")]


def test_the_first_header_identifies_the_session() -> None:
    """The first header identifies a session, although forks and resumed sessions contain further headers."""
    ancestor = meta(id=PARENT, cwd="/elsewhere")
    found = events(ancestor, meta(), meta(git={"branch": "fix"}))

    assert reading.session(CODEX, jsonl([meta(), ancestor])).native_id == SESSION
    assert notes(found, Fact.CWD) == [(1, "/home/demo/shop")]
    assert notes(found, Fact.BRANCH) == [(4, "fix")]
    assert skipped(found) == [(2, "copied-header"), (3, "repeated")]


@pytest.mark.parametrize(
    ("fields", "kind", "parent"),
    [
        ({"source": {"subagent": {"thread_spawn": {"parent_thread_id": PARENT}}}}, SessionKind.SUBAGENT, PARENT),
        ({"source": {"subagent": "review"}}, SessionKind.SUBAGENT, ""),
        ({"thread_source": "subagent", "parent_thread_id": PARENT}, SessionKind.SUBAGENT, PARENT),
        ({"forked_from_id": PARENT}, SessionKind.MAIN, ""),
        ({"history_base": {"thread_id": PARENT, "end_ordinal_exclusive": 4}}, SessionKind.MAIN, ""),
    ],
)
def test_a_sub_agent_belongs_to_its_parent(fields: dict[str, Any], kind: SessionKind, parent: str) -> None:
    """A sub-agent belongs to its parent. A fork is a separate session with a link to its origin."""
    session = reading.session(CODEX, jsonl([meta(**fields)]))

    assert (session.kind, session.parent_id) == (kind, parent)
    if kind is SessionKind.MAIN:
        assert notes(reading.events(CODEX, meta(**fields)), Fact.PARENT) == [(1, PARENT)]


def test_the_task_of_a_sub_agent_is_a_prompt_of_the_host() -> None:
    """A message from the parent is a task. A message from a sub-agent is a report."""
    header = meta(source={"subagent": {"thread_spawn": {"parent_thread_id": PARENT}}})
    task = item("agent_message", author="/root", recipient="/root/a", content=[{"type": "input_text", "text": "Look"}])
    report = item("agent_message", author="/root/a/b", recipient="/root/a", content=[{"text": "Found"}])

    found = reading.turns(CODEX, header, prompt_event("Go"), task, report)

    assert [(turn.speaker, turn.kind) for turn in found] == [
        (Speaker.HOST, Kind.PROMPT),
        (Speaker.HOST, Kind.PROMPT),
        (Speaker.HOST, Kind.INJECTED),
    ]


def test_models_titles_and_usage_are_noted_when_they_are_new() -> None:
    """Models, titles and usage are noted once, although token counts repeat with each change of limits."""
    count = event(
        "token_count",
        info={"last_token_usage": {"input_tokens": 9, "output_tokens": 2}, "total_token_usage": {"total_tokens": 11}},
    )
    context = line("turn_context", {"model": "gpt-x", "cwd": "/home/demo/shop"})
    found = events(
        context, context, count, count, event("token_count", info=None), event("thread_name_updated", thread_name="T")
    )

    assert notes(found, Fact.MODEL) == [(2, "gpt-x")]
    assert notes(found, Fact.USAGE) == [(4, "11 9 2")]
    assert notes(found, Fact.TITLE) == [(7, "T")]
    assert skipped(found) == [(3, "repeated"), (5, "bookkeeping"), (6, "bookkeeping")]


def test_an_exchange_has_the_folder_and_the_branch_of_its_start() -> None:
    """The folder and the branch recorded before a prompt apply to its exchange."""
    data = jsonl(
        [
            meta(git={"branch": "main"}),
            *user_prompt("One"),
            line("turn_context", {"cwd": "/home/demo/till"}),
            *user_prompt("Two"),
        ]
    )

    assert [(each.cwd, each.branch) for each in reading.exchanges(CODEX, data)] == [
        ("/home/demo/shop", "main"),
        ("/home/demo/till", "main"),
    ]


def test_prompts_that_were_rolled_back_are_abandoned() -> None:
    """A rollback yields a rewind note with the line of the first abandoned prompt."""
    found = events(
        *user_prompt("One"), *user_prompt("Two"), *user_prompt("Three"), event("thread_rolled_back", num_turns=2)
    )

    assert notes(found, Fact.REWOUND) == [(8, "4")]


def test_a_rollback_beyond_the_start_of_reading_asks_for_the_whole_file() -> None:
    """A rollback to a line before the start of reading requests a read of the whole file."""
    data = jsonl([meta(), *user_prompt("One"), *user_prompt("Two"), event("thread_rolled_back", num_turns=2)])
    second = reading.exchanges(CODEX, data)[1].span
    reader = CODEX.reader(reading.session(CODEX, data))

    found = list(reader.read(reading.lines(data, second.start_line, second.start_byte)))

    assert notes(found, Fact.REWOUND) == [(6, "")]


def test_the_oldest_rollouts_have_no_envelopes() -> None:
    """The oldest rollouts have headers, items and state lines without envelopes."""
    records: list[dict[str, Any]] = [
        {"id": SESSION, "timestamp": "2025-06-01T10:00:00Z", "instructions": None, "git": {"branch": "main"}},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go"}]},
        {"type": "function_call", "name": "shell", "arguments": '{"command":["ls"]}', "call_id": "call_1"},
        {"type": "function_call_output", "call_id": "call_1", "output": '{"output":"a","metadata":{"exit_code":0}}'},
    ]
    found = reading.events(CODEX, *records)

    assert CODEX.recognises(records[:1])
    assert reading.session(CODEX, jsonl(records)).native_id == SESSION
    assert [(turn.kind, turn.text) for turn in found if isinstance(turn, Turn)] == [
        (Kind.PROMPT, "Go"),
        (Kind.CALL, "shell: ls"),
        (Kind.RESULT, "a"),
    ]
    assert skipped(found) == [(2, "bookkeeping")]


def test_a_turn_of_version_0_169_is_read_once() -> None:
    """A turn as version 0.169 records it: items, their copies as completed items, hooks, usage, and the state."""
    output = "Wall time: 0.1 seconds\nProcess exited with code 2\nOutput:\n1 failed\n"
    ran = {"command": ["/bin/bash", "-lc", "pytest"], "aggregated_output": "1 failed\n", "exit_code": 2}
    records = [
        event("task_started", turn_id="t"),
        message_item("<skills_instructions>…</skills_instructions>", role="developer"),
        message_item("<environment_context>\n  <cwd>/home/demo/shop</cwd>\n</environment_context>"),
        line("world_state", {"full": True, "state": {}}),
        line("turn_context", {"cwd": "/home/demo/shop", "model": "m"}),
        event("thread_settings_applied", thread_settings={}),
        message_item("Past sessions: <recalled-7>", role="developer"),
        message_item("Run the tests"),
        completed_item("UserMessage", content=[{"type": "text", "text": "Run the tests"}]),
        completed_item("Reasoning", summary_text=["Run pytest."], raw_content=[]),
        item("reasoning", summary=[{"type": "summary_text", "text": "Run pytest."}], encrypted_content=None),
        tool_call("exec_command", '{"cmd": "pytest"}'),
        line("token_usage_record", {"usage": {"input_tokens": 120, "output_tokens": 30}}),
        event("item_completed", item={"type": "CommandExecution", "id": CALL, "status": "failed", **ran}),
        tool_output(output),
        event("token_count", info={"last_token_usage": {"input_tokens": 120, "output_tokens": 30}}),
        completed_item("AgentMessage", content=[{"type": "Text", "text": "One test fails."}]),
        message_item("One test fails.", role="assistant"),
        event("task_complete", last_agent_message="One test fails."),
    ]

    assert [found for found in summary(*records) if found[0] is not Kind.INJECTED] == [
        (Kind.PROMPT, "Run the tests"),
        (Kind.THINKING, "Run pytest."),
        (Kind.CALL, "exec_command: pytest"),
        (Kind.RESULT, "Exit code 2\n1 failed"),
        (Kind.PROSE, "One test fails."),
    ]
    assert not [reason for _, reason in skipped(events(*records)) if reason.startswith("unknown")]
    assert unaccounted(CODEX, jsonl([meta(), *records])) == {}


def test_unknown_records_are_skipped_by_name() -> None:
    """A record type of a later version is skipped with its type name."""
    records = [
        event("new_thing"),
        item("new_item"),
        line("new_kind", {}),
        completed_item("NewItem"),
        {},
        {"payload": 3},
    ]

    assert [reason for _, reason in skipped(events(*records))] == [
        "unknown-type:event_msg/new_thing",
        "unknown-type:response_item/new_item",
        "unknown-type:new_kind",
        "unknown-type:item/NewItem",
        "unknown-type:None",
        "unknown-type:None",
    ]


def test_copies_of_a_line_share_an_id_and_other_lines_do_not() -> None:
    """IDs such as `call_1` occur in every session, so they do not identify a record."""
    first, again = turns(message_item("A"), message_item("A"))
    counted = [
        turns(tool_call("shell", '{"command":"ls"}', call="call_1"), *user_prompt(word))[0].record
        for word in ("x", "y")
    ]
    results = turns(tool_output("a", call="call_1"), tool_output("b", call="call_1"))
    real = turns(tool_call("shell", "{}"), tool_output("ok"))

    assert first.record == again.record
    assert counted[0] == counted[1]
    assert results[0].record != results[1].record
    assert [CALL in turn.record for turn in real] == [True, True]
    assert real[0].record != real[1].record


def test_output_in_a_later_exchange_belongs_to_no_call() -> None:
    """Calls are forgotten at the start of the next exchange."""
    data = jsonl(
        [meta(), *user_prompt("Go"), tool_call("shell", '{"command":"ls"}'), *user_prompt("Stop"), tool_output("ok")]
    )

    assert changed_by_resuming(CODEX, data) == []


def test_two_records_on_one_line_are_both_read() -> None:
    """A line is not skipped if only one of its two records is repeated."""
    glued = b"".join(
        json.dumps(record).encode() for record in (prompt_event("Go"), event("agent_message", message="Done."))
    )

    assert summary(glued) == [(Kind.PROMPT, "Go"), (Kind.PROSE, "Done.")]
    assert unaccounted(CODEX, jsonl([meta(), glued, message_item("Done.", role="assistant")])) == {}
