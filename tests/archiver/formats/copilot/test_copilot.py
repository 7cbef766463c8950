"""Copilot CLI: authors, tool calls, and locations of transcripts."""

from pathlib import Path
from typing import Any

import pytest

from palaver.archiver.formats import Event
from palaver.archiver.formats.copilot import Copilot
from palaver.archiver.formats.registry import all_formats
from palaver.core.conversation import Fact, Kind, Speaker, Turn

from .. import reading
from ..reading import jsonl, notes, skipped, unaccounted

COPILOT = Copilot()
SESSION = "1afc31c8-0000-4000-8000-000000000001"
TIME = "2026-03-01T10:00:00.000Z"


def record(kind: str, /, **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": data, "id": "e1", "timestamp": TIME, "parentId": None}


def started(**context: Any) -> dict[str, Any]:
    place = {"cwd": "/home/demo/shop", "branch": "main", **context}
    return record("session.start", sessionId=SESSION, copilotVersion="1.0.64", selectedModel="gpt-x", context=place)


def user(content: str, **data: Any) -> dict[str, Any]:
    return record("user.message", content=content, transformedContent=f"<now/>{content}", **data)


def assistant(content: str = "", *calls: dict[str, Any], **data: Any) -> dict[str, Any]:
    return record("assistant.message", messageId="m1", content=content, toolRequests=list(calls), **data)


def call(name: str, arguments: object, call_id: str = "c1") -> dict[str, Any]:
    return {"toolCallId": call_id, "name": name, "arguments": arguments}


def started_call(name: str, arguments: object, call_id: str = "c1") -> dict[str, Any]:
    return record("tool.execution_start", toolCallId=call_id, toolName=name, arguments=arguments)


def completed_call(content: str, *, success: bool = True, call_id: str = "c1") -> dict[str, Any]:
    return record("tool.execution_complete", toolCallId=call_id, success=success, result={"content": content})


def events(*records: object) -> list[Event]:
    return reading.events(COPILOT, started(), *records)


def turns(*records: object) -> list[Turn]:
    return reading.turns(COPILOT, started(), *records)


def summary(*records: object) -> list[tuple[Speaker, Kind, str]]:
    """Return the speaker, the kind and the text of each turn."""
    return [(turn.speaker, turn.kind, turn.text) for turn in turns(*records)]


def test_a_prompt_is_the_typed_text_with_attachment_names() -> None:
    """A prompt excludes text that the program adds for the model."""
    attached = [{"type": "file", "path": "/w/a.py", "displayName": "a.py"}]

    assert summary(user("Fix it")) == [(Speaker.HUMAN, Kind.PROMPT, "Fix it")]
    assert summary(user("Fix it", attachments=attached)) == [(Speaker.HUMAN, Kind.PROMPT, "Fix it\n[/w/a.py]")]


def test_words_and_calls_of_a_sub_agent_are_not_the_agents() -> None:
    """Events of a sub-agent have the host as their speaker, however they name it. They open no exchange."""
    named: list[dict[str, Any]] = [{"agentId": "explore-1"}, {"data": {"parentToolCallId": "t1"}}]

    def of_subagent(event: dict[str, Any], marks: dict[str, Any]) -> dict[str, Any]:
        return {**event, **marks, "data": {**event["data"], **marks.get("data", {})}}

    for marks in named:
        records = [
            user("Compare them"),
            assistant("I ask a helper.", call("task", {"prompt": "Read it"}, "t1")),
            of_subagent(user("Read it"), marks),
            of_subagent(record("assistant.reasoning", content="Hm"), marks),
            of_subagent(assistant("I open it.", model="small"), marks),
            of_subagent(started_call("edit", {"path": "/a.py"}, "c2"), marks),
            of_subagent(completed_call("ok", call_id="c2"), marks),
            completed_call("Read.", call_id="t1"),
            record("assistant.message", messageId="m2", content="They are equal.", model="large"),
        ]
        found = summary(*records)
        [exchange] = reading.exchanges(COPILOT, jsonl([started(), *records]))

        assert found == [
            (Speaker.HUMAN, Kind.PROMPT, "Compare them"),
            (Speaker.ASSISTANT, Kind.PROSE, "I ask a helper."),
            (Speaker.ASSISTANT, Kind.CALL, "task: prompt=Read it"),
            (Speaker.HOST, Kind.INJECTED, "Read it"),
            (Speaker.HOST, Kind.THINKING, "Hm"),
            (Speaker.HOST, Kind.PROSE, "I open it."),
            (Speaker.HOST, Kind.CALL, "edit: path=/a.py"),
            (Speaker.TOOL, Kind.RESULT, "/a.py"),
            (Speaker.TOOL, Kind.RESULT, "Read."),
            (Speaker.ASSISTANT, Kind.PROSE, "They are equal."),
        ]
        assert (exchange.prompt, exchange.answer, exchange.writes) == ("Compare them", "They are equal.", ("/a.py",))
        without_last = reading.exchanges(COPILOT, jsonl([started(), *records[:-1]]))
        assert [each.answer for each in without_last] == ["I ask a helper."]
        assert [value for _, value in notes(events(*records), Fact.MODEL)] == ["gpt-x", "large"]


@pytest.mark.parametrize(("code", "failed"), [(0, False), (2, True), (None, False)])
def test_the_exit_code_of_a_command_counts(code: int | None, failed: bool) -> None:
    """A shell command with another exit code than 0 failed, although the tool succeeded."""
    done = completed_call("out")
    done["data"]["shellExecution"] = {"exitCode": code}

    assert turns(user("Go"), started_call("bash", {"command": "make"}), done)[-1].failed is failed


@pytest.mark.parametrize("fields", [{"source": "skill-pdf"}, {"isAutopilotContinuation": True}])
def test_messages_of_a_skill_or_the_autopilot_are_injected(fields: dict[str, Any]) -> None:
    """A message is injected if its event has a skill or the autopilot as the source."""
    assert summary(user("Go on", **fields)) == [(Speaker.HOST, Kind.INJECTED, "Go on")]


def test_a_reply_has_thinking_prose_and_calls() -> None:
    """All parts of a reply share a group. The start event of an announced call is dropped."""
    reply = assistant("I look.", call("bash", {"command": "ls", "description": "List"}), reasoningText="Hm")
    found = events(user("Go"), reply, started_call("bash", {"command": "ls"}), completed_call("a.py"))
    of_reply = [turn for turn in found if isinstance(turn, Turn) and turn.line == 3]

    assert [(turn.kind, turn.text) for turn in of_reply] == [
        (Kind.THINKING, "Hm"),
        (Kind.PROSE, "I look."),
        (Kind.CALL, "bash: ls  # List"),
    ]
    assert {turn.group for turn in of_reply} == {"m1"}
    assert skipped(found) == [(4, "repeated")]


@pytest.mark.parametrize("first", ["start", "message"])
def test_a_call_counts_once_in_either_order(first: str) -> None:
    """A message and a start event count as one call. A start event alone is a call too."""
    message, start = assistant("", call("bash", {"command": "ls"})), started_call("bash", {"command": "ls"})
    both = [start, message] if first == "start" else [message, start]

    assert [turn.kind for turn in turns(*both)] == [Kind.CALL]
    assert [turn.kind for turn in turns(start)] == [Kind.CALL]


@pytest.mark.parametrize(
    ("tool", "arguments", "reads", "writes"),
    [
        ("view", {"path": "/w/a.py"}, ("/w/a.py",), ()),
        ("edit", {"path": "/w/a.py", "old_str": "x"}, (), ("/w/a.py",)),
        ("create", {"path": "/w/a.py", "file_text": "x"}, (), ("/w/a.py",)),
        ("str_replace_editor", {"command": "view", "path": "/w/a.py"}, ("/w/a.py",), ()),
        ("str_replace_editor", {"command": "str_replace", "path": "/w/a.py"}, (), ("/w/a.py",)),
        ("grep", {"path": "/w", "pattern": "x"}, (), ()),
    ],
)
def test_results_have_the_files_that_were_touched(
    tool: str, arguments: dict[str, str], reads: tuple[str, ...], writes: tuple[str, ...]
) -> None:
    """The tool determines whether a result lists files as read or written. A failed call lists no files."""
    request = assistant("", call(tool, arguments))
    done, failed = turns(request, completed_call("ok"))[-1], turns(request, completed_call("no", success=False))[-1]

    assert (done.tool, done.reads, done.writes, done.failed) == (tool, reads, writes, False)
    assert (failed.reads, failed.writes, failed.failed, failed.text) == ((), (), True, "no")


def test_the_first_and_last_events_describe_the_session() -> None:
    """The first and last events provide folder, model, changed files and token usage."""
    end = record(
        "session.shutdown",
        codeChanges={"filesModified": ["/w/a.py"]},
        modelMetrics={"m": {"usage": {"inputTokens": 9, "outputTokens": 2}}, "n": {"requests": 1}},
    )
    found = events(record("session.model_change", newModel="gpt-y"), record("session.title_changed", title="T"), end)
    changed = [turn.writes for turn in found if isinstance(turn, Turn)]

    assert notes(found, Fact.SESSION) == [(1, SESSION)]
    assert notes(found, Fact.CWD) == [(1, "/home/demo/shop")]
    assert notes(found, Fact.BRANCH) == [(1, "main")]
    assert notes(found, Fact.VERSION) == [(1, "1.0.64")]
    assert notes(found, Fact.MODEL) == [(1, "gpt-x"), (2, "gpt-y")]
    assert notes(found, Fact.TITLE) == [(3, "T")]
    assert [value.split()[1:] for _, value in notes(found, Fact.USAGE)] == [["9", "2"]]
    assert changed == [("/w/a.py",)]


def test_an_exchange_has_the_folder_of_its_start() -> None:
    """A change of the folder applies to the prompts after it."""
    data = jsonl([started(), user("One"), record("session.context_changed", cwd="/home/demo/till"), user("Two")])

    assert [each.cwd for each in reading.exchanges(COPILOT, data)] == ["/home/demo/shop", "/home/demo/till"]


def test_other_records_are_skipped_by_reason() -> None:
    """Hooks, instructions and state are skipped with reasons. Unknown types are skipped by type name."""
    kinds = ("hook.start", "system.message", "session.info", "subagent.started", "assistant.turn_end", "new.thing")

    assert [reason for _, reason in skipped(events(*map(record, kinds)))] == [
        "hook-output",
        "context",
        "bookkeeping",
        "bookkeeping",
        "bookkeeping",
        "unknown-type:new.thing",
    ]


def test_errors_interruptions_and_compactions_are_turns() -> None:
    """Errors, interruptions and compactions are turns that show the end of an exchange or removed context."""
    assert summary(record("session.error", message="quota")) == [(Speaker.HOST, Kind.INJECTED, "quota")]
    assert summary(record("abort", reason="user")) == [(Speaker.HOST, Kind.INJECTED, "Aborted: user")]
    assert summary(record("session.compaction_complete")) == [(Speaker.HOST, Kind.COMPACTION, "Conversation compacted")]


def test_two_records_on_one_line_are_both_read() -> None:
    """A line is not skipped if only one of its two records is repeated."""
    glued = jsonl([user("Go")]).strip() + jsonl([started_call("bash", {})]).strip()
    records = [started(), glued, assistant("", call("bash", {}))]

    assert [turn.kind for turn in reading.turns(COPILOT, *records[:2])] == [Kind.PROMPT, Kind.CALL]
    assert unaccounted(COPILOT, jsonl(records)) == {}


def test_only_its_own_events_are_recognised() -> None:
    """Events are recognised by their fields for type, data and parent."""
    assert [known.agent for known in all_formats() if known.recognises([started()])] == ["copilot"]
    assert not COPILOT.recognises(
        [{"type": "session.start", "data": {}}, {"type": "user", "data": {}, "parentId": ""}, {}]
    )


def test_sessions_are_found_without_the_files_beside_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Other files are not transcripts. The folder name identifies a session if no event does."""
    monkeypatch.setenv("COPILOT_HOME", str(tmp_path))
    root = tmp_path / "session-state"
    for name in (f"{SESSION}/events.jsonl", f"{SESSION}/files/data.jsonl", "old.jsonl", f"{SESSION}/workspace.yaml"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")

    found = [path for root in COPILOT.roots() for path in COPILOT.transcripts(root)]

    assert [COPILOT.archive_name(path, root) for path in found] == [
        f"{SESSION}/events.jsonl",
        "session-state/old.jsonl",
    ]
    assert [COPILOT.identify(path, b"").native_id for path in found] == [SESSION, "old"]
