"""Gemini CLI documents and JSON lines: authors, corrections and rewinds."""

import hashlib
import io
from pathlib import Path
from typing import Any

import orjson
import pytest

from palaver.archiver.copies.raw_copy import RawArchive
from palaver.archiver.formats import Event
from palaver.archiver.formats.gemini import Gemini
from palaver.archiver.formats.registry import all_formats, recognise
from palaver.archiver.ingest.ingest import Ingest
from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.lines import document_lines
from palaver.archiver.store import Store
from palaver.core.conversation import Fact, Kind, SessionKind, Speaker
from palaver.core.home import Home

from .. import reading
from ..reading import jsonl, notes, skipped

GEMINI = Gemini()
SESSION = "f7633853-6663-4dbb-bbf4-6159afa29df8"
TIME = "2026-03-01T10:00:00.000Z"
HEADER = {"sessionId": SESSION, "projectHash": "0b7d", "startTime": TIME, "lastUpdated": TIME, "kind": "main"}


def ident(number: int) -> str:
    return f"98b30b64-9492-42d4-bee3-{number:012d}"


def user(number: int, content: object, **fields: Any) -> dict[str, Any]:
    return {"id": ident(number), "timestamp": TIME, "type": "user", "content": content, **fields}


def model(number: int, content: str = "", **fields: Any) -> dict[str, Any]:
    return {"id": ident(number), "timestamp": TIME, "type": "gemini", "content": content, "model": "g", **fields}


def tool_call(name: str, args: dict[str, Any], output: str, status: str = "success") -> dict[str, Any]:
    answer = {"functionResponse": {"id": "c", "name": name, "response": {"output": output}}}
    return {"id": f"{name}-1", "name": name, "args": args, "status": status, "result": [answer]}


def events(*records: object) -> list[Event]:
    return reading.events(GEMINI, HEADER, *records)


def summary(*records: object) -> list[tuple[int, Speaker, Kind, str]]:
    """Return the line, the speaker, the kind and the text of each turn."""
    return [(turn.line, turn.speaker, turn.kind, turn.text) for turn in reading.turns(GEMINI, HEADER, *records)]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("Fix it", "Fix it"),
        ([{"text": "Fix it"}], "Fix it"),
        ({"text": "Fix it"}, "Fix it"),
        (["Fix", {"text": "it"}], "Fix\nit"),
        ([{"inlineData": {"mimeType": "image/png", "data": "A" * 4096}}], "[image/png, 3 KB]"),
        ("/usr/lib is full, why?", "/usr/lib is full, why?"),
    ],
)
def test_a_prompt_is_text_or_parts(content: object, text: str) -> None:
    """A prompt is text, a part, or a list of both."""
    assert summary(user(1, content)) == [(2, Speaker.HUMAN, Kind.PROMPT, text)]


def test_the_displayed_prompt_counts() -> None:
    """The prompt is the displayed text, without file contents that the program adds for the model."""
    prompt = user(1, "Fix @a.py\n--- Content of a.py ---\n…", displayContent="Fix @a.py")

    assert summary(prompt) == [(2, Speaker.HUMAN, Kind.PROMPT, "Fix @a.py")]


@pytest.mark.parametrize("text", ["/help", "/chat save x", "?", "<session_context>Today</session_context>"])
def test_commands_and_context_are_not_prompts(text: str) -> None:
    """Commands and context are injected."""
    assert [kind for _, _, kind, _ in summary(user(1, text))] == [Kind.INJECTED]


HOOKED = "<hook_context>## Memories\n&lt;recalled-7&gt;\n- Use tabs\n&lt;/recalled-7&gt;\n</hook_context>"


@pytest.mark.parametrize(
    "content",
    [[{"text": f"{HOOKED}\n\nFix it"}], [{"text": "Fix it"}, {"text": HOOKED}], f"{HOOKED}\n\nFix it"],
    ids=["session start", "before the agent", "text"],
)
def test_text_of_hooks_is_separated_from_the_prompt(content: object) -> None:
    """The text of a hook in the message of a prompt is injected, with its angle brackets restored."""
    assert summary(user(1, content)) == [
        (2, Speaker.HUMAN, Kind.PROMPT, "Fix it"),
        (2, Speaker.HOST, Kind.INJECTED, "## Memories\n<recalled-7>\n- Use tabs\n</recalled-7>"),
    ]


def test_instructions_before_the_task_of_a_sub_agent_are_separated() -> None:
    """The first message of a sub-agent begins with loaded instructions, which are injected."""
    loaded = {"text": "\n<loaded_context>\nUse tabs\n</loaded_context>"}
    header = {**HEADER, "kind": "subagent"}
    found = reading.turns(GEMINI, header, user(1, [loaded, {"text": "Find the login"}]))

    assert [(turn.kind, turn.text) for turn in found] == [(Kind.PROMPT, "Find the login"), (Kind.INJECTED, "Use tabs")]


def test_text_of_hooks_alone_is_not_a_prompt() -> None:
    """A message that contains only the text of a hook, or a command beside it, opens no exchange."""
    assert [kind for _, _, kind, _ in summary(user(1, HOOKED), user(2, f"{HOOKED}\n\n/help"))] == [Kind.INJECTED] * 3


def test_session_contexts_are_not_shared_by_sessions() -> None:
    """The context at the start of a session has the same ID in all sessions, but not the same record ID."""
    start = {**user(1, "<session_context>Today</session_context>"), "id": "d04923d38bb0f6017037e74183378ef4"}
    first, second = ({**start, "timestamp": at} for at in (TIME, "2026-03-02T10:00:00.000Z"))

    assert len({turn.record for each in (first, second) for turn in reading.turns(GEMINI, HEADER, each)}) == 2


@pytest.mark.parametrize(
    ("name", "output", "expected"),
    [
        ("run_shell_command", "<untrusted_context>\nOutput: 2 failed\nExit Code: 10\n</untrusted_context>", True),
        ("run_shell_command", "Output: 2 passed\nExit Code: 0\nSignal: 0", False),
        ("read_file", "Exit Code: 1", False),
    ],
)
def test_the_exit_code_of_a_command_counts(name: str, output: str, expected: bool) -> None:
    """A shell command with another exit code than 0 failed. The tag around untrusted output is removed."""
    result = reading.turns(GEMINI, HEADER, model(2, toolCalls=[tool_call(name, {}, output)]))[-1]

    assert result.failed is expected
    assert "untrusted_context" not in result.text


def test_a_reply_has_thoughts_prose_calls_and_results() -> None:
    """All parts of a reply share a group and a line."""
    reply = model(
        2,
        "I wrote it.",
        thoughts=[{"subject": "Plan", "description": "One file."}],
        toolCalls=[tool_call("write_file", {"file_path": "a.py", "content": "x"}, "Wrote a.py")],
        tokens={"input": 9, "output": 2, "thoughts": 1},
    )
    found = events(user(1, "Go"), reply)
    result = reading.turns(GEMINI, HEADER, user(1, "Go"), reply)[-1]

    assert summary(user(1, "Go"), reply)[1:] == [
        (3, Speaker.ASSISTANT, Kind.THINKING, "Plan\nOne file."),
        (3, Speaker.ASSISTANT, Kind.PROSE, "I wrote it."),
        (3, Speaker.ASSISTANT, Kind.CALL, "write_file: file_path=a.py, content=x"),
        (3, Speaker.TOOL, Kind.RESULT, "a.py"),
    ]
    assert result.writes == ("a.py",)
    assert notes(found, Fact.USAGE) == [(3, f"{ident(2)} 9 3")]
    assert notes(found, Fact.MODEL) == [(3, "g")]


def test_a_failed_call_touches_no_file() -> None:
    """Failed, refused and cancelled calls list no files."""
    failed = tool_call("read_file", {"file_path": "a.py"}, "No such file", "error")
    result = reading.turns(GEMINI, HEADER, model(2, toolCalls=[failed]))[-1]

    assert (result.failed, result.reads, result.text) == (True, (), "No such file")


def test_a_corrected_message_replaces_the_earlier_one() -> None:
    """The lines of earlier states of a message are skipped as replaced."""
    first, last = (
        model(2, "Let me"),
        model(2, "Let me look.", toolCalls=[tool_call("glob", {}, "a.py")]),
    )
    records = (user(1, "Go"), first, last)

    assert [(line, text) for line, _, _, text in summary(*records)] == [
        (2, "Go"),
        (4, "Let me look."),
        (4, "glob"),
        (4, "a.py"),
    ]
    assert skipped(events(*records)) == [(3, "replaced")]


def test_a_repeated_prompt_counts_once() -> None:
    """The line of a repeated prompt is skipped as repeated."""
    assert skipped(events(user(1, "Go"), user(1, "Go", displayContent="Go"))) == [(3, "repeated")]


def test_a_rewind_abandons_a_message_and_all_that_follow() -> None:
    """A rewind to an unknown message abandons the whole conversation."""
    talk = (user(1, "One"), model(2, "1"), user(3, "Two"), model(4, "2"))

    assert notes(events(*talk, {"$rewindTo": ident(3)}), Fact.REWOUND) == [(6, "4")]
    assert notes(events(*talk, {"$rewindTo": ident(99)}), Fact.REWOUND) == [(6, "2")]
    assert skipped(events({"$rewindTo": ident(99)})) == [(2, "bookkeeping")]
    assert notes(events(*talk, {"$rewindTo": ident(3)}, user(5, "Three"), {"$rewindTo": ident(1)}), Fact.REWOUND) == [
        (6, "4"),
        (8, "2"),
    ]


def test_a_rewind_beyond_the_start_of_reading_asks_for_the_whole_file() -> None:
    """A rewind to a line before the start of reading requests a read of the whole file."""
    data = jsonl([HEADER, user(1, "One"), user(3, "Two"), {"$rewindTo": ident(1)}])
    second = reading.exchanges(GEMINI, data)[1].span
    reader = GEMINI.reader(reading.session(GEMINI, data))

    found = list(reader.read(reading.lines(data, second.start_line, second.start_byte)))

    assert notes(found, Fact.REWOUND) == [(4, "")]


def test_a_replaced_conversation_adds_only_new_messages() -> None:
    """A replaced conversation adds only its new messages. Messages after the last kept message are abandoned."""
    talk = (user(1, "One"), model(2, "1"), user(3, "Two"))
    shorter = {"$set": {"messages": [talk[0], talk[1], user(5, "Other")]}}
    found = events(*talk, shorter)

    assert notes(found, Fact.REWOUND) == [(5, "4")]
    assert [text for line, _, _, text in summary(*talk, shorter) if line == 5] == ["Other"]
    assert notes(events(*talk, {"$set": {"messages": [model(9, "Summary")]}}), Fact.REWOUND) == []


def test_changes_of_the_header_are_noted() -> None:
    """A changed summary yields a title. A changed time is bookkeeping."""
    found = events(
        {"$set": {"summary": "Blue files", "directories": ["/home/demo/shop"]}}, {"$set": {"lastUpdated": 1}}
    )

    assert notes(found, Fact.TITLE) == [(2, "Blue files")]
    assert notes(found, Fact.CWD) == [(2, "/home/demo/shop")]
    assert skipped(found) == [(3, "bookkeeping")]


def test_notices_are_injected_and_unknown_types_are_skipped() -> None:
    """Notices are parsed as injected text, error notices as failures. Unknown types are skipped."""
    notices = [{"id": kind, "type": kind, "content": "x"} for kind in ("info", "warning", "error")]
    found = [turn.failed for turn in reading.turns(GEMINI, HEADER, *notices)]

    assert found == [False, False, True]
    assert skipped(events({"id": "a", "type": "new"}, {"a": 1})) == [(2, "unknown-type:new"), (3, "unknown-type:")]


# Documents and JSON lines


def document(*messages: object) -> bytes:
    return orjson.dumps({"messages": list(messages), **HEADER}, option=orjson.OPT_INDENT_2)


def test_a_document_reads_like_its_json_lines() -> None:
    """A migrated conversation has the same records with the same ids."""
    talk = (user(1, "One"), model(2, "1", thoughts=[]), user(3, "Two"))
    older = document_lines(io.BytesIO(document(*talk))).read()

    assert recognise(older) is not None
    assert reading.exchanges(GEMINI, older) == reading.exchanges(GEMINI, jsonl([HEADER, *talk]))


def test_a_conversation_that_is_migrated_stays_one_session(tmp_path: Path) -> None:
    """A document that is rewritten with each message and then copied to JSON lines stays one session."""
    home, path = Home(tmp_path / "home"), tmp_path / "tmp" / "shop" / "chats" / "session-2026-03-01T10-00-f7633853.json"
    path.parent.mkdir(parents=True)
    home.make()
    talk = [user(1, "One"), model(2, "1"), user(3, "Two"), model(4, "2")]
    with Store.create(home.database) as store:
        ingest = Ingest(store, RawArchive(home.archive))
        for length in (2, 4):
            path.write_bytes(document(*talk[:length]))
            ingest.run(in_paths([tmp_path / "tmp"]))
        path.unlink()
        path.with_suffix(".jsonl").write_bytes(jsonl([HEADER, *talk, user(5, "Three")]))
        ingest.run(in_paths([tmp_path / "tmp"]))
        older, newer = store.sources.all()
        summary = [stored.exchange.prompt for stored in store.exchanges.load(store.items.all_keys()).values()]

        assert (older.coverage, newer.coverage) == ({"parsed": 5}, {"parsed": 2, "repeated": 4})
        assert (summary, store.sessions.count()) == (["One", "Two", "Three"], 1)


def test_a_conversation_on_one_line_is_read() -> None:
    """Whole documents on one line, as in the first versions of JSON lines, are read."""
    data = jsonl([{**HEADER, "messages": [user(1, "One"), model(2, "1")]}])

    assert [turn.text for exchange in reading.exchanges(GEMINI, data) for turn in exchange.turns] == ["One", "1"]


# File locations


def test_only_its_own_header_is_recognised() -> None:
    """A header is recognised by its project hash."""
    assert [known.agent for known in all_formats() if known.recognises([HEADER])] == ["gemini"]
    assert not GEMINI.recognises([{"sessionId": SESSION}, {"projectHash": "x"}, {}])


def test_conversations_are_recognised_by_content() -> None:
    """Any record that only Gemini CLI writes identifies a conversation, in a file of any name."""
    without_hash = {name: value for name, value in HEADER.items() if name != "projectHash"}
    records: list[dict[str, Any]] = [
        {**without_hash, "startTime": "2026-05-04T09:00:00Z", "lastUpdated": "2026-05-04T09:00:00Z"},
        {"id": "m2", "type": "gemini", "content": "Hello"},
        {"id": "m2", "type": "gemini", "toolCalls": []},
        {"$rewindTo": "m1"},
    ]
    found = {str(each): getattr(recognise(jsonl([each]), "notes.txt"), "agent", "") for each in records}

    assert found == dict.fromkeys(map(str, records), "gemini")


def test_a_project_is_named_by_the_registry_or_by_its_digest(tmp_path: Path) -> None:
    """The registry maps paths to folders. A digest identifies any path that a file of the agent contains."""
    digests = {path: hashlib.sha256(path.encode()).hexdigest() for path in ("/home/demo/shop", "/home/demo/bakery")}
    tmp = tmp_path / "tmp"
    for name in ("shop-2", "market", *digests.values(), "f" * 64):
        (tmp / name / "chats").mkdir(parents=True)
    (tmp / "market" / ".project_root").write_text("/home/demo/bakery")

    def folders() -> dict[str, str]:
        return {each.name: GEMINI.identify(each / "chats" / "a.jsonl", b"").cwd for each in tmp.iterdir()}

    before = folders()
    (tmp_path / "projects.json").write_text('{"projects": {"/home/demo/shop": "shop-2", "/x": 3}}')
    after = folders()
    (tmp_path / "projects.json").write_text('{"projects": [')
    by_hash = GEMINI.identify(
        tmp / "f" / "chats" / "a.jsonl", jsonl([{**HEADER, "projectHash": digests["/home/demo/bakery"]}])
    )

    assert after == {
        "shop-2": "/home/demo/shop",
        "market": "/home/demo/bakery",
        digests["/home/demo/shop"]: "/home/demo/shop",
        digests["/home/demo/bakery"]: "/home/demo/bakery",
        "f" * 64: "",
    }
    assert before == after | {"shop-2": "", digests["/home/demo/shop"]: ""} == folders()
    assert by_hash.cwd == "/home/demo/bakery"


def test_conversations_are_found_in_the_folders_of_projects(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Conversations are found in project folders. Migrated documents and other files are ignored."""
    monkeypatch.setenv("GEMINI_CLI_HOME", str(tmp_path))
    chats = tmp_path / ".gemini" / "tmp" / "shop" / "chats"
    names = [
        "session-2026-03-01T10-00-f7633853.json",
        "session-2026-03-02T10-00-f7633854.jsonl",
        f"{SESSION}/sub.jsonl",
    ]
    others = ["../logs.json", "../tool-outputs/a.json", "session-2026-03-02T10-00-f7633854.json", "a.txt"]
    for name in [*names, *others]:
        (chats / name).parent.mkdir(parents=True, exist_ok=True)
        (chats / name).write_bytes(b"")

    (root,) = GEMINI.roots()

    assert sorted(GEMINI.transcripts(root)) == sorted(chats / name for name in names)
    assert GEMINI.archive_name(chats / names[0], root) == f"shop/chats/{names[0]}"
    assert GEMINI.matches_name(names[0])
    assert not GEMINI.matches_name("logs.json")


def test_a_session_is_identified_by_its_header_and_folders(tmp_path: Path) -> None:
    """The header identifies a session. Folders provide the parent of a sub-agent and the path of the project."""
    chats = tmp_path / "shop" / "chats"
    (chats / "parent").mkdir(parents=True)
    (chats.parent / ".project_root").write_text("/home/demo/shop\n")
    head = jsonl([{**HEADER, "kind": "subagent"}])

    main = GEMINI.identify(chats / "a.jsonl", jsonl([HEADER]))
    below = GEMINI.identify(chats / "parent" / "b.jsonl", head)

    assert (main.native_id, main.kind, main.cwd) == (SESSION, SessionKind.MAIN, "/home/demo/shop")
    assert (below.kind, below.parent_id, below.cwd) == (SessionKind.SUBAGENT, "parent", "/home/demo/shop")
    assert GEMINI.identify(tmp_path / "session-x.json", b"").native_id == "session-x"
