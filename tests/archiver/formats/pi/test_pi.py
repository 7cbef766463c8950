"""pi sessions of all versions: authors, tool calls, branches, and locations of transcripts."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.archiver.formats import Event
from palaver.archiver.formats.pi import Pi
from palaver.archiver.formats.registry import all_formats
from palaver.core.conversation import Fact, Kind, Speaker, Turn

from .. import reading
from ..reading import jsonl, notes, skipped

PI = Pi()
SESSION = "019e19b4-0000-7000-8000-000000000001"
TIME = "2026-03-01T10:00:00.000Z"
HEADER = {"type": "session", "version": 3, "id": SESSION, "timestamp": TIME, "cwd": "/home/demo/shop"}


def entry(kind: str, /, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "timestamp": TIME, **fields}


def message(role: str, content: object = (), /, **fields: Any) -> dict[str, Any]:
    return entry("message", message={"role": role, "content": content, **fields})


def user(text: str) -> dict[str, Any]:
    return message("user", [{"type": "text", "text": text}])


def assistant(*blocks: dict[str, Any] | str, **fields: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    return message("assistant", content, model="m", **fields)


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "toolCall", "id": "c1", "name": name, "arguments": arguments}


def tool_result(text: str, *, failed: bool = False) -> dict[str, Any]:
    return message("toolResult", [{"type": "text", "text": text}], toolCallId="c1", toolName="read", isError=failed)


def tree(*entries: tuple[str, str | None]) -> bytes:
    """Return a tree of prompts from pairs of entry ID and parent ID."""
    nodes = [{**user(name), "id": name, "parentId": parent} for name, parent in entries]
    return jsonl([HEADER, *nodes])


def events(*records: object) -> list[Event]:
    return reading.events(PI, HEADER, *records)


def summary(*records: object) -> list[tuple[Speaker, Kind, str]]:
    """Return the speaker, the kind and the text of each turn."""
    return [(turn.speaker, turn.kind, turn.text) for turn in reading.turns(PI, HEADER, *records)]


def test_a_prompt_is_text_or_blocks() -> None:
    """A prompt is text or blocks, with labels in place of pictures."""
    picture = {"type": "image", "mimeType": "image/png", "data": "A" * 4096}

    assert summary(user("Fix it")) == [(Speaker.HUMAN, Kind.PROMPT, "Fix it")]
    assert summary(message("user", "Fix it")) == [(Speaker.HUMAN, Kind.PROMPT, "Fix it")]
    assert summary(message("user", [picture])) == [(Speaker.HUMAN, Kind.PROMPT, "[image/png, 3 KB]")]


def test_a_called_skill_appears_by_name() -> None:
    """A called skill appears by name without its text. The user's text after it is kept."""
    skill = '<skill name="review" location="/s/review.md">\nLook hard.\n</skill>'

    assert summary(user(f"{skill}\n\nat a.py")) == [(Speaker.HUMAN, Kind.PROMPT, "/skill:review at a.py")]
    assert summary(user(skill)) == [(Speaker.HUMAN, Kind.PROMPT, "/skill:review")]


def test_a_reply_has_thinking_prose_and_calls() -> None:
    """All parts of a reply share a group. An interrupted reply has the reason."""
    reply = assistant({"type": "thinking", "thinking": "Hm"}, "I look.", call("bash", command="ls"), responseId="r1")
    found = [turn for turn in events(reply) if isinstance(turn, Turn)]

    assert [(turn.kind, turn.text, turn.group) for turn in found] == [
        (Kind.THINKING, "Hm", "r1"),
        (Kind.PROSE, "I look.", "r1"),
        (Kind.CALL, "bash: ls", "r1"),
    ]
    assert summary(assistant(stopReason="aborted", errorMessage="Request was aborted")) == [
        (Speaker.HOST, Kind.INJECTED, "Request was aborted")
    ]


@pytest.mark.parametrize(
    ("tool", "reads", "writes"),
    [("read", ("a.py",), ()), ("edit", (), ("a.py",)), ("write", (), ("a.py",)), ("ls", (), ())],
)
def test_results_have_the_files_that_were_touched(tool: str, reads: tuple[str, ...], writes: tuple[str, ...]) -> None:
    """Results list the files that were read or written. A failed call lists none."""
    request = assistant(call(tool, path="a.py"))
    done, failed = (reading.turns(PI, HEADER, request, tool_result("x", failed=failed))[-1] for failed in (False, True))

    assert (done.tool, done.reads, done.writes) == (tool, reads, writes)
    assert (failed.reads, failed.writes, failed.failed, failed.text) == ((), (), True, "x")


def test_a_shell_command_of_the_user_is_the_users() -> None:
    """The user is the author of a shell command that the user ran. Its output is kept."""
    call, result = reading.turns(PI, HEADER, message("bashExecution", command="ls", output="no", exitCode=1))

    assert (call.speaker, call.kind, call.text) == (Speaker.HUMAN, Kind.CALL, "! ls")
    assert (result.kind, result.text, result.failed, result.call) == (Kind.RESULT, "no", True, call.call)


def test_summaries_and_injected_messages_have_their_own_kinds() -> None:
    """Compactions, branch summaries and extension messages have separate kinds."""
    assert summary(
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


def test_records_describe_the_session() -> None:
    """Records provide folder, origin of a fork, title, models and usage."""
    header = {**HEADER, "parentSession": "/h/sessions/--work--/2026-03-01T09-00-00-000Z_019e19b4-origin.jsonl"}
    usage = {"input": 5, "cacheRead": 3, "cacheWrite": 1, "output": 2}
    found = reading.events(
        PI,
        header,
        entry("model_change", modelId="m"),
        entry("session_info", name="T"),
        assistant("Ok", usage=usage),
    )

    assert notes(found, Fact.SESSION) == [(1, SESSION)]
    assert notes(found, Fact.PARENT) == [(1, "019e19b4-origin")]
    assert notes(found, Fact.CWD) == [(1, "/home/demo/shop")]
    assert notes(found, Fact.MODEL) == [(2, "m")]
    assert notes(found, Fact.TITLE) == [(3, "T")]
    assert [value.split()[1:] for _, value in notes(found, Fact.USAGE)] == [["9", "2"]]


def test_other_records_are_skipped_by_reason() -> None:
    """State is bookkeeping, and unknown types are skipped by type name."""
    records = [entry("label"), entry("thinking_level_change"), entry("new"), message("new"), {**HEADER, "id": "other"}]

    assert [reason for _, reason in skipped(events(*records))] == [
        "bookkeeping",
        "bookkeeping",
        "unknown-type:new",
        "unknown-type:message/new",
        "copied-header",
    ]


# The tree


def abandoned(data: bytes, start_line: int = 1, start_byte: int = 0) -> list[tuple[int, str]]:
    reader = PI.reader(reading.session(PI, data))
    return notes(list(reader.read(reading.lines(data, start_line, start_byte))), Fact.REWOUND)


def test_a_conversation_without_branches_abandons_nothing() -> None:
    """No line is abandoned if each entry follows the previous entry."""
    assert abandoned(tree(("a", None), ("b", "a"), ("c", "b"))) == []


def test_an_abandoned_branch_is_noted() -> None:
    """The abandoned range extends from the entry after the fork to the start of the new branch."""
    assert abandoned(tree(("a", None), ("b", "a"), ("c", "b"), ("d", "a"))) == [(5, "3")]


def test_a_branch_that_is_resumed_is_active() -> None:
    """The branch with the last entry is active."""
    assert abandoned(tree(("a", None), ("b", "a"), ("c", "a"), ("d", "b"))) == [(5, "4")]


def test_entries_without_events_abandon_nothing() -> None:
    """An entry without events, such as a label on an earlier entry, abandons no branch."""
    label = {**entry("label"), "id": "x", "parentId": "a"}
    data = tree(("a", None), ("b", "a"))

    assert abandoned(data + jsonl([label])) == []
    assert abandoned(data + jsonl([label, {**user("c"), "id": "c", "parentId": "x"}])) == [(5, "3")]


def test_a_new_root_abandons_everything_before() -> None:
    """A new root abandons all earlier entries, for example after the first prompt was taken back."""
    assert abandoned(tree(("a", None), ("b", "a"), ("c", None))) == [(4, "2")]


def test_an_entry_with_a_lost_parent_follows_the_previous_entry() -> None:
    """A damaged line does not abandon the entries before it."""
    assert abandoned(tree(("a", None), ("b", "lost"), ("c", "b"))) == []


def test_a_rewind_beyond_the_start_of_reading_asks_for_the_whole_file() -> None:
    """A rewind to a line before the start of reading requests a read of the whole file."""
    data = tree(("a", None), ("b", "a"), ("c", "b"), ("d", "a"))
    third = reading.exchanges(PI, data)[2].span

    assert abandoned(data, third.start_line, third.start_byte) == [(5, "")]
    assert abandoned(data[: third.end_byte], third.start_line, third.start_byte) == []


@given(st.lists(st.integers(0, 9), max_size=10))
def test_exactly_the_last_entry_and_its_ancestors_are_active(parents: list[int]) -> None:
    """In any tree, exactly the last entry and its ancestors are active."""
    nodes = [("0", None), *((str(n), str(parent % n)) for n, parent in enumerate(parents, 1))]
    on_branch, entry = set[int](), len(nodes) - 1
    while entry >= 0:
        on_branch.add(entry + 2)
        parent = nodes[entry][1]
        entry = -1 if parent is None else int(parent)

    covered = {line for end, first in abandoned(tree(*nodes)) for line in range(int(first), end)}

    assert set(range(2, len(nodes) + 2)) - covered == on_branch


# Guarantees of every reader


def test_a_copied_entry_keeps_its_id_and_other_entries_differ() -> None:
    """Record IDs include the time, because entry IDs are short."""
    one, other = ({**user("A"), "id": "abcd1234", "timestamp": time} for time in (TIME, "2026-03-02T10:00:00.000Z"))
    records = [turn.record for turn in reading.turns(PI, HEADER, one, other, one)]

    assert records[0] == records[2] != records[1]


def test_only_its_own_header_is_recognised() -> None:
    """A header is recognised by its ID and its folder."""
    assert [known.agent for known in all_formats() if known.recognises([HEADER])] == ["pi"]
    assert not PI.recognises([{"type": "session"}, {"type": "message", "id": "a", "cwd": "/"}, {}])


def test_sessions_are_found_in_the_folders_of_projects(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The file name identifies a session without a header."""
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(tmp_path))
    path = tmp_path / "sessions" / "--work-shop--" / f"2026-03-01T10-00-00-000Z_{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")

    (root,) = PI.roots()

    assert list(PI.transcripts(root)) == [path]
    assert PI.archive_name(path, root) == f"--work-shop--/{path.name}"
    assert PI.identify(path, b"").native_id == SESSION
