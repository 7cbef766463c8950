"""Tests of `codex.py`."""

import json
from pathlib import Path
from typing import Any

import pytest

from palaver.archiver.formats.registry import all_formats, recognise
from palaver.archiver.lines import trim
from palaver.core.conversation import Fact, Kind, SessionKind, Speaker, Turn

from ....cases import for_each
from .. import reading
from ..reading import changed_by_resuming, jsonl, notes, skipped, unaccounted
from .codex_lines import (
    CALL,
    CODEX,
    PARENT,
    PATCH,
    SESSION,
    agent_reply,
    authors,
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

# Locations and recognition of Codex rollouts.


def test_only_rollouts_are_recognised() -> None:
    """Rollouts are recognised. Records of other agents are not."""
    assert [known.agent for known in all_formats() if known.recognises([meta()])] == ["codex"]
    assert recognise(jsonl([{"type": "world_state", "payload": {}}])) is not None
    assert not CODEX.recognises([{"type": "event_msg"}, {"type": "user", "payload": {}}, {}])


def test_rollouts_are_found_in_both_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Current and archived rollouts are found. A compressed duplicate is ignored."""
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    day = tmp_path / "sessions" / "2026" / "03" / "01"
    archived = tmp_path / "archived_sessions"
    for path in (
        day / "rollout-a.jsonl",
        day / "rollout-a.jsonl.zst",
        day / "rollout-b.jsonl.zst",
        archived / "rollout-c.jsonl",
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    (tmp_path / "history.jsonl").write_bytes(b"")

    names = [CODEX.archive_name(path, root) for root in CODEX.roots() for path in CODEX.transcripts(root)]

    assert names == [
        "2026/03/01/rollout-a.jsonl",
        "2026/03/01/rollout-b.jsonl.zst",
        "archived_sessions/rollout-c.jsonl",
    ]


def test_without_a_header_the_file_name_identifies_the_session() -> None:
    """A file name that ends in a session ID identifies a session without a header."""
    path = Path(f"rollout-2026-03-01T10-00-00-{SESSION}.jsonl.zst")

    assert CODEX.identify(path, b"").native_id == SESSION
    assert CODEX.identify(Path("other.jsonl"), b"").native_id == "other"


# Authors of the texts in Codex rollouts: the user and the host.


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


# Repeated records, session facts and skipped records of Codex rollouts of all versions.


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
    assert skipped(found) == [(3, "repeated"), (5, "repeated"), (6, "bookkeeping")]


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
    first, _, again = turns(message_item("A"), message_item("B"), message_item("A"))
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


# Tool calls, their output, and the files of patches in Codex rollouts.


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("exec_command", '{"cmd":"make test","workdir":"/work"}', "exec_command: make test"),
        ("shell", '{"command":["bash","-lc","make test"]}', "shell: make test"),
        ("shell", '{"command":["git","status"]}', "shell: git status"),
        ("shell_command", {"command": "make"}, "shell_command: make"),
        ("write_stdin", '{"session_id":1,"chars":"y"}', "write_stdin: session_id=1, chars=y"),
        ("update_plan", '{"plan":[{"step":"Look","status":"pending"}]}', "update_plan: [pending] Look"),
        ("exec_command", '{"cmd": broken', 'exec_command: {"cmd": broken'),
        ("spawn_agent", None, "spawn_agent"),
    ],
)
def test_a_call_is_readable_text(name: str, arguments: object, text: str) -> None:
    """A call shows the command, the plan or the arguments. Invalid arguments are shown unchanged."""
    (turn,) = turns(tool_call(name, arguments))

    assert (turn.kind, turn.text, turn.tool, turn.call) == (Kind.CALL, text, name, CALL)


def test_a_tool_of_a_server_has_the_name_of_the_server() -> None:
    """The name of an MCP tool includes its server, in the usual form."""
    (turn,) = turns(item("function_call", name="_fetch", namespace="mcp__hub", arguments="{}", call_id=CALL))

    assert turn.tool == "mcp__hub__fetch"


@pytest.mark.parametrize(
    ("record", "text"),
    [
        (item("web_search_call", action={"type": "search", "query": "rust"}), "web_search: rust"),
        (item("web_search_call", action={"type": "open_page", "url": "https://x"}), "web_search: https://x"),
        (item("local_shell_call", call_id=CALL, action={"command": ["sh", "-c", "ls"]}), "local_shell: ls"),
        (item("custom_tool_call", name="exec", input="text(1)", call_id=CALL), "exec: text(1)"),
        (item("tool_search_call", arguments={"query": "pr"}, call_id=CALL), "tool_search: query=pr"),
    ],
)
def test_every_type_of_call_is_a_call(record: dict[str, Any], text: str) -> None:
    """Searches, scripts and shell calls have separate record types, and all are calls."""
    assert summary(record) == [(Kind.CALL, text)]


@for_each(
    "output, text, failed",
    [
        ("Chunk ID: a1\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\nok", "ok", False),
        ("Chunk ID: a1\nWall time: 0.1 seconds\nProcess exited with code 2\nOutput:\nno", "Exit code 2\nno", True),
        ("Exit code: 1\nWall time: 0 seconds\nOutput:\nno", "Exit code 1\nno", True),
        ('{"output":"no","metadata":{"exit_code":1,"duration_seconds":0.1}}', "Exit code 1\nno", True),
        ('{"output":"ok","metadata":{"exit_code":0}}', "ok", False),
        ({"content": "no", "success": False}, "no", True),
        ([{"text": "Script failed\nOutput:\n"}, {"text": "no"}], "no", True),
        ([{"type": "input_text", "text": "ok"}, {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}],
         "ok\n[image/png, 0 KB]", False),
        ("Wall time: 1 seconds\nOutput:\nok\nExit code: 1", "ok\nExit code: 1", False),
        ("the words Exit code: 1 in a text", "the words Exit code: 1 in a text", False),
        ('{"a": 1}', '{"a": 1}', False),
        ("execution error: timed out", "execution error: timed out", True),
    ],
)  # fmt: skip
def test_output_has_no_header_and_fails_by_its_exit_code(output: object, text: str, failed: bool) -> None:
    """Output headers are removed, and the header's exit code determines failure.

    Text that only mentions an exit code does not count as a failure.
    """
    result = turns(tool_call("exec_command", '{"cmd":"x"}'), tool_output(output))[-1]

    assert (result.kind, result.text, result.failed, result.tool) == (Kind.RESULT, text, failed, "exec_command")


def patch(**fields: Any) -> list[dict[str, Any]]:
    return [
        item("custom_tool_call", name="apply_patch", input=PATCH, call_id=CALL),
        event("patch_apply_end", call_id=CALL, **fields),
        item("custom_tool_call_output", call_id=CALL, output="Exit code: 0\nOutput:\nSuccess"),
    ]


def test_the_files_of_a_patch_come_from_the_event_that_ends_it() -> None:
    """The event that ends a patch lists its files, including moved files."""
    found = turns(*patch(success=True, changes={"/w/a.py": {"type": "update", "move_path": "/w/c.py"}}))

    assert [(turn.kind, turn.writes) for turn in found] == [(Kind.CALL, ()), (Kind.RESULT, ("/w/a.py", "/w/c.py"))]


def test_a_failed_patch_writes_no_files() -> None:
    """The paths of a failed patch do not count as written."""
    result = turns(*patch(success=False, stderr="no such line", changes={"/w/a.py": {}}))[-1]

    assert (result.writes, result.failed, result.text) == ((), True, "no such line")


def test_without_an_event_the_files_come_from_the_patch() -> None:
    """For older versions and shell commands, the file list comes from the patch text."""
    call, _, output = patch()
    shell = tool_call("shell", json.dumps({"command": ["bash", "-lc", f"apply_patch <<'E'\n{PATCH}\nE"]}))

    assert turns(call, output)[-1].writes == ("a.py", "b.py")
    assert turns(shell, tool_output("ok"))[-1].writes == ("a.py", "b.py")


def test_a_paginated_history_has_patches_and_commands_as_items() -> None:
    """In a paginated history, completed items replace the events of patches and commands."""
    changed = completed_item("FileChange", changes={"/w/a.py": {}}, status="completed")
    ran = completed_item("CommandExecution", command=["sh", "-c", "ls"], aggregated_output="a.py", exit_code=3)
    first, second = turns(changed, ran)

    assert first.writes == ("/w/a.py",)
    assert (second.text, second.failed) == ("Exit code 3\n$ ls\na.py", True)


def test_the_event_of_a_command_is_dropped_if_an_item_has_the_output() -> None:
    """Output that older versions recorded twice counts once."""
    end = event("exec_command_end", call_id=CALL, command=["ls"], aggregated_output="a.py", exit_code=0)

    assert summary(tool_call("exec_command", '{"cmd":"ls"}'), end, tool_output("a.py"))[1:] == [(Kind.RESULT, "a.py")]
    assert summary(tool_call("exec_command", '{"cmd":"ls"}'), end)[1:] == [(Kind.RESULT, "$ ls\na.py")]


@pytest.mark.parametrize(
    ("result", "text", "failed"),
    [
        ({"Ok": {"content": [{"type": "text", "text": "done"}]}}, "done", False),
        ({"Ok": {"content": [{"type": "text", "text": "no"}], "isError": True}}, "no", True),
        ({"Err": "timed out"}, "timed out", True),
    ],
)
def test_the_output_of_a_server_is_read_from_its_event(result: object, text: str, failed: bool) -> None:
    """The output of an MCP tool is read from its event if no item contains the output."""
    end = event("mcp_tool_call_end", call_id=CALL, invocation={"server": "hub", "tool": "get"}, result=result)
    (turn,) = turns(end)

    assert (turn.tool, turn.text, turn.failed) == ("mcp__hub__get", text, failed)


def test_found_tools_are_listed_by_name() -> None:
    """Tools found by a tool search are listed without their long descriptions."""
    output = item(
        "tool_search_output",
        call_id=CALL,
        tools=[{"name": "hub", "description": "x" * 999, "tools": [{"name": "get"}]}],
    )

    assert summary(output) == [(Kind.RESULT, "hub, get")]


def test_long_output_is_shortened_on_request() -> None:
    """Long output is shortened on request, while the archived line stays complete."""
    short, whole = (turns(tool_output("x" * 9000), shorten=shorten)[-1] for shorten in (True, False))

    assert len(trim(short.text)) < 2000
    assert len(whole.text) == 9000


def test_interruptions_and_errors_are_turns() -> None:
    """Interruptions and errors are turns that show why an exchange ended."""
    assert [(turn.text, turn.failed) for turn in turns(event("turn_aborted", reason="interrupted"))] == [
        ("Turn aborted: interrupted", True)
    ]
    assert summary(event("error", message="quota")) == [(Kind.INJECTED, "quota")]
