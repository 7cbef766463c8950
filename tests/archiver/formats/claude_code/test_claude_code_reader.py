"""Replies, session facts and skipped records of Claude Code transcripts of all versions."""

from collections import Counter
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from palaver.core.conversation import Fact, Kind, Note, Skipped, Turn

from ....cases import for_each
from .claude_lines import (
    HOST,
    INJECTED,
    SESSION,
    assistant,
    jsonl,
    notes,
    progress,
    queue,
    read,
    result,
    skipped,
    text,
    tool,
    turns,
    user,
)


def test_lines_of_one_reply_share_their_group() -> None:
    """Lines with the same message ID belong to one reply. No line is repeated or dropped."""
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "x"}
    found = turns(assistant(thought), assistant(text("Doing it.")), assistant(tool("Bash", {"command": "ls"})))

    assert [turn.kind for turn in found] == [Kind.THINKING, Kind.PROSE, Kind.CALL]
    assert {turn.group for turn in found} == {"msg_1"}


def test_usage_is_noted_once_per_change() -> None:
    """Equal usage on the lines of a reply yields one note. A later note replaces it."""
    first, last = {"input_tokens": 3, "cache_read_input_tokens": 7, "output_tokens": 1}, {"output_tokens": 20}
    records = [assistant(text("a")), assistant(text("b")), assistant(text("c"))]
    for record, usage in zip(records, (first, first, {**first, **last}), strict=True):
        record["message"]["usage"] = usage

    assert notes(read(*records), Fact.USAGE) == [(1, "msg_1 10 1"), (3, "msg_1 10 20")]


def test_empty_thinking_is_skipped() -> None:
    """A thinking block that contains only a signature is skipped."""
    assert turns(assistant({"type": "thinking", "thinking": "", "signature": "x"})) == []


def test_synthetic_replies_are_injected() -> None:
    """Synthetic replies are parsed as injected text, and API errors among them as failures."""
    made_up = assistant(text("No response requested."))
    made_up["message"]["model"] = "<synthetic>"
    broken = assistant(text("API Error: 529"), isApiErrorMessage=True)

    assert [(turn.speaker, turn.kind, turn.failed) for turn in turns(made_up, broken)] == [
        (HOST, INJECTED, False),
        (HOST, INJECTED, True),
    ]


def test_old_replies_are_plain_text() -> None:
    """Reply content that is a string is prose."""
    record = assistant()
    record["message"]["content"] = "Done."

    assert [(turn.kind, turn.text) for turn in turns(record)] == [(Kind.PROSE, "Done.")]


def test_titles_have_ranks() -> None:
    """The user's title outranks the agent's, the model's and the summary. Repetitions are skipped."""
    records = (
        user("Fix it\nplease"),
        {"type": "summary", "summary": "Summed up", "leafUuid": "leaf"},
        {"type": "ai-title", "aiTitle": "By model"},
        {"type": "agent-name", "agentName": "By agent"},
        {"type": "custom-title", "customTitle": "By person"},
        {"type": "custom-title", "customTitle": "By person"},
        user("Second prompt"),
    )
    found = [event for event in read(*records) if isinstance(event, Note) and event.fact is Fact.TITLE]

    expected = [(1, "Summed up"), (2, "By model"), (3, "By agent"), (4, "By person")]
    assert [(note.rank, note.value) for note in found] == expected
    assert found[0].about == "leaf"
    assert skipped(*records) == [(6, "repeated")]


def test_the_fields_around_a_message_are_noted_when_they_change() -> None:
    """A change of session, folder, branch, version or model yields a note."""
    place = {"sessionId": SESSION, "cwd": "/a", "gitBranch": "main", "version": "2.1.9"}
    moved = {**place, "cwd": "/b", "gitBranch": "HEAD"}
    events = read(
        user("go", **place), assistant(text("1"), **place), assistant(text("2"), **moved), user("on", **moved)
    )

    assert notes(events, Fact.CWD) == [(1, "/a"), (3, "/b"), (4, "/b")]
    assert notes(events, Fact.BRANCH) == [(1, "main")]
    assert notes(events, Fact.VERSION) == [(1, "2.1.9")]
    assert notes(events, Fact.SESSION) == [(1, SESSION)]
    assert notes(events, Fact.MODEL) == [(2, "model-1")]


def test_links_are_noted() -> None:
    """Pull requests, the continuing session and the origin of a fork yield notes."""
    other = "0d9f1c1e-0000-4000-8000-000000000002"
    events = read(
        {"type": "pr-link", "prNumber": 7, "prUrl": "https://example.org/pull/7", "sessionId": SESSION},
        {"type": "continued-in", "sessionId": SESSION, "continuedIn": other},
        user("go", forkedFrom={"sessionId": other, "messageUuid": "x"}),
    )

    assert notes(events, Fact.PULL_REQUEST) == [(1, "https://example.org/pull/7")]
    assert notes(events, Fact.CONTINUES) == [(2, other)]
    assert notes(events, Fact.PARENT) == [(3, other)]


def test_a_recap_and_a_compaction_are_turns() -> None:
    """A recap appears without its hint. A compaction includes the number of tokens."""
    recap, border = turns(
        {"type": "system", "subtype": "away_summary", "content": "Tests pass. (disable recaps in /config)"},
        {"type": "system", "subtype": "compact_boundary", "compactMetadata": {"trigger": "auto", "preTokens": 9}},
    )

    assert (recap.kind, recap.text) == (Kind.RECAP, "Tests pass.")
    assert (border.kind, border.text) == (Kind.COMPACTION, "Conversation compacted (auto, 9 tokens before)")


def test_a_rewind_is_noted() -> None:
    """If two prompts follow the same record, the first prompt is abandoned."""
    records = (
        assistant(text("hi"), uuid="a"),
        user("one way", uuid="b", parentUuid="a"),
        assistant(text("done"), uuid="c", parentUuid="b"),
        user("another way", uuid="d", parentUuid="a"),
    )

    assert notes(read(*records), Fact.REWOUND) == [(4, "2")]
    start = (2, len(jsonl(records[:1])))
    assert notes(read(*records, start=start), Fact.REWOUND) == [(4, "2")]


def test_a_rewind_beyond_the_start_of_reading_asks_for_the_whole_file() -> None:
    """A rewind to a line before the start of reading requests a read of the whole file."""
    records = (
        assistant(text("hi"), uuid="a"),
        user("one", uuid="b", parentUuid="a"),
        assistant(text("ok"), uuid="c", parentUuid="b"),
        user("two", uuid="d", parentUuid="c"),
        user("another way", uuid="e", parentUuid="a"),
    )

    assert notes(read(*records), Fact.REWOUND) == [(5, "2")]
    assert notes(read(*records, start=(4, len(jsonl(records[:3])))), Fact.REWOUND) == [(5, "")]


def test_parallel_calls_are_not_a_rewind() -> None:
    """A record with several tool calls as children is not a rewind."""
    events = read(
        user("go", uuid="a"),
        assistant(tool("Bash", {}, "t1"), uuid="b", parentUuid="a"),
        assistant(tool("Bash", {}, "t2"), uuid="c", parentUuid="b"),
        {**result("1", id="t1"), "uuid": "d", "parentUuid": "b"},
        {**result("2", id="t2"), "uuid": "e", "parentUuid": "c"},
        user("next", uuid="f", parentUuid="e"),
        user("orphan", uuid="g", parentUuid="nowhere"),
    )

    assert notes(events, Fact.REWOUND) == []


@for_each(
    "record, reason",
    [
        ({"type": "progress", "data": {"type": "bash_progress"}}, "progress"),
        ({"type": "progress", "data": {"type": "hook_progress", "hookEvent": "Stop"}}, "hook-progress"),
        ({"data": {"status": "started", "type": "mcp_progress"}, "type": "progress"}, "server-progress"),
        ({"type": "progress", "data": {"type": "query_update", "query": "x"}}, "search-progress"),
        ({"type": "progress", "data": {"type": "search_results_received"}}, "search-progress"),
        ({"type": "progress", "data": {"type": "waiting_for_task"}}, "waiting"),
        ({"type": "progress", "data": {"type": "brand_new"}}, "unknown-type:progress/brand_new"),
        (progress(user("x"), agent="a1"), "subagent"),
        ({"type": "file-history-snapshot", "messageId": "m", "snapshot": {}}, "file-history"),
        ({"type": "file-history-delta", "trackingPath": "/a"}, "file-history"),
        ({"type": "last-prompt", "lastPrompt": "x"}, "bookkeeping"),
        ({"type": "mode", "mode": "normal"}, "bookkeeping"),
        ({"type": "cost-state", "sessionId": "s", "totalCostUSD": 0.01}, "bookkeeping"),
        ({"type": "tools-used", "sessionId": "s", "tools": ["Agent"]}, "bookkeeping"),
        ({"type": "api-request", "sessionId": "s", "params": {"model": "m"}}, "context"),
        ({"type": "api-request-blob", "sessionId": "s", "message": {"role": "user", "content": "x"}}, "context"),
        ({"type": "system", "subtype": "turn_duration"}, "bookkeeping"),
        ({"type": "system", "subtype": "brand_new"}, "unknown-type:system/brand_new"),
        ({"type": "attachment", "attachment": {"type": "hook_success"}}, "hook-output"),
        ({"type": "attachment", "attachment": {"type": "skill_listing"}}, "context"),
        ({"type": "attachment"}, "context"),
        ({"type": "brand new\nkind" + "x" * 99}, "unknown-type:brand new kind" + "x" * 99),
        ({"type": 3}, "unknown-type"),
        ({}, "unknown-type"),
        ({"type": "user"}, "empty"),
        (user("<local-command-stdout></local-command-stdout>"), "empty"),
        ({"type": "user", "message": {"content": {"a": 1}}}, "empty"),
        ({"type": "assistant", "message": None}, "empty"),
        (b"", "blank"),
        (b"\0\0", "blank"),
        (b"[1, 2]", "not-an-object"),
        (b'{"type": "user", "message": {"content": "cut o', "cut-short"),
        (b"not json", "not-json"),
        (b"[" * 99_999, "too-deep"),
    ],
)
def test_every_other_record_has_a_reason(record: object, reason: str) -> None:
    """Every other record is skipped with a reason, and the surrounding lines are read."""
    assert skipped(user("before"), record, user("after")) == [(2, reason)]


def test_records_joined_with_progress_are_not_lost() -> None:
    """A progress record is skipped undecoded only if it is alone on its line."""
    title = b'{"type":"ai-title","aiTitle":"Kept"}'
    events = read(b'{"uuid":"p","type":"progress","data":{"type":"x"}}' + title)

    assert notes(events, Fact.TITLE) == [(1, "Kept")]


def test_two_records_on_one_line_are_both_read() -> None:
    """A message and a summary on one line yield a turn and a title."""
    events = read(jsonl([user("go")])[:-1] + b'{"type":"summary","summary":"Title","leafUuid":"x"}')

    assert [type(event) for event in events] == [Turn, Note]


@for_each(
    "timestamp, expected",
    [
        ("2026-03-01T10:00:00.250Z", 1772359200250),
        ("2026-03-01T12:00:00.250+02:00", 1772359200250),
        (1772359200.25, 1772359200250),
        (1772359200250, 1772359200250),
        (1772359200250000, 1772359200250),
        ("yesterday", None),
        (None, None),
        (-5, None),
        ({}, None),
        (True, None),
    ],
)
def test_times_of_every_kind_are_read(timestamp: object, expected: int | None) -> None:
    """A time in any notation is read as an instant or as unknown, without an error."""
    assert turns(user("go", timestamp=timestamp))[0].at == expected


NAMES = (
    "type message content attachment operation text input name subtype parentUuid uuid tool_use_id toolUseResult "
    "answers filePath isMeta timestamp usage id prompt questions source data edits"
)
WORDS = (
    "user assistant system attachment queue-operation enqueue popAll text image tool_use tool_result Bash Edit summary "
    "queued_command <bash-input>x</bash-input> /go \x1b["
)
KINDS = ("user", "assistant", "system", "attachment", "queue-operation", "summary", "pr-link", "continued-in", "mode")

names, words = st.sampled_from(NAMES.split()), st.sampled_from(["", "two words", *WORDS.split()])


def _containers(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=5)


shapes = st.recursive(st.none() | st.booleans() | st.integers(-5, 10**18) | words, _containers, max_leaves=12)


@st.composite
def record(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a record that is valid, partly unexpected, or entirely unexpected."""
    match draw(st.integers(0, 6)):
        case 0:
            return user(draw(words))
        case 1:
            return user(draw(st.lists(st.dictionaries(names, shapes))))
        case 2:
            return assistant(text(draw(words)), draw(st.dictionaries(names, shapes)))
        case 3:
            return queue(draw(st.sampled_from(["enqueue", "enqueue", "dequeue", "remove", "popAll"])), draw(words))
        case 4:
            return assistant(tool(draw(words), draw(shapes)))
        case 5:
            return result(draw(shapes), draw(shapes))
        case _:
            return {**draw(st.dictionaries(names, shapes, max_size=6)), "type": draw(st.sampled_from(KINDS))}


def _join_records(joined: list[dict[str, Any]]) -> bytes:
    return jsonl(joined).replace(b"\n", b"")


transcripts = st.lists(
    st.lists(record(), min_size=1, max_size=2).map(_join_records)
    | st.binary(max_size=20).filter(lambda data: b"\n" not in data),
    max_size=8,
)


@given(transcripts)
@example([jsonl([result(None, [{"type": [0]}])]).strip()])
@example([jsonl([queue("enqueue", "two words"), queue("enqueue", "Bash")]).replace(b"\n", b""), b"", b"x"])
def test_every_line_of_a_mixture_is_accounted_for(content: list[bytes]) -> None:
    """Each line yields turns and notes, or exactly one reason."""
    events = read(*content)
    passed = Counter(event.line for event in events if isinstance(event, Skipped))
    recorded = {event.line for event in events if not isinstance(event, Skipped)}

    assert set(passed.values()) <= {1}
    assert not recorded & passed.keys()
    assert recorded | passed.keys() == set(range(1, len(content) + 1))


def test_ids_that_occur_in_every_session_do_not_identify_a_record() -> None:
    """A record ID such as `msg-1` identifies a record only together with its time and content."""
    first, same, other = (
        turns(user(content, uuid="msg-1", sessionId=session))[0].record
        for content, session in (("one", SESSION), ("one", "another"), ("two", SESSION))
    )

    assert first == same != other
    assert turns(user("one"))[0].record == ""
