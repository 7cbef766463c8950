"""pi's sessions, of all versions: who spoke, what was done, which branches were left, and where the files lie."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.archiver.formats import Event
from palaver.archiver.formats.pi.pi_format import Pi
from palaver.archiver.formats.registry import all_formats
from palaver.core.conversation import Fact, Kind, Speaker, Turn

from .. import reading
from ..reading import notes, skipped, written

PI = Pi()
SESSION = "019e19b4-0000-7000-8000-000000000001"
TIME = "2026-03-01T10:00:00.000Z"
HEADER = {"type": "session", "version": 3, "id": SESSION, "timestamp": TIME, "cwd": "/home/demo/shop"}


def entry(kind: str, /, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "timestamp": TIME, **fields}


def message(role: str, content: object = (), /, **fields: Any) -> dict[str, Any]:
    return entry("message", message={"role": role, "content": content, **fields})


def typed(text: str) -> dict[str, Any]:
    return message("user", [{"type": "text", "text": text}])


def replied(*blocks: dict[str, Any] | str, **fields: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    return message("assistant", content, model="m", **fields)


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "toolCall", "id": "c1", "name": name, "arguments": arguments}


def ended(text: str, *, failed: bool = False) -> dict[str, Any]:
    return message("toolResult", [{"type": "text", "text": text}], toolCallId="c1", toolName="read", isError=failed)


def grown(*entries: tuple[str, str | None]) -> bytes:
    """A tree of prompts: the id of each and that of its parent."""
    nodes = [{**typed(name), "id": name, "parentId": parent} for name, parent in entries]
    return written([HEADER, *nodes])


def events(*records: object) -> list[Event]:
    return reading.events(PI, HEADER, *records)


def said(*records: object) -> list[tuple[Speaker, Kind, str]]:
    return [(turn.speaker, turn.kind, turn.text) for turn in reading.turns(PI, HEADER, *records)]


def test_a_prompt_is_what_was_typed() -> None:
    """Text, or blocks of text and pictures."""
    picture = {"type": "image", "mimeType": "image/png", "data": "A" * 4096}

    assert said(typed("Fix it")) == [(Speaker.HUMAN, Kind.PROMPT, "Fix it")]
    assert said(message("user", "Fix it")) == [(Speaker.HUMAN, Kind.PROMPT, "Fix it")]
    assert said(message("user", [picture])) == [(Speaker.HUMAN, Kind.PROMPT, "[image/png, 3 KB]")]


def test_a_skill_that_was_called_is_told_by_its_name() -> None:
    """Its text is the program's; the name and what follows are the person's."""
    skill = '<skill name="review" location="/s/review.md">\nLook hard.\n</skill>'

    assert said(typed(f"{skill}\n\nat a.py")) == [(Speaker.HUMAN, Kind.PROMPT, "/skill:review at a.py")]
    assert said(typed(skill)) == [(Speaker.HUMAN, Kind.PROMPT, "/skill:review")]


def test_a_reply_gives_its_thoughts_its_prose_and_its_calls() -> None:
    """All of one message are of one group; a reply that broke off says why."""
    reply = replied({"type": "thinking", "thinking": "Hm"}, "I look.", call("bash", command="ls"), responseId="r1")
    found = [turn for turn in events(reply) if isinstance(turn, Turn)]

    assert [(turn.kind, turn.text, turn.group) for turn in found] == [
        (Kind.THINKING, "Hm", "r1"),
        (Kind.PROSE, "I look.", "r1"),
        (Kind.CALL, "bash: ls", "r1"),
    ]
    assert said(replied(stopReason="aborted", errorMessage="Request was aborted")) == [
        (Speaker.HOST, Kind.INJECTED, "Request was aborted")
    ]


@pytest.mark.parametrize(
    ("tool", "reads", "writes"),
    [("read", ("a.py",), ()), ("edit", (), ("a.py",)), ("write", (), ("a.py",)), ("ls", (), ())],
)
def test_results_name_the_files_that_were_touched(tool: str, reads: tuple[str, ...], writes: tuple[str, ...]) -> None:
    """A call that failed touched nothing."""
    request = replied(call(tool, path="a.py"))
    done, failed = (reading.turns(PI, HEADER, request, ended("x", failed=failed))[-1] for failed in (False, True))

    assert (done.tool, done.reads, done.writes) == (tool, reads, writes)
    assert (failed.reads, failed.writes, failed.failed, failed.text) == ((), (), True, "x")


def test_a_command_that_the_person_ran_is_the_persons() -> None:
    """A command run past the assistant, with its output."""
    call, result = reading.turns(PI, HEADER, message("bashExecution", command="ls", output="no", exitCode=1))

    assert (call.speaker, call.kind, call.text) == (Speaker.HUMAN, Kind.CALL, "! ls")
    assert (result.kind, result.text, result.failed, result.call) == (Kind.RESULT, "no", True, call.call)


def test_summaries_and_injected_messages_are_told_apart() -> None:
    """A compaction, a branch that was summed up, and what an extension put in."""
    assert said(
        entry("compaction", summary="So far."),
        entry("branch_summary", summary="Tried that."),
        entry("custom_message", customType="x", content="Mind this."),
        message("hookMessage", "Mind that."),
    ) == [
        (Speaker.HOST, Kind.COMPACTION, "So far."),
        (Speaker.HOST, Kind.RECAP, "Tried that."),
        (Speaker.HOST, Kind.INJECTED, "Mind this."),
        (Speaker.HOST, Kind.INJECTED, "Mind that."),
    ]


def test_the_session_is_noted() -> None:
    """Where it ran, what it was forked from, its name, models and usage."""
    header = {**HEADER, "parentSession": "/h/sessions/--work--/2026-03-01T09-00-00-000Z_019e19b4-origin.jsonl"}
    usage = {"input": 5, "cacheRead": 3, "cacheWrite": 1, "output": 2}
    found = reading.events(
        PI, header, entry("model_change", modelId="m"), entry("session_info", name="T"), replied("Ok", usage=usage)
    )

    assert notes(found, Fact.SESSION) == [(1, SESSION)]
    assert notes(found, Fact.PARENT) == [(1, "019e19b4-origin")]
    assert notes(found, Fact.CWD) == [(1, "/home/demo/shop")]
    assert notes(found, Fact.MODEL) == [(2, "m")]
    assert notes(found, Fact.TITLE) == [(3, "T")]
    assert [value.split()[1:] for _, value in notes(found, Fact.USAGE)] == [["9", "2"]]


def test_what_is_no_conversation_is_skipped_by_name() -> None:
    """State of the program and of its extensions is bookkeeping; what is unknown is named."""
    records = [entry("label"), entry("thinking_level_change"), entry("new"), message("new"), {**HEADER, "id": "other"}]

    assert [reason for _, reason in skipped(events(*records))] == [
        "bookkeeping",
        "bookkeeping",
        "unknown-type:new",
        "unknown-type:message/new",
        "copied-header",
    ]


# The tree


def left(data: bytes, start_line: int = 1, start_byte: int = 0) -> list[tuple[int, str]]:
    reader = PI.reader(reading.session(PI, data))
    return notes(list(reader.read(reading.lines(data, start_line, start_byte))), Fact.REWOUND)


def test_a_straight_line_leaves_nothing() -> None:
    """Each entry goes on from the one before it."""
    assert left(grown(("a", None), ("b", "a"), ("c", "b"))) == []


def test_a_branch_that_was_left_is_marked() -> None:
    """What was said after the place that the person went back to is left; the lines up to the new branch."""
    assert left(grown(("a", None), ("b", "a"), ("c", "b"), ("d", "a"))) == [(5, "3")]


def test_a_branch_that_the_person_came_back_to_is_not_left() -> None:
    """The branch that holds the last entry counts, however often it was left before."""
    assert left(grown(("a", None), ("b", "a"), ("c", "a"), ("d", "b"))) == [(5, "4")]


def test_nothing_is_left_before_something_else_is_said() -> None:
    """Entries that say nothing, such as a label on an earlier one, leave no branch."""
    label = {**entry("label"), "id": "x", "parentId": "a"}
    data = grown(("a", None), ("b", "a"))

    assert left(data + written([label])) == []
    assert left(data + written([label, {**typed("c"), "id": "c", "parentId": "x"}])) == [(5, "3")]


def test_a_new_beginning_leaves_everything_before_it() -> None:
    """A person may take back the very first prompt."""
    assert left(grown(("a", None), ("b", "a"), ("c", None))) == [(4, "2")]


def test_an_entry_whose_parent_was_lost_goes_on_from_the_one_before_it() -> None:
    """A line that was cut off does not make everything before it a branch that was left."""
    assert left(grown(("a", None), ("b", "lost"), ("c", "b"))) == []


def test_going_back_over_the_place_where_reading_began_reads_all_again() -> None:
    """What stands before that place is unknown, so nothing is said of it before all is read."""
    data = grown(("a", None), ("b", "a"), ("c", "b"), ("d", "a"))
    third = reading.exchanges(PI, data)[2].span

    assert left(data, third.start_line, third.start_byte) == [(5, "")]
    assert left(data[: third.end_byte], third.start_line, third.start_byte) == []


@given(st.lists(st.integers(0, 9), max_size=10))
def test_exactly_the_last_entry_and_those_it_goes_on_from_are_kept(parents: list[int]) -> None:
    """Whatever the tree, the lines outside all notes are the way from the beginning to the last entry."""
    nodes = [("0", None), *((str(n), str(parent % n)) for n, parent in enumerate(parents, 1))]
    on_branch, entry = set[int](), len(nodes) - 1
    while entry >= 0:
        on_branch.add(entry + 2)
        parent = nodes[entry][1]
        entry = -1 if parent is None else int(parent)

    covered = {line for end, first in left(grown(*nodes)) for line in range(int(first), end)}

    assert set(range(2, len(nodes) + 2)) - covered == on_branch


# What every reader promises


def test_a_copied_entry_has_the_same_id_and_another_entry_of_that_id_has_not() -> None:
    """The ids of entries are short; those of other sessions may be equal, but not at the same time."""
    one, other = ({**typed("A"), "id": "abcd1234", "timestamp": time} for time in (TIME, "2026-03-02T10:00:00.000Z"))
    records = [turn.record for turn in reading.turns(PI, HEADER, one, one, other)]

    assert records[0] == records[1] != records[2]


def test_only_its_own_header_is_claimed() -> None:
    """pi is told by the header of its files."""
    assert [known.agent for known in all_formats() if known.recognises([HEADER])] == ["pi"]
    assert not PI.recognises([{"type": "session"}, {"type": "message", "id": "a", "cwd": "/"}, {}])


def test_sessions_are_found_where_pi_keeps_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One folder for each project; the name tells the session where the header does not."""
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(tmp_path))
    path = tmp_path / "sessions" / "--work-shop--" / f"2026-03-01T10-00-00-000Z_{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")

    (root,) = PI.roots()

    assert list(PI.transcripts(root)) == [path]
    assert PI.archive_name(path, root) == f"--work-shop--/{path.name}"
    assert PI.identify(path, b"").native_id == SESSION
