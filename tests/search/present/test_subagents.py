"""Sub-agents below the calls that started them, and in the details of their session."""

# pyright: reportPrivateUsage=false

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from palaver.agents.conversation_tools import CONVERSATION, ConversationContext
from palaver.archiver.store.migration import old_steps
from palaver.cli import main
from palaver.core.results import StartedSubagent
from palaver.search.archive_search import ArchiveSearch
from palaver.templates.json_output import transcript_json
from palaver.templates.render import Renderer

from ...archiver.deletion.steps import forget, undo
from ...archiver.formats.claude_code.claude_lines import assistant, jsonl, progress, result, text, tool, user
from ...archiver.history import FORK, ORIGINAL, History, named, talk

CALL, AGENT = "toolu_starts_the_ferry_agent", "agent-a1b2c3d"
EXTRACTED = f"claude-code/shop/{ORIGINAL}/extracted/{AGENT}.jsonl"
OWN = f"claude-code/shop/{ORIGINAL}/subagents/{AGENT}.jsonl"


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with History(tmp_path) as made:
        yield made


def place(session: str) -> dict[str, Any]:
    return {"sessionId": session, "cwd": "/home/demo/shop", "gitBranch": "main"}


def messages(session: str = ORIGINAL) -> list[dict[str, Any]]:
    """Return the two messages of a sub-agent."""
    own = {**place(session), "agentId": "a1b2c3d", "isSidechain": True}
    return [
        user("Count the ferry routes", uuid=named("task"), **own),
        assistant(text("Seven."), id="msg_sub", uuid=named("seven"), **own),
    ]


def parent(*, in_records: bool, named_by_result: bool, session: str = ORIGINAL) -> list[dict[str, Any]]:
    """Return a session that starts a sub-agent, on line 2 of 4 to 6 lines."""
    started = assistant(tool("Task", {"prompt": "Count the ferry routes"}, id=CALL), uuid=named("call"))
    records = [progress(each, agent="a1b2c3d", parentToolUseID=CALL, **place(session)) for each in messages(session)]
    ended = result("Seven routes", {"agentId": "a1b2c3d"} if named_by_result else None, id=CALL)
    lines = [started, *(records if in_records else ()), ended | {"uuid": named("ended")}]
    first, last = talk("one", session=session)
    return [first, *(line | place(session) for line in lines), last]


def write_own(history: History) -> None:
    """Write the transcript of the sub-agent itself."""
    path = history.folder / "shop" / ORIGINAL / "subagents" / f"{AGENT}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(jsonl(messages()))
    history.touch(path, 3)


def started(history: History, session: str = ORIGINAL, start: int = 1, end: int | None = None) -> dict[str, Any]:
    with ArchiveSearch(history.home) as layers:
        return dict(layers.read(layers.locate(session)[0], start, end).subagents)


@pytest.mark.parametrize(
    ("in_records", "named_by_result", "has_own", "path"),
    [
        (True, True, False, EXTRACTED),
        (True, False, False, EXTRACTED),
        (False, True, True, OWN),
        (True, True, True, OWN),
        (True, False, True, OWN),
    ],
)
def test_a_subagent_is_read_below_its_call(
    history: History, *, in_records: bool, named_by_result: bool, has_own: bool, path: str
) -> None:
    """Sub-agents in progress records and those with a transcript are shown in the same way, and only once."""
    history.write(parent(in_records=in_records, named_by_result=named_by_result))
    if has_own:
        write_own(history)
    history.ingest()

    with ArchiveSearch(history.home) as layers:
        transcript = layers.read(layers.locate(ORIGINAL)[0])
        assert transcript.subagents == {CALL: (StartedSubagent(AGENT, path, 2),)}
        [call] = [turn for turn in transcript_json(transcript)["exchanges"][0]["turns"] if "subagents" in turn]
        assert (call["kind"], call["line"]) == ("call", 2)
        assert call["subagents"] == [{"session_id": AGENT, "path": path, "lines": 2}]
        assert f"\n  sub-agent (2 lines): read {AGENT}\n  -> " in Renderer().read(transcript)
        assert f"\n  sub-agent (2 lines): palaver read {AGENT}\n" in Renderer(at_shell=True).read(transcript)
        assert layers.read(layers.locate(AGENT)[0]).exchanges[0].answer == "Seven."
        assert layers.details([ORIGINAL])[0].subagents == (StartedSubagent(AGENT, path, 2),)


def test_each_line_range_with_the_call_or_its_result_shows_the_subagent(history: History) -> None:
    """The record that names the sub-agent can be outside the range."""
    history.write(parent(in_records=True, named_by_result=False))
    history.ingest()

    assert [line for line in range(1, 7) if started(history, start=line, end=line)] == [2, 5]


def test_a_call_without_an_archived_subagent_names_none(history: History) -> None:
    """The result of a call can name a sub-agent whose transcript was never archived, or was deleted."""
    history.write(parent(in_records=False, named_by_result=True))
    history.ingest()
    assert started(history) == {}

    write_own(history)
    history.ingest()
    assert [*started(history)] == [CALL]
    number = forget(history, AGENT)
    assert started(history) == {}
    undo(history, number)
    assert [*started(history)] == [CALL]


def test_the_details_of_a_session_list_its_first_subagents(history: History) -> None:
    """Twelve are listed. The page also states how many there are."""
    records = [
        progress({**user(f"Count {number}"), "uuid": named(f"task {number}")}, agent=f"b{number:02}", **place(ORIGINAL))
        for number in range(30)
    ]
    first, last = talk("one")
    history.write([first, *records, last])
    history.ingest()

    with ArchiveSearch(history.home) as layers:
        [detail] = layers.details([ORIGINAL])
    assert [each.session_id for each in detail.subagents] == [f"agent-b{number:02}" for number in range(12)]
    assert "agent-b11 (1 line) and 18 more\n" in Renderer().observations([detail])


def test_a_fork_shows_the_subagent_of_its_origin(history: History) -> None:
    """The fork repeats the records. Its call names the session that has the conversation, with an ID for `read`."""
    history.write(parent(in_records=True, named_by_result=True))
    origin = {"forkedFrom": {"sessionId": ORIGINAL, "messageUuid": "m"}}
    copied = parent(in_records=True, named_by_result=True, session=FORK)
    history.write([*({**line, **origin} for line in copied), *talk("apart", session=FORK)], FORK, at=2)
    history.ingest()

    [subagent] = started(history, FORK)[CALL]
    with ArchiveSearch(history.home) as layers:
        assert (subagent.path, subagent.session_id) == (EXTRACTED, f"{ORIGINAL}/{AGENT}")
        assert layers.read(layers.locate(subagent.session_id)[0]).exchanges[0].answer == "Seven."
        [read] = [tool for tool in CONVERSATION.tools if tool.name == "read"]
        assert "Seven." in read.call(ConversationContext(layers, Renderer()), {"path": subagent.session_id}).text


def test_existing_homes_are_read_again_for_the_calls(history: History) -> None:
    """A conversion schedules the transcripts of parents and sub-agents. IDs are kept, deleted lines stay deleted."""
    history.write([*parent(in_records=True, named_by_result=False), *talk("two", "three")])
    history.write(talk("apart", session=FORK), FORK)
    history.ingest()
    [gone] = [each.key for each in history.stored() if each.exchange.prompt == "two?"]
    forget(history, f"ex-{gone}")
    before = history.stored()
    database = history.store._database
    database.run("DELETE FROM subagent_call")
    [scheduling] = re.findall(r"^UPDATE source SET rules.*?;", old_steps()[-1], re.DOTALL | re.MULTILINE)
    database.run(scheduling)
    history.store.close()

    with History(history.folder.parent) as upgraded:
        assert started(upgraded) == {}
        report = upgraded.ingest()
        assert (report.changed, report.reread) == (0, 2)
        assert started(upgraded) == {CALL: (StartedSubagent(AGENT, EXTRACTED, 2),)}
        assert upgraded.stored() == before


def test_the_commands_show_the_subagent(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """`palaver show` and `palaver read` of a session print the command that reads its sub-agent."""
    history.write(parent(in_records=True, named_by_result=True))
    history.ingest()
    monkeypatch.setenv("PALAVER_HOME", str(history.home.root))

    for command, expected in (("show", f"**Sub-agents:** {AGENT} (2 lines)"), ("read", f"palaver read {AGENT}")):
        reply = CliRunner().invoke(main, [command, ORIGINAL])
        assert reply.exit_code == 0, reply.output
        assert expected in reply.stdout
    assert "Seven." in CliRunner().invoke(main, ["read", AGENT]).stdout
