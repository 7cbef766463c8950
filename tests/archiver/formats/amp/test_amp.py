"""Amp's threads: blocks of messages, results of tools, and the thread's own facts."""

import json
from pathlib import Path
from typing import Any

from palaver.archiver.formats.amp import FORMAT
from palaver.archiver.lines import opened
from palaver.core.conversation import Fact, Kind, Speaker

from .. import reading
from ..reading import notes, unaccounted

THREAD = "T-00000000-0000-4000-8000-000000000001"
TREE = {"uri": "file:///home/demo/my%20shop", "repository": {"type": "git", "ref": "refs/heads/main"}}
ENVIRONMENT = {"initial": {"trees": [TREE], "platform": {"client": "CLI", "clientVersion": "0.0.1"}}}
HEADER = {"v": 9, "id": THREAD, "created": 1772359200000, "title": "Login", "env": ENVIRONMENT}


def message(role: str, *blocks: dict[str, Any] | str, **fields: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    return {"role": role, "content": content, **fields}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": "t1", "name": name, "input": arguments, "complete": True}


def ran(status: str = "done", **fields: Any) -> dict[str, Any]:
    return message("user", {"type": "tool_result", "toolUseID": "t1", "run": {"status": status, **fields}})


def summary(*records: object) -> list[tuple[Speaker, Kind, str]]:
    return [(turn.speaker, turn.kind, turn.text) for turn in reading.turns(FORMAT, HEADER, *records)]


def test_a_thread_is_read_message_by_message(tmp_path: Path) -> None:
    """A thread is one document, in which the environment follows the messages."""
    messages = [
        message("user", "Fix the login", meta={"sentAt": 1772359201000}),
        message("assistant", {"type": "thinking", "thinking": "Hm"}, "I look.", call("Read", path="a.py")),
        ran(result={"absolutePath": "a.py", "content": "x = 1"}),
        message("assistant", "Done."),
    ]
    path = tmp_path / f"{THREAD}.json"
    path.write_text(json.dumps({"v": 9, "id": THREAD, "created": 1, "messages": messages, "env": ENVIRONMENT}))
    with opened(path) as file:
        data = file.read()
    found = list(FORMAT.reader(FORMAT.identify(path, data)).read(reading.lines(data)))

    assert summary(*messages) == [
        (Speaker.HUMAN, Kind.PROMPT, "Fix the login"),
        (Speaker.ASSISTANT, Kind.THINKING, "Hm"),
        (Speaker.ASSISTANT, Kind.PROSE, "I look."),
        (Speaker.ASSISTANT, Kind.CALL, "Read: path=a.py"),
        (Speaker.TOOL, Kind.RESULT, "a.py"),
        (Speaker.ASSISTANT, Kind.PROSE, "Done."),
    ]
    assert notes(found, Fact.CWD)[0] == (1, "/home/demo/my shop")
    assert unaccounted(FORMAT, data) == {}


def test_commands_have_two_generations_of_names() -> None:
    """The older shell names its folder beside the command, which is left out."""
    older, newer = call("Bash", cmd="ls", cwd="/shop"), call("shell_command", command="ls", workdir="/shop")

    assert summary(message("assistant", older, newer)) == [
        (Speaker.ASSISTANT, Kind.CALL, "Bash: ls"),
        (Speaker.ASSISTANT, Kind.CALL, "shell_command: ls"),
    ]


def test_results_have_many_forms() -> None:
    """A result is text, an object or a list. Errors, refusals and exit codes are failures."""
    runs = [
        ran(result="fine"),
        ran(result={"output": "no", "exitCode": 1}),
        ran(result=["a.py", "b.py"]),
        ran("error", error={"message": "gone"}),
        ran("rejected-by-user", reason="No."),
        ran("cancelled"),
    ]
    results = reading.turns(FORMAT, HEADER, *runs)

    assert [(turn.text, turn.failed) for turn in results] == [
        ("fine", False),
        ("no", True),
        ('["a.py","b.py"]', False),
        ("gone", True),
        ("No.", True),
        ("cancelled", True),
    ]


def test_a_thread_has_facts_and_tokens() -> None:
    """Tokens of the cache count as input. The time of a reply is that of its usage."""
    counts = {"inputTokens": 10, "cacheReadInputTokens": 5, "cacheCreationInputTokens": 2, "outputTokens": 3}
    reply = message("assistant", "Hi", usage={"model": "m", "timestamp": "2026-03-01T10:00:02Z", **counts})
    found = reading.events(FORMAT, HEADER, reply)
    facts = (Fact.SESSION, Fact.TITLE, Fact.CWD, Fact.BRANCH, Fact.VERSION, Fact.MODEL, Fact.USAGE)

    assert [notes(found, fact)[0][1] for fact in facts] == [
        THREAD,
        "Login",
        "/home/demo/my shop",
        "main",
        "0.0.1",
        "m",
        "line-2 17 3",
    ]
    assert reading.turns(FORMAT, HEADER, reply)[0].at == 1772359202000


def test_threads_are_found(home: Path) -> None:
    """Threads are in the data folder, without the files of the program beside them."""
    folder = home / ".local" / "share" / "amp" / "threads"
    folder.mkdir(parents=True)
    (folder / f"{THREAD}.json").write_text("{}")
    (folder.parent / "session.json").write_text("{}")

    assert [path.name for root in FORMAT.roots() for path in FORMAT.transcripts(root)] == [f"{THREAD}.json"]
