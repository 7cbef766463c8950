"""Events are grouped into exchanges that begin with a prompt, and resumed reading yields the same exchanges."""

import io
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from palaver.archiver.formats.claude_code import ClaudeCode
from palaver.archiver.lines import split
from palaver.archiver.reading.exchanges import group_exchanges, mark_rewound
from palaver.core.conversation import Exchange, Kind, Note, Session, SessionKind, Skipped

from ..formats.claude_code.claude_lines import SESSION, assistant, jsonl, queue, result, text, tool, user


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
