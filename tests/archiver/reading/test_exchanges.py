"""Tests of `exchanges.py`."""

import io
from collections.abc import Sequence
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from palaver.archiver.formats.claude_code import ClaudeCode
from palaver.archiver.lines import split
from palaver.archiver.reading.exchanges import (
    TextChange,
    changes_in,
    group_exchanges,
    link_late_results,
    mark_rewound,
    written_lines,
)
from palaver.core.conversation import Exchange, Kind, Note, Session, SessionKind, Skipped, Span, Speaker, Turn

from ..formats.claude_code.claude_lines import SESSION, assistant, jsonl, queue, result, text, tool, user
from ..history import History, talk

# Events are grouped into exchanges that begin with a prompt, and resumed reading yields the same exchanges.


def pieces(data: bytes, *, line: int = 1, byte: int = 0, ordinal: int = 0) -> list[Exchange | Note | Skipped]:
    reader = ClaudeCode().reader(Session("claude-code", SESSION))
    return list(
        group_exchanges(reader, split(io.BytesIO(data), start_line=line, start_byte=byte), first_ordinal=ordinal)
    )


def exchanges(data: bytes, *, line: int = 1, byte: int = 0, ordinal: int = 0) -> list[Exchange]:
    return [piece for piece in pieces(data, line=line, byte=byte, ordinal=ordinal) if isinstance(piece, Exchange)]


def grouped(*records: object) -> list[Exchange]:
    return exchanges(jsonl(records))


MODE = {"type": "mode", "mode": "normal"}
CAVEAT = user("<local-command-caveat>Caveat</local-command-caveat>", isMeta=True)


def test_an_exchange_begins_with_a_prompt() -> None:
    """An exchange begins on the line of its prompt and ends before the line of the next exchange."""
    first, second = grouped(user("one"), assistant(text("1")), MODE, user("two"), assistant(text("2"), id="msg_2"))

    assert (first.ordinal, first.prompt, first.answer) == (0, "one", "1")
    assert (second.ordinal, second.prompt, second.answer) == (1, "two", "2")
    assert (first.span.start_line, first.span.end_line) == (1, 3)
    assert (second.span.start_line, second.span.end_line) == (4, 5)


def test_the_span_of_bytes_matches_the_lines() -> None:
    """The byte range of an exchange contains exactly the bytes of its lines."""
    data = jsonl([user("one"), assistant(text("1")), user("two é"), assistant(text("2"))])
    lines = data.splitlines(keepends=True)

    for exchange in exchanges(data):
        span = exchange.span
        assert data[span.start_byte : span.end_byte] == b"".join(lines[span.start_line - 1 : span.end_line])


def test_injected_text_before_the_first_prompt_is_its_beginning() -> None:
    """Injected text before the first prompt belongs to the first exchange. Bookkeeping before it does not."""
    (only,) = grouped(MODE, CAVEAT, MODE, user("go"), assistant(text("ok")))

    assert (only.span.start_line, only.span.end_line, only.prompt) == (2, 5, "go")
    assert [turn.line for turn in only.turns] == [2, 4, 5]


def test_a_queued_first_prompt_begins_the_first_exchange() -> None:
    """A queued prompt before all other prompts begins the first exchange."""
    first, second = grouped(queue("enqueue", "early"), CAVEAT, user("go"))

    assert (first.prompt, first.span.start_line, first.span.end_line) == ("early", 1, 2)
    assert (second.prompt, second.span.start_line) == ("go", 3)


def test_turns_before_the_first_prompt_are_an_exchange() -> None:
    """Turns before the first prompt form an exchange without a prompt, so no turn is lost."""
    first, second = grouped(MODE, user("Summary", isCompactSummary=True), assistant(text("on")), user("go"))

    assert (first.prompt, first.answer, first.span.start_line, first.span.end_line) == ("", "on", 2, 3)
    assert (second.ordinal, second.prompt) == (1, "go")


def test_a_transcript_without_conversation_has_no_exchange() -> None:
    """Titles, modes and injected text alone form no exchange."""
    assert grouped(MODE, CAVEAT, {"type": "ai-title", "aiTitle": "T"}) == []
    assert grouped() == []


def test_a_prompt_during_work_belongs_to_its_exchange() -> None:
    """A prompt that is recorded only in the queue belongs to the exchange in which it was typed."""
    (only,) = grouped(user("one"), queue("enqueue", "also two"), queue("remove"), assistant(text("ok")))

    assert only.prompt == "one\n\nalso two"
    assert [turn.line for turn in only.turns] == [1, 2, 4]


def test_a_queued_prompt_begins_an_exchange_when_sent() -> None:
    """A queued prompt begins an exchange on the line where it is sent, and its queue line yields no turn."""
    first, second = grouped(user("one"), queue("enqueue", "two"), assistant(text("ok")), queue("dequeue"), user("two"))

    assert (first.prompt, first.span.end_line) == ("one", 4)
    assert (second.prompt, second.span.start_line) == ("two", 5)


def test_a_prompt_on_a_shared_line_begins_no_exchange() -> None:
    """A prompt on a line of the previous exchange begins no exchange, because exchanges never share a line."""
    line = jsonl([assistant(text("done")), user("next")]).replace(b"\n", b"")
    first, second = grouped(user("one"), line, user("two"))

    assert (first.prompt, first.span.end_line, second.prompt) == ("one\n\nnext", 2, "two")


def test_folder_and_branch_are_those_of_the_prompt() -> None:
    """An exchange has the folder and the branch of its prompt, even if later records differ."""
    here, there = {"cwd": "/a", "gitBranch": "main"}, {"cwd": "/b", "gitBranch": "fix"}
    first, second, third = grouped(
        user("one", **here), assistant(text("1"), **there), user("two", **there), user("three", timestamp=None)
    )

    assert (first.cwd, first.branch) == ("/a", "main")
    assert (second.cwd, second.branch) == ("/b", "fix")
    assert (third.cwd, third.started) == ("", None)

    (only,) = grouped(user("caveat", isMeta=True, **here), user("one", **there))
    assert (only.cwd, only.branch) == ("/b", "fix")


def test_times_do_not_order_turns() -> None:
    """An exchange starts at the time of its prompt and ends at its latest time, on whichever line that is."""
    late, early = "2026-03-01T11:00:00Z", "2026-03-01T09:00:00Z"
    (only,) = grouped(user("go"), assistant(text("a"), timestamp=late), assistant(text("b"), timestamp=early))

    assert (only.started, only.ended) == (1772359200000, 1772362800000)


def test_the_task_of_a_sub_agent_begins_an_exchange() -> None:
    """In a sub-agent's transcript, each task begins an exchange."""
    session = Session("claude-code", "agent-1", SessionKind.SUBAGENT)
    data = jsonl([user("task", isSidechain=True), assistant(text("report"), isSidechain=True)])
    found = list(group_exchanges(ClaudeCode().reader(session), split(io.BytesIO(data))))

    assert [piece.prompt for piece in found if isinstance(piece, Exchange)] == ["task"]


def test_an_exchange_comes_after_the_notes_of_its_lines() -> None:
    """An exchange is yielded after the notes and skipped lines in its line range."""
    found = pieces(jsonl([user("one", cwd="/a"), MODE, user("two", cwd="/b"), MODE]))
    places = [piece.span.end_line if isinstance(piece, Exchange) else piece.line for piece in found]

    assert places == sorted(places)
    assert [type(piece) for piece in found].index(Exchange) < len(found) - 2


def test_rewound_turns_are_marked() -> None:
    """`mark_rewound` marks turns as inactive from the first line up to, but excluding, the last line."""
    first, second = grouped(user("one"), assistant(text("1")), user("two"), assistant(text("2")))

    assert [turn.active for turn in mark_rewound(first, 2, 3).turns] == [True, False]
    assert [turn.active for turn in mark_rewound(second, 1, 4).turns] == [False, True]
    assert mark_rewound(first, 3, 9) == first


words = st.sampled_from(["one", "two", "three", "/go", "<bash-input>ls</bash-input>"])
calls = st.sampled_from(["t1", "t2"])
places = st.fixed_dictionaries(
    {}, optional={"cwd": st.sampled_from(["/a", "/b"]), "gitBranch": st.sampled_from(["main", "fix"])}
)


@st.composite
def record(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a record that may depend on the records around it."""
    match draw(st.integers(0, 6)):
        case 0 | 1:
            return user(draw(words), **draw(places))
        case 2:
            return user(draw(words), isMeta=True, **draw(places))
        case 3:
            return assistant(text(draw(words)), **draw(places))
        case 4:
            return assistant(tool("Read", {"file_path": "/f"}, draw(calls)))
        case 5:
            return result("content", id=draw(calls))
        case _:
            operation = draw(st.sampled_from(["enqueue", "enqueue", "dequeue", "remove", "popAll"]))
            return draw(st.sampled_from([MODE, CAVEAT, queue(operation, draw(words))]))


def _join_records(records: list[dict[str, Any]]) -> bytes:
    return jsonl(records).replace(b"\n", b"")


transcript_lines = st.lists(st.lists(record(), min_size=1, max_size=2).map(_join_records), max_size=12)


@given(transcript_lines)
def test_exchanges_tile_the_conversation(content: list[bytes]) -> None:
    """Spans follow one another without gap or overlap, and contain exactly the lines of their turns."""
    data = jsonl(content)
    found = exchanges(data)

    for number, exchange in enumerate(found):
        assert exchange.ordinal == number
        assert all(exchange.span.start_line <= turn.line <= exchange.span.end_line for turn in exchange.turns)
        assert exchange.turns[0].line == exchange.span.start_line
        following = found[number + 1].span if number + 1 < len(found) else None
        assert exchange.span.end_line == (following.start_line - 1 if following else len(content))
        assert exchange.span.end_byte == (following.start_byte if following else len(data))


@given(transcript_lines)
def test_no_turn_is_lost(content: list[bytes]) -> None:
    """Every turn belongs to one exchange, unless the transcript contains only injected text."""
    data = jsonl(content)
    reader = ClaudeCode().reader(Session("claude-code", SESSION))
    events = reader.read(split(io.BytesIO(data)))
    turns = [event._replace(call="") for event in events if not isinstance(event, Note | Skipped)]
    kept = [turn._replace(call="") for exchange in exchanges(data) for turn in exchange.turns]

    assert sorted(kept, key=repr) == sorted(turns, key=repr) or (
        not kept and {t.kind for t in turns} <= {Kind.INJECTED}
    )


@given(transcript_lines, st.integers(0, 12))
@example([_join_records([assistant(tool("Read", {}))]), _join_records([result("x"), user("two")])], 2)
@example([_join_records([each]) for each in (user("one"), queue("enqueue", "two"), user("two"))], 2)
@example([jsonl([queue("enqueue", "two")]).strip(), jsonl([user("two")]).strip()], 1)
def test_resuming_gives_the_same_exchanges(content: list[bytes], cut: int) -> None:
    """Wherever reading stopped, resuming at the last exchange yields the same exchanges as a full read."""
    whole, seen = jsonl(content), jsonl(content[:cut])
    before = exchanges(seen)
    last = before[-1] if before else None
    again = (
        exchanges(whole, line=last.span.start_line, byte=last.span.start_byte, ordinal=last.ordinal)
        if last
        else exchanges(whole)
    )

    assert before[:-1] + again == exchanges(whole)


def test_calls_with_the_same_id_are_distinct() -> None:
    """Some models count their calls anew in every reply, so an ID can occur twice in an exchange."""
    first, second = (assistant(tool("Bash", {"command": name}, id="call_0"), id=name) for name in ("ls", "pwd"))
    (only,) = grouped(user("go"), first, result("a", id="call_0"), second, result("b", id="call_0"))

    assert [turn.call for turn in only.turns[1:]] == ["call_0", "call_0", "call_0#2", "call_0#2"]


# Results that are recorded after the next prompt of the user.


CALL = Turn(2, Speaker.ASSISTANT, Kind.CALL, "Agent: limits", tool="Agent", call="c1")
RESULT = Turn(4, Speaker.TOOL, Kind.RESULT, "40 a minute", call="c1")


def of(*turns: Turn) -> Exchange:
    return Exchange(0, Span(1, 9, 0, 9), turns, None, None)


def tools(exchanges: Sequence[Exchange]) -> list[str]:
    return [turn.tool for exchange in exchanges for turn in exchange.turns]


def test_a_late_result_gets_the_tool_of_its_call() -> None:
    """The call can be in an earlier exchange of the same reading, or stored by an earlier run."""
    assert tools(link_late_results([of(CALL), of(RESULT)], lambda _: {})) == ["Agent", "Agent"]
    assert tools(link_late_results([of(RESULT)], lambda wanted: {"c1": CALL} if wanted == {"c1"} else {})) == ["Agent"]


def test_a_result_without_a_call_stays_as_it_is() -> None:
    """A call that is unknown, or that follows the result, does not give the result a tool."""
    assert tools(link_late_results([of(RESULT), of(CALL)], lambda _: {})) == ["", "Agent"]


def test_a_result_in_a_later_run_gets_its_tool(history: History) -> None:
    """The call was stored by an earlier run, and only the last exchange is read again."""
    history.write([*talk("one"), assistant(tool("Agent", {"prompt": "x"}, id="toolu_9"), id="m"), *talk("two")])
    history.ingest()
    history.append([result("done", id="toolu_9"), *talk("three")])
    history.ingest()

    assert history.prompts() == ["one?", "two?", "three?"]
    assert [turn.tool for stored in history.stored() for turn in stored.exchange.turns if turn.call] == ["Agent"] * 2


# Tests of the changes in the tool calls of each agent.


PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n-one\n+two\n*** Add File: b.py\n+three\n*** End Patch"
PATCHED = [TextChange("a.py", "", "@@\n-one\n+two", signed=True), TextChange("b.py", "", "+three", signed=True)]


def claude(name: str, arguments: Any, call: str = "call-1") -> dict[str, Any]:
    return {"message": {"content": [{"type": "tool_use", "id": call, "name": name, "input": arguments}]}}


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (
            claude("Edit", {"file_path": "a.py", "old_string": "one", "new_string": "two"}),
            [TextChange("a.py", "one", "two")],
        ),
        (
            claude("MultiEdit", {"file_path": "a.py", "edits": [{"old_string": "1", "new_string": "2"}] * 2}),
            [TextChange("a.py", "1", "2")] * 2,
        ),
        (claude("Write", {"file_path": "a.py", "content": "two"}), [TextChange("a.py", "", "two")]),
        (claude("Bash", {"command": "ls"}), []),
        ({"payload": {"call_id": "call-1", "name": "apply_patch", "input": PATCH}}, PATCHED),
        ({"payload": {"call_id": "call-1", "arguments": orjson.dumps({"input": PATCH}).decode()}}, PATCHED),
        ({"payload": {"call_id": "call-1", "arguments": {"command": ["apply_patch", PATCH]}}}, PATCHED),
        (
            {"toolCalls": [{"id": "call-1", "args": {"file_path": "a.py", "old_string": "1", "new_string": "2"}}]},
            [TextChange("a.py", "1", "2")],
        ),
        (
            {"parts": [{"callID": "call-1", "state": {"input": {"path": "a.py", "oldString": "1", "newString": "2"}}}]},
            [TextChange("a.py", "1", "2")],
        ),
    ],
)
def test_each_agent_records_changes(record: Any, expected: list[TextChange]) -> None:
    assert changes_in(orjson.dumps(record), "call-1") == expected


def test_other_calls_on_the_line_do_not_count() -> None:
    first = claude("Write", {"file_path": "a.py", "content": "1"}, "call-1")
    second = claude("Write", {"file_path": "b.py", "content": "2"}, "call-2")
    first["message"]["content"] += second["message"]["content"]

    assert changes_in(orjson.dumps(first), "call-2") == [TextChange("b.py", "", "2")]


def test_a_number_after_a_repeated_id_is_ignored() -> None:
    record = claude("Write", {"file_path": "a.py", "content": "1"}, "call_0")

    assert changes_in(orjson.dumps(record), "call_0#2") == [TextChange("a.py", "", "1")]


@pytest.mark.parametrize("line", [b"", b"{", b"[1]", b'{"id":"call-1","input":"{"}', b'{"id":"call-1","input":null}'])
def test_damaged_records_have_no_changes(line: bytes) -> None:
    assert changes_in(line, "call-1") == []


# The lines that an agent wrote to a file are found in raw transcript lines.


PATH = "/home/demo/shop/price.py"
RECORDED_EDITS_PATCH = (
    "*** Begin Patch\n*** Update File: other.py\n+not mine\n*** Update File: price.py\n@@\n-old = 1\n+new = 2\n kept\n"
    "*** Add File: more.py\n+nor this\n*** End Patch"
)


def lines(path: str = PATH, **record: Any) -> set[str]:
    """Return the lines that a record wrote to a file."""
    return set(written_lines(orjson.dumps(record), path))


@pytest.mark.parametrize(
    "arguments",
    [
        {"file_path": PATH, "old_string": "old = 1\nkept", "new_string": "new = 2\nkept"},
        {"path": PATH, "old_str": "old = 1\nkept", "new_str": "new = 2\nkept"},
        {"filePath": PATH, "oldString": "kept", "newString": "  new = 2\n"},
        {"path": PATH, "file_text": "new = 2\n"},
        {"file_path": PATH, "content": "new = 2"},
        {"path": PATH, "edits": [{"oldText": "old = 1", "newText": "new = 2"}]},
        {"notebook_path": PATH, "new_source": "new = 2"},
        {"file_path": PATH, "edits": [{"old_string": "x", "new_string": "new = 2"}, "odd", None]},
    ],
)
def test_edits_of_every_agent_are_found(arguments: dict[str, Any]) -> None:
    """Added lines are found in edits of every agent, even if the arguments are JSON inside a string."""
    block = {"type": "tool_use", "name": "Edit", "input": arguments}

    assert lines(message={"content": [block]}) == {"new = 2"}
    assert lines(payload={"arguments": orjson.dumps(arguments).decode()}) == {"new = 2"}
    assert lines("/home/demo/shop/other.py", message={"content": [block]}) == set()


def test_a_diff_in_the_result_is_preferred() -> None:
    """A diff in the result takes precedence over the call, because it has whole lines and the earlier content."""
    call = orjson.dumps({"input": {"file_path": PATH, "old_string": "1.19", "new_string": "RATE"}})
    hunk = {"lines": [" def price(net):", "-    return net * 1.19", "+    return net * RATE"]}
    result = orjson.dumps({"toolUseResult": {"filePath": PATH, "newString": "RATE", "structuredPatch": [hunk, 1]}})
    elsewhere = orjson.dumps({"toolUseResult": {"filePath": "/other", "structuredPatch": [hunk]}})

    assert written_lines(call, PATH, result) == {"return net * RATE"}
    assert written_lines(call, PATH, elsewhere) == written_lines(call, PATH, b"torn") == {"RATE"}


def test_a_patch_is_divided_by_file() -> None:
    """The lines of a patch belong to the file in the header above them."""
    assert lines("price.py", payload={"input": RECORDED_EDITS_PATCH}) == {"new = 2"}
    assert lines("more.py", payload={"arguments": orjson.dumps({"patch": RECORDED_EDITS_PATCH}).decode()}) == {
        "nor this"
    }


@pytest.mark.parametrize("line", [b"", b"torn {", b"[]", b"null", b'"*** Begin Patch"', b"[" * 300 + b"]" * 300])
def test_other_lines_have_no_edits(line: bytes) -> None:
    """A line without an edit yields no written lines and no error."""
    assert written_lines(line, PATH) == frozenset()


def test_unescaped_line_feeds_do_not_hide_an_edit() -> None:
    """A record whose line feeds are not escaped is read like any other."""
    record = orjson.dumps({"input": {"path": PATH, "file_text": "new = 2\nmore = 3"}})

    assert written_lines(record.replace(b"\\n", b"\n"), PATH) == {"new = 2", "more = 3"}
