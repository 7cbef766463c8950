"""Sessions of Continue's extensions and of `cn`: context, calls that are recorded twice, counts, and dates."""

import json
from pathlib import Path
from typing import Any

from palaver.archiver.formats.continue_dev import FORMAT
from palaver.archiver.lines import opened
from palaver.core.conversation import Fact, Kind, Speaker

from .. import reading
from ..reading import notes, skipped, unaccounted

SESSION = "00000000-0000-4000-8000-000000000001"
HEADER = {"sessionId": SESSION, "title": "Login", "workspaceDirectory": "file:///home/demo/my%20shop"}


def item(role: str, content: object = "", /, **fields: Any) -> dict[str, Any]:
    of_message = {name: fields.pop(name) for name in ("toolCalls", "toolCallId", "usage", "id") if name in fields}
    return {"message": {"role": role, "content": content, **of_message}, "contextItems": [], **fields}


def state(call: str, tool: str, status: str = "done", /, *output: str, **arguments: Any) -> dict[str, Any]:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    outputs = [{"name": "Output", "description": "", "content": text} for text in output]
    return {"toolCallId": call, "toolCall": {"id": call, "function": function}, "status": status, "output": outputs}


def summary(*records: object) -> list[tuple[Speaker, Kind, str]]:
    return [(turn.speaker, turn.kind, turn.text) for turn in reading.turns(FORMAT, HEADER, *records)]


def test_a_document_is_read_message_by_message(tmp_path: Path) -> None:
    """The document's fields are the header, and each element of the history is a message."""
    path = tmp_path / f"{SESSION}.json"
    history = [
        item("user", [{"type": "text", "text": "Fix the login"}]),
        item("thinking", "Hm"),
        item("assistant", "I look.", toolCallStates=[state("c1", "read_file", "done", "x = 1", filepath="a.py")]),
        item("tool", "x = 1", toolCallId="c1"),
        item("assistant", "Done.", reasoning={"text": "So", "active": False}),
    ]
    path.write_text(json.dumps({**HEADER, "history": history}, indent=2))
    with opened(path) as file:
        data = file.read()
    found = list(FORMAT.reader(FORMAT.identify(path, data)).read(reading.lines(data)))

    assert summary(*history) == [
        (Speaker.HUMAN, Kind.PROMPT, "Fix the login"),
        (Speaker.ASSISTANT, Kind.THINKING, "Hm"),
        (Speaker.ASSISTANT, Kind.PROSE, "I look."),
        (Speaker.ASSISTANT, Kind.CALL, "read_file: filepath=a.py"),
        (Speaker.TOOL, Kind.RESULT, "a.py"),
        (Speaker.ASSISTANT, Kind.THINKING, "So"),
        (Speaker.ASSISTANT, Kind.PROSE, "Done."),
    ]
    assert notes(found, Fact.CWD)[0] == (1, "/home/demo/my shop")
    assert skipped(found) == [(5, "repeated")]
    assert unaccounted(FORMAT, data) == {}


def test_context_is_named_in_the_prompt() -> None:
    """Attached files are named in the prompt, and their text is injected. Hidden context has no name."""
    file = {"name": "a.py", "description": "shop/a.py", "content": "x = 1", "uri": {"value": "file:///shop/a.py"}}
    hidden = {"name": "Instructions", "description": "", "content": "Use the code above.", "hidden": True}

    assert summary(item("user", "Explain", contextItems=[file, hidden])) == [
        (Speaker.HUMAN, Kind.PROMPT, "Explain\n[/shop/a.py]"),
        (Speaker.HOST, Kind.INJECTED, "x = 1"),
        (Speaker.HOST, Kind.INJECTED, "Use the code above."),
    ]


def test_a_call_may_have_its_result_in_a_message_of_its_own() -> None:
    """A result that the reply does not contain follows as a message."""
    calls = [{"id": "c1", "function": {"name": "ls", "arguments": '{"dirPath": "."}'}}]

    assert summary(item("assistant", toolCalls=calls), item("tool", "a.py", toolCallId="c1")) == [
        (Speaker.ASSISTANT, Kind.CALL, "ls: dirPath=."),
        (Speaker.TOOL, Kind.RESULT, "a.py"),
    ]


def test_calls_that_failed_change_no_files() -> None:
    """Errors and refusals are failures. Files are those of finished calls."""
    calls = [
        state("c1", "Write", "errored", "no such folder", filepath="a.py"),
        state("c2", "Write", "canceled", filepath="b.py"),
        state("c3", "MultiEdit", "done", "ok", file_path="c.py"),
    ]
    results = reading.turns(FORMAT, HEADER, item("assistant", toolCallStates=calls))[1::2]

    assert [(turn.failed, turn.writes) for turn in results] == [(True, ()), (True, ()), (False, ("c.py",))]


def test_tokens_have_two_spellings() -> None:
    """The extensions and `cn` name the counts differently. `cn` records the model with them."""
    extension = item("assistant", "a", usage={"promptTokens": 12, "completionTokens": 3})
    program = item("assistant", "b", usage={"prompt_tokens": 7, "completion_tokens": 2, "model": "m"})
    found = reading.events(FORMAT, HEADER, extension, program)

    assert [value for _, value in notes(found, Fact.USAGE)] == ["line-2 12 3", "line-3 7 2"]
    assert notes(found, Fact.MODEL) == [(3, "m")]


def test_a_summary_replaces_the_earlier_conversation() -> None:
    """The summary is recorded with the last message that it covers."""
    assert summary(item("assistant", "Done.", conversationSummary="Fixed."))[1:] == [
        (Speaker.HOST, Kind.COMPACTION, "Fixed.")
    ]


def test_placeholders_are_no_titles() -> None:
    """Continue replaces the placeholder by a title later."""
    titles = ("New Session", "Untitled Session", "Login")
    found = [notes(reading.events(FORMAT, {**HEADER, "title": title}), Fact.TITLE) for title in titles]

    assert found == [[], [], [(1, "Login")]]


def test_the_list_of_sessions_has_the_time_of_creation(tmp_path: Path) -> None:
    """Without the list, the session has the time of its file."""
    path = tmp_path / f"{SESSION}.json"
    path.write_text("{}")
    dates: list[object] = ["1772359200000", "2026-03-01T10:00:00.000Z", "", 3]
    changed = FORMAT.identify(path, b"").ended
    started: list[int | None] = []
    for date in dates:
        (tmp_path / "sessions.json").write_text(json.dumps([{"sessionId": SESSION, "dateCreated": date}]))
        started.append(FORMAT.identify(path, b"").started)

    assert started == [1772359200000, 1772359200000, changed, changed]


def test_the_list_is_no_session(home: Path) -> None:
    """Sessions are found in the folder of Continue, without the list."""
    folder = home / ".continue" / "sessions"
    folder.mkdir(parents=True)
    for name in (f"{SESSION}.json", "sessions.json"):
        (folder / name).write_text("{}")

    assert [path.name for root in FORMAT.roots() for path in FORMAT.transcripts(root)] == [f"{SESSION}.json"]
