"""Junie's event streams: versions of blocks, calls, answers of the user, and the list of sessions."""

import json
from pathlib import Path
from typing import Any

import pytest

from palaver.archiver.formats.junie import FORMAT
from palaver.core.conversation import Fact, Kind, Speaker

from .. import reading
from ..reading import notes, skipped

ASKED = {"kind": "UserPromptEvent", "requestId": "r1", "prompt": "Fix the login", "timestampMs": 1772359200000}


def block(kind: str, /, step: str = "s1", agent: str = "MainAgent", **fields: Any) -> dict[str, Any]:
    event = {"kind": kind, "agent": {"kind": agent, "id": "main"}, "stepId": step, **fields}
    return {"kind": "SessionA2uxEvent", "event": {"state": "IN_PROGRESS", "agentEvent": event}, "timestampMs": 1}


def summary(*records: object) -> list[tuple[Speaker, Kind, str]]:
    return [(turn.speaker, turn.kind, turn.text) for turn in reading.turns(FORMAT, *records)]


def test_a_session_is_read_event_by_event() -> None:
    """The prompt is what the user saw. Blocks of the agent are thoughts, prose and calls."""
    shown = {**ASKED, "prompt": "Fix the login\n<ide context>", "presentablePrompt": "Fix the login"}
    found = summary(
        shown,
        block("AgentThoughtBlockUpdatedEvent", text="Hm"),
        block("MarkdownBlockUpdatedEvent", "s2", text="I look."),
        block("TerminalBlockUpdatedEvent", "s3", status="COMPLETED", command="ls", output="a.py"),
        block("ToolBlockUpdatedEvent", "s4", status="COMPLETED", text='Found "a.py"', details="1 file"),
        block("McpBlockUpdatedEvent", "s5", status="COMPLETED", toolName="idea/find", input={"name": "x"}, output="no"),
        block("ResultBlockUpdatedEvent", "s6", cancelled=False, result="<!-- ANSWER -->Done.", changes=[]),
    )

    assert found == [
        (Speaker.HUMAN, Kind.PROMPT, "Fix the login"),
        (Speaker.ASSISTANT, Kind.THINKING, "Hm"),
        (Speaker.ASSISTANT, Kind.PROSE, "I look."),
        (Speaker.ASSISTANT, Kind.CALL, "terminal: ls"),
        (Speaker.TOOL, Kind.RESULT, "a.py"),
        (Speaker.ASSISTANT, Kind.CALL, 'tool: action=Found "a.py"'),
        (Speaker.TOOL, Kind.RESULT, "1 file"),
        (Speaker.ASSISTANT, Kind.CALL, "idea/find: name=x"),
        (Speaker.TOOL, Kind.RESULT, "no"),
        (Speaker.ASSISTANT, Kind.PROSE, "Done."),
    ]


def test_the_last_version_of_a_block_counts() -> None:
    """Earlier versions are replaced. The repetitions at the end of a task are not read again."""
    started = block("TerminalBlockUpdatedEvent", status="IN_PROGRESS", command="ls")
    ended = block("TerminalBlockUpdatedEvent", status="FAILED", command="ls", output="no")
    again = {**ended, "timestampMs": 9}
    found = reading.events(FORMAT, ASKED, started, ended, again)

    assert skipped(found) == [(2, "replaced"), (4, "repeated")]
    assert [(turn.line, turn.failed) for turn in reading.turns(FORMAT, ASKED, started, ended, again)[1:]] == [
        (3, False),
        (3, True),
    ]


def test_files_are_those_that_the_agent_viewed_or_changed() -> None:
    """A file can be created, changed or deleted. The final reply can contain changes too."""
    changes = [{"afterRelativePath": "a.py"}, {"beforeRelativePath": "b.py"}]
    viewed = block("ViewFilesBlockUpdatedEvent", "s1", status="COMPLETED", files=[{"relativePath": "c.py"}])
    changed = block("FileChangesBlockUpdatedEvent", "s2", status="COMPLETED", changes=changes)
    answer = block("ResultBlockUpdatedEvent", "s3", result="Done.", changes=changes)
    results = [turn for turn in reading.turns(FORMAT, ASKED, viewed, changed, answer) if turn.kind is Kind.RESULT]

    assert [(turn.reads, turn.writes) for turn in results] == [
        (("c.py",), ()),
        ((), ("a.py", "b.py")),
        ((), ("a.py", "b.py")),
    ]


def test_answers_of_the_user_are_prompts() -> None:
    """A question of the agent is prose, and the answer opens an exchange."""
    asked = block("AskAsyncRequestUpdatedEvent", request={"id": "q", "question": "Go on?"})
    answered = {"kind": "UserAsyncResponseEvent", "entries": [{"question": "Go on?", "answer": "Yes"}]}

    assert summary(ASKED, asked, answered)[1:] == [
        (Speaker.ASSISTANT, Kind.PROSE, "Go on?"),
        (Speaker.HUMAN, Kind.PROMPT, "Yes"),
    ]


def test_words_of_sub_agents_are_not_the_agents() -> None:
    """The agent of a block is named in it."""
    words = block("MarkdownBlockUpdatedEvent", agent="CustomAgent", text="I looked.")

    assert summary(ASKED, words)[1:] == [(Speaker.HOST, Kind.PROSE, "I looked.")]


@pytest.mark.parametrize(
    ("record", "text"),
    [
        (block("AgentFailureEvent", message="No credit"), "No credit"),
        ({"kind": "SystemMessageEvent", "text": "Notice", "details": "Details", "level": "ERROR"}, "Notice\nDetails"),
        ({"kind": "AgentTaskFailedEvent"}, "The task failed"),
        ({"kind": "CancelAgentEvent"}, "Cancelled by the user"),
    ],
)
def test_failures_are_notices_of_the_program(record: dict[str, Any], text: str) -> None:
    """Failures and messages of the program are injected."""
    [notice] = reading.turns(FORMAT, ASKED, record)[1:]

    assert (notice.speaker, notice.text, notice.failed) == (Speaker.HOST, text, True)


def test_facts_come_from_several_events() -> None:
    """One event can contain the usage of several models."""
    counts = {"inputTokens": 10, "cacheInputTokens": 2, "cacheCreateTokens": 1, "outputTokens": 3}
    found = reading.events(
        FORMAT,
        block("LlmResponseMetadataEvent", modelUsage=[{"model": "m", **counts}, {"model": "n", **counts}]),
        block("CurrentDirectoryUpdatedEvent", currentDirectory="/home/demo/shop"),
        block("AgentTaskNameUpdatedEvent", name="Login"),
        {"kind": "SessionTitleSetEvent", "name": "The login"},
        block("AgentStateUpdatedEvent", blob="{}"),
    )

    assert notes(found, Fact.USAGE) == [(1, "line-1 26 6")]
    assert notes(found, Fact.MODEL) == [(1, "n")]
    assert notes(found, Fact.CWD) == [(2, "/home/demo/shop")]
    assert notes(found, Fact.TITLE) == [(3, "Login"), (4, "The login")]
    assert skipped(found) == [(5, "bookkeeping")]


def test_the_list_of_sessions_contains_the_project(home: Path) -> None:
    """The last entry of a session counts. Other files in its folder are no transcripts."""
    root = home / ".junie" / "sessions"
    for name in ("session-1/events.jsonl", "session-1/state.json", "session-1/task-1/log.jsonl"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("{}")
    entries = [
        {"sessionId": "session-1", "projectDir": folder, "createdAt": 1772359200000} for folder in ("/old", "/new")
    ]
    (root / "index.jsonl").write_text("".join(f"{json.dumps(entry)}\n" for entry in [*entries, {"sessionId": "x"}]))
    [path] = [path for root in FORMAT.roots() for path in FORMAT.transcripts(root)]
    known = FORMAT.identify(path, b"")

    assert (known.native_id, known.cwd, known.started) == ("session-1", "/new", 1772359200000)
