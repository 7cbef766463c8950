"""Events are grouped into exchanges that begin with a prompt, and resuming gives the same exchanges."""

import io
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from palaver.archiver.files.lines import split
from palaver.archiver.formats.claude_code.claude_code_format import ClaudeCode
from palaver.archiver.reading.exchange_grouping import group_exchanges, mark_rewound
from palaver.core.conversation import Exchange, Kind, Note, Session, SessionKind, Skipped

from ..formats.claude_code.claude_lines import SESSION, assistant, jsonl, queue, result, text, tool, user


def pieces(data: bytes, *, line: int = 1, byte: int = 0, ordinal: int = 0) -> list[Exchange | Note | Skipped]:
    reader = ClaudeCode().reader(Session("claude-code", SESSION))
    return list(
        group_exchanges(reader, split(io.BytesIO(data), start_line=line, start_byte=byte), first_ordinal=ordinal)
    )


def exchanges(data: bytes, *, line: int = 1, byte: int = 0, ordinal: int = 0) -> list[Exchange]:
    return [piece for piece in pieces(data, line=line, byte=byte, ordinal=ordinal) if isinstance(piece, Exchange)]


def of(*records: object) -> list[Exchange]:
    return exchanges(jsonl(records))


MODE = {"type": "mode", "mode": "normal"}
CAVEAT = user("<local-command-caveat>Caveat</local-command-caveat>", isMeta=True)


def test_an_exchange_begins_with_a_prompt() -> None:
    """An exchange begins on the line of a prompt and ends where the next begins."""
    first, second = of(user("one"), assistant(text("1")), MODE, user("two"), assistant(text("2"), id="msg_2"))

    assert (first.ordinal, first.prompt, first.answer) == (0, "one", "1")
    assert (second.ordinal, second.prompt, second.answer) == (1, "two", "2")
    assert (first.span.start_line, first.span.end_line) == (1, 3)
    assert (second.span.start_line, second.span.end_line) == (4, 5)


def test_the_span_of_bytes_matches_the_lines() -> None:
    """The bytes of a span are exactly its lines."""
    data = jsonl([user("one"), assistant(text("1")), user("two é"), assistant(text("2"))])
    lines = data.splitlines(keepends=True)

    for exchange in exchanges(data):
        span = exchange.span
        assert data[span.start_byte : span.end_byte] == b"".join(lines[span.start_line - 1 : span.end_line])


def test_injected_text_before_the_first_prompt_is_its_beginning() -> None:
    """Injected text before the first prompt belongs to its exchange; bookkeeping does not."""
    (only,) = of(MODE, CAVEAT, MODE, user("go"), assistant(text("ok")))

    assert (only.span.start_line, only.span.end_line, only.prompt) == (2, 5, "go")
    assert [turn.line for turn in only.turns] == [2, 4, 5]


def test_a_queued_first_prompt_begins_the_first_exchange() -> None:
    """Its line belongs to the first exchange although the prompt is sent later."""
    first, second = of(queue("enqueue", "early"), CAVEAT, user("go"))

    assert (first.prompt, first.span.start_line, first.span.end_line) == ("early", 1, 2)
    assert (second.prompt, second.span.start_line) == ("go", 3)


def test_turns_before_the_first_prompt_are_an_exchange() -> None:
    """A transcript that begins in the middle loses nothing."""
    first, second = of(MODE, user("Summary", isCompactSummary=True), assistant(text("on")), user("go"))

    assert (first.prompt, first.answer, first.span.start_line, first.span.end_line) == ("", "on", 2, 3)
    assert (second.ordinal, second.prompt) == (1, "go")


def test_a_transcript_without_conversation_has_no_exchange() -> None:
    """Titles, modes and injected text alone are no conversation."""
    assert of(MODE, CAVEAT, {"type": "ai-title", "aiTitle": "T"}) == []
    assert of() == []


def test_a_prompt_during_work_belongs_to_its_exchange() -> None:
    """A prompt that was only queued joins the exchange in which it was typed, at its own line."""
    (only,) = of(user("one"), queue("enqueue", "also two"), queue("remove"), assistant(text("ok")))

    assert only.prompt == "one\n\nalso two"
    assert [turn.line for turn in only.turns] == [1, 2, 4]


def test_a_queued_prompt_begins_an_exchange_when_sent() -> None:
    """It leaves no turn in the exchange during which it waited."""
    first, second = of(user("one"), queue("enqueue", "two"), assistant(text("ok")), queue("dequeue"), user("two"))

    assert (first.prompt, first.span.end_line) == ("one", 4)
    assert (second.prompt, second.span.start_line) == ("two", 5)


def test_a_prompt_on_a_shared_line_begins_no_exchange() -> None:
    """Two exchanges never share a line."""
    line = jsonl([assistant(text("done")), user("next")]).replace(b"\n", b"")
    first, second = of(user("one"), line, user("two"))

    assert (first.prompt, first.span.end_line, second.prompt) == ("one\n\nnext", 2, "two")


def test_folder_and_branch_are_those_of_the_prompt() -> None:
    """Folder and branch do not change during an exchange."""
    here, there = {"cwd": "/a", "gitBranch": "main"}, {"cwd": "/b", "gitBranch": "fix"}
    first, second, third = of(
        user("one", **here), assistant(text("1"), **there), user("two", **there), user("three", timestamp=None)
    )

    assert (first.cwd, first.branch) == ("/a", "main")
    assert (second.cwd, second.branch) == ("/b", "fix")
    assert (third.cwd, third.started) == ("", None)

    (only,) = of(user("caveat", isMeta=True, **here), user("one", **there))
    assert (only.cwd, only.branch) == ("/b", "fix")


def test_times_do_not_order_turns() -> None:
    """An exchange starts at the time of its prompt and ends at its latest time, wherever that is."""
    late, early = "2026-03-01T11:00:00Z", "2026-03-01T09:00:00Z"
    (only,) = of(user("go"), assistant(text("a"), timestamp=late), assistant(text("b"), timestamp=early))

    assert (only.started, only.ended) == (1772359200000, 1772362800000)


def test_the_task_of_a_sub_agent_begins_an_exchange() -> None:
    """The transcript of a sub-agent is divided at its tasks."""
    session = Session("claude-code", "agent-1", SessionKind.SUBAGENT)
    data = jsonl([user("task", isSidechain=True), assistant(text("report"), isSidechain=True)])
    found = list(group_exchanges(ClaudeCode().reader(session), split(io.BytesIO(data))))

    assert [piece.prompt for piece in found if isinstance(piece, Exchange)] == ["task"]


def test_an_exchange_comes_after_the_notes_of_its_lines() -> None:
    """Notes and skipped lines of an exchange are yielded before it."""
    found = pieces(jsonl([user("one", cwd="/a"), MODE, user("two", cwd="/b"), MODE]))
    places = [piece.span.end_line if isinstance(piece, Exchange) else piece.line for piece in found]

    assert places == sorted(places)
    assert [type(piece) for piece in found].index(Exchange) < len(found) - 2


def test_rewound_turns_are_marked() -> None:
    """Turns between the earlier and the later prompt are inactive, the others are active."""
    first, second = of(user("one"), assistant(text("1")), user("two"), assistant(text("2")))

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
    """A record that may depend on those before or after it."""
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


def _on_one_line(glued: list[dict[str, Any]]) -> bytes:
    return jsonl(glued).replace(b"\n", b"")


transcript_lines = st.lists(st.lists(record(), min_size=1, max_size=2).map(_on_one_line), max_size=12)


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
    """Every turn is in one exchange, unless the transcript has only injected text."""
    data = jsonl(content)
    reader = ClaudeCode().reader(Session("claude-code", SESSION))
    turns = [event for event in reader.read(split(io.BytesIO(data))) if not isinstance(event, Note | Skipped)]
    kept = [turn for exchange in exchanges(data) for turn in exchange.turns]

    assert sorted(kept, key=repr) == sorted(turns, key=repr) or (
        not kept and {t.kind for t in turns} <= {Kind.INJECTED}
    )


@given(transcript_lines, st.integers(0, 12))
@example([_on_one_line([assistant(tool("Read", {}))]), _on_one_line([result("x"), user("two")])], 2)
@example([_on_one_line([each]) for each in (user("one"), queue("enqueue", "two"), user("two"))], 2)
@example([jsonl([queue("enqueue", "two")]).strip(), jsonl([user("two")]).strip()], 1)
def test_resuming_gives_the_same_exchanges(content: list[bytes], cut: int) -> None:
    """For any place where reading stopped, resuming at the last exchange gives the same exchanges."""
    whole, seen = jsonl(content), jsonl(content[:cut])
    before = exchanges(seen)
    last = before[-1] if before else None
    again = (
        exchanges(whole, line=last.span.start_line, byte=last.span.start_byte, ordinal=last.ordinal)
        if last
        else exchanges(whole)
    )

    assert before[:-1] + again == exchanges(whole)
