"""gptme's logs: calls that are written in the text of a reply, their results, branches and sub-agents."""

from pathlib import Path
from typing import Any

import pytest

from palaver.archiver.formats.gptme import FORMAT
from palaver.core.conversation import Fact, Kind, SessionKind, Speaker

from ....cases import for_each
from .. import reading
from ..reading import notes, skipped


def message(role: str, content: str, **fields: Any) -> dict[str, Any]:
    return {"role": role, "content": content, "timestamp": "2026-03-01T10:00:00.000000", **fields}


def summary(*records: object) -> list[tuple[Speaker, Kind, str]]:
    return [(turn.speaker, turn.kind, turn.text) for turn in reading.turns(FORMAT, *records)]


ASKED = message("user", "Fix the login")


def test_a_conversation_is_read_message_by_message() -> None:
    """Calls are separated from the prose around them, and get the results that follow in order."""
    thought = "<think>\nHm\n<!-- think-sig: x -->\n</think>\n"
    reply = f"{thought}I look.\n\n```shell\nls\n```\n\nAnd save:\n\n```save a.py\nx = 1\n```"
    found = summary(
        message("system", "You are gptme."),
        ASKED,
        message("assistant", reply),
        message("system", "Ran command: `ls`"),
        message("system", "Saved to `a.py`"),
        message("system", "The context is nearly full."),
    )

    assert found == [
        (Speaker.HUMAN, Kind.PROMPT, "Fix the login"),
        (Speaker.ASSISTANT, Kind.THINKING, "Hm"),
        (Speaker.ASSISTANT, Kind.PROSE, "I look."),
        (Speaker.ASSISTANT, Kind.CALL, "shell: ls"),
        (Speaker.ASSISTANT, Kind.PROSE, "And save:"),
        (Speaker.ASSISTANT, Kind.CALL, "save: path=a.py, content=x = 1"),
        (Speaker.TOOL, Kind.RESULT, "Ran command: `ls`"),
        (Speaker.TOOL, Kind.RESULT, "a.py"),
        (Speaker.HOST, Kind.INJECTED, "The context is nearly full."),
    ]


@pytest.mark.parametrize(
    ("written", "call"),
    [
        ('@shell(call-1): {"command": "ls"}', "shell: ls"),
        ("<tool-use>\n<shell>\nls\n</shell>\n</tool-use>", "shell: ls"),
        ("````patch a.py\n```python\nx\n```\n````", "patch: path=a.py, content=```python\nx\n```"),
        ("```read\na.py\n```", "read: path=a.py"),
    ],
)
def test_calls_have_three_notations(written: str, call: str) -> None:
    """A call is a code block, JSON or XML. A longer fence contains shorter ones."""
    assert summary(ASKED, message("assistant", written))[1:] == [(Speaker.ASSISTANT, Kind.CALL, call)]


@for_each("text", ["```json\n{}\n```", "@shell(call-1): {no}", "Mail me@shell(x)"], label=lambda text: text[:8])
def test_other_text_is_prose(text: str) -> None:
    """Code blocks in other languages, and text that resembles a call, are prose."""
    assert summary(ASKED, message("assistant", text))[1:] == [(Speaker.ASSISTANT, Kind.PROSE, text)]


def test_a_result_may_name_its_call() -> None:
    """A result with an ID belongs to the call with this ID. Exit codes and errors are failures."""
    calls = '@shell(call-1): {"command": "a"}\n@shell(call-2): {"command": "b"}'
    found = reading.turns(
        FORMAT,
        ASKED,
        message("assistant", calls),
        message("system", "Ran command: `b`\nReturn code: 1", call_id="call-2"),
        message("system", "Ran command: `a`", call_id="call-1"),
    )

    assert [(turn.call, turn.failed) for turn in found[3:]] == [("call-2", True), ("call-1", False)]


def test_files_and_hidden_messages() -> None:
    """Attached files are named in the prompt. Hidden messages of the program are context."""
    found = reading.events(FORMAT, message("user", "Explain", files=["/shop/a.py"]), message("system", "x", hide=True))

    assert summary(message("user", "Explain", files=["/shop/a.py"])) == [
        (Speaker.HUMAN, Kind.PROMPT, "Explain\n[file /shop/a.py]")
    ]
    assert skipped(found) == [(2, "context")]


def test_tokens_have_two_places() -> None:
    """Older versions recorded the counts beside the model."""
    older = message("assistant", "a", metadata={"model": "p/m", "input_tokens": 4, "output_tokens": 1})
    newer = message("assistant", "b", metadata={"usage": {"input_tokens": 5, "cache_read_tokens": 2}})
    found = reading.events(FORMAT, ASKED, older, newer)

    assert [value.split()[1:] for _, value in notes(found, Fact.USAGE)] == [["4", "1"], ["7", "0"]]
    assert notes(found, Fact.MODEL) == [(2, "p/m")]


def test_the_folder_names_the_session(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings beside the messages contain title and folder. Views and events are no conversations."""
    logs = home / ".local" / "share" / "gptme" / "logs"
    names = ("a/conversation.jsonl", "a/branches/main-0.jsonl", "a/views/compact.jsonl", "a/events.jsonl")
    for name in (*names, "subagent-b/conversation.jsonl"):
        (logs / name).parent.mkdir(parents=True, exist_ok=True)
        (logs / name).write_text("{}")
    (logs / "a" / "config.toml").write_text('[chat]\nname = "Login"\nworkspace = "/home/demo/shop"\n')
    (logs / "subagent-b" / "workspace").symlink_to(home)
    found = [FORMAT.identify(path, b"") for root in FORMAT.roots() for path in FORMAT.transcripts(root)]

    assert [(each.native_id, each.kind, each.parent_id, each.title, each.cwd) for each in found] == [
        ("a-main-0", SessionKind.MAIN, "a", "Login", "/home/demo/shop"),
        ("a", SessionKind.MAIN, "", "Login", "/home/demo/shop"),
        ("subagent-b", SessionKind.SUBAGENT, "", "", str(home.resolve())),
    ]
    assert {each.project for each in found} == {"gptme"}  # Each conversation has a folder of its own.
    monkeypatch.setenv("GPTME_LOGS_HOME", str(logs / "a"))
    assert FORMAT.roots() == [logs / "a"]
