"""Messages of sub-agents in the progress records of their parent's transcript."""

from typing import TypeGuard

from palaver.archiver.formats import Event
from palaver.core.conversation import Fact, Kind, Note, SessionKind, Skipped, Speaker, Turn

from .claude_lines import HOST, PROMPT, assistant, jsonl, notes, progress, read, result, text, tool, user

TASK = "Count the routes of the ferry timetable"
AGENT = "a1b2c3d"
FIRST, SECOND, THIRD = (f"aaaaaaaa-0000-4000-8000-00000000000{number}" for number in range(3))


def records() -> list[object]:
    """Return the progress records of one sub-agent."""
    call = assistant(
        tool("Edit", {"file_path": "/code/app/ferry.py", "old_string": "1", "new_string": "2"}), uuid=SECOND
    )
    call["message"]["usage"] = {"input_tokens": 40, "cache_read_input_tokens": 2, "output_tokens": 1}
    return [
        progress(user([text(TASK)], uuid=FIRST), agent=AGENT, task=TASK),
        progress(call, agent=AGENT, task=TASK),
        progress(result("The file was updated") | {"uuid": THIRD}, agent=AGENT, task=TASK),
    ]


def _names_subagent(event: Event) -> TypeGuard[Note]:
    return isinstance(event, Note) and event.fact is Fact.SUBAGENT


def turns(*lines: object, agent: str = AGENT) -> list[Turn]:
    found = read(*lines, kind=SessionKind.SUBAGENT, session=f"agent-{agent}")
    return [event for event in found if isinstance(event, Turn)]


def test_progress_records_are_the_conversation_of_a_subagent() -> None:
    """The task, the call and the result have the IDs, the files and the author of a sub-agent's own transcript."""
    found = turns(*records())

    assert [(turn.line, turn.speaker, turn.kind, turn.record) for turn in found] == [
        (1, HOST, PROMPT, FIRST),
        (2, Speaker.ASSISTANT, Kind.CALL, SECOND),
        (3, Speaker.TOOL, Kind.RESULT, THIRD),
    ]
    assert found[0].text == TASK
    assert found[2].writes == ("/code/app/ferry.py",)


def test_the_parent_names_the_call_of_each_subagent_once() -> None:
    """The call is in every progress record, and the sub-agent in the result of the call. The lines stay skipped."""
    done = result("seven routes", {"agentId": AGENT}, id="toolu_9")
    events = read(*records(), done, result("other", {"agentId": "b7"}, id="toolu_8"), result("no sub-agent"))

    started = [(note.line, note.about, note.value) for note in events if _names_subagent(note)]
    assert started == [(1, "toolu_1", "agent-a1b2c3d"), (4, "toolu_9", "agent-a1b2c3d"), (5, "toolu_8", "agent-b7")]
    assert [event.line for event in events if isinstance(event, Skipped)] == [1, 2, 3]
    assert not any(map(_names_subagent, read(*records(), kind=SessionKind.SUBAGENT, session=f"agent-{AGENT}")))


def test_only_the_input_tokens_of_a_progress_record_are_counted() -> None:
    """The record states the output tokens of the start of the reply only, so they are not reported."""
    events = read(*records(), kind=SessionKind.SUBAGENT, session=f"agent-{AGENT}")

    assert notes(events, Fact.USAGE) == [(2, "msg_1 42 0")]


def test_a_missing_first_message_is_replaced_by_the_task() -> None:
    """Every record repeats the task, so a conversation whose first message is missing begins with it."""
    later = turns(*records()[1:])

    assert [(turn.line, turn.kind) for turn in later] == [(1, PROMPT), (1, Kind.CALL), (2, Kind.RESULT)]
    assert (later[0].text, later[0].speaker) == (TASK, HOST)


def test_messages_of_other_subagents_and_of_the_parent_are_omitted() -> None:
    """Two sub-agents can run at the same time, and a line can contain a record of the parent as well."""
    joined = jsonl([records()[0]])[:-1] + jsonl([user("Typed by the user")])[:-1]

    assert [turn.text for turn in turns(joined, records()[1])] == [TASK, turns(*records())[1].text]
    assert not turns(*records(), agent="other")
