"""Ingest of sub-agents: their messages in the parent's transcript, their own transcripts, and IDs that occur twice."""

# pyright: reportPrivateUsage=false

from pathlib import Path
from typing import Any

import pytest

from palaver.archiver.copies.exporter import Exporter
from palaver.core.conversation import Exchange
from palaver.core.errors import InvalidInput

from ..deletion.steps import copied_bytes, forget, undo
from ..formats.claude_code.claude_lines import assistant, jsonl, progress, result, text, tool, user
from ..history import FORK, ORIGINAL, History, talk

AGENT = "agent-a1b2c3d"
TASK = "Count the ferry routes"
PLACE = {"sessionId": ORIGINAL, "cwd": "/home/demo/shop", "gitBranch": "main"}


def uuid(number: int) -> str:
    return f"aaaaaaaa-0000-4000-8000-{number:012}"


def messages(*, session: str = ORIGINAL, task: str = TASK, first: int = 1) -> list[dict[str, Any]]:
    """Return the messages of a sub-agent as its own transcript contains them."""
    place: dict[str, Any] = {**PLACE, "sessionId": session, "agentId": "a1b2c3d", "isSidechain": True}
    call = tool("Read", {"file_path": "/home/demo/shop/ferry.txt"}, id=f"toolu_{first}")
    return [
        user(task, uuid=uuid(first), **place),
        assistant(call, uuid=uuid(first + 1), **place),
        result("seven routes", id=f"toolu_{first}") | place | {"uuid": uuid(first + 2)},
    ]


def in_progress(*lines: dict[str, Any], session: str = ORIGINAL) -> list[dict[str, Any]]:
    """Return the records of the parent's transcript with these messages."""
    return [progress(line, agent="a1b2c3d", task=TASK, **{**PLACE, "sessionId": session}) for line in lines]


def subagent(history: History, scope: str = ORIGINAL) -> list[Exchange]:
    number = history.store.sessions.find("claude-code", AGENT, scope)
    return [stored.exchange for stored in history.stored() if stored.session == number]


def write_own(history: History, lines: list[dict[str, Any]], *, at: int = 3) -> None:
    """Write the transcript of the sub-agent itself."""
    path = history.folder / "shop" / ORIGINAL / "subagents" / f"{AGENT}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(jsonl(lines))
    history.touch(path, at)


def test_a_subagent_in_progress_records_is_a_session_of_its_own(history: History) -> None:
    """It belongs to its parent, and the parent's transcript counts its lines as those of a sub-agent."""
    history.write([*talk("one"), *in_progress(*messages()), *talk("two")])
    report = history.ingest()

    assert (report.seen, report.changed) == (2, 2)
    assert history.prompts() == ["one?", "two?"]
    [exchange] = subagent(history)
    assert (exchange.prompt, exchange.reads) == (TASK, ("/home/demo/shop/ferry.txt",))
    session = history.store.sessions.load(history.store.sessions.find("claude-code", AGENT, ORIGINAL) or 0)
    assert (session.kind, session.parent_id, session.title, session.project) == ("subagent", ORIGINAL, TASK, "shop")
    assert history.source().coverage == {"parsed": 4, "subagent": 3}
    assert history.ingest().changed == 0


def test_a_running_subagent_grows(history: History) -> None:
    """New messages are appended to the conversation, which keeps its ID."""
    first, *later = in_progress(*messages())
    history.write([*talk("one"), first])
    history.ingest()
    [before] = [stored.key for stored in history.stored() if stored.exchange.prompt == TASK]
    history.append(later)
    history.ingest()

    assert [len(exchange.turns) for exchange in subagent(history)] == [3]
    assert [stored.key for stored in history.stored() if stored.exchange.prompt == TASK] == [before]


@pytest.mark.parametrize("together", [True, False])
def test_a_subagent_with_its_own_transcript_is_read_once(history: History, *, together: bool) -> None:
    """The own transcript is more complete. It counts even if it is found after the records of the parent."""
    history.write([*talk("one"), *in_progress(*messages())])
    if not together:
        history.ingest()
    answer = assistant(text("Seven."), uuid=uuid(9), **PLACE, agentId="a1b2c3d", isSidechain=True)
    write_own(history, [*messages(), answer])
    history.ingest()

    assert [exchange.answer for exchange in subagent(history)] == ["Seven."]
    assert history.ingest().changed == 0


def test_existing_homes_get_the_subagents_in_progress_records(history: History) -> None:
    """The next run reads the copies again. Exchanges keep their IDs, and deleted ones stay deleted."""
    history.write([*talk("one"), *in_progress(*messages()), *talk("two"), *in_progress(*messages(task="Old", first=5))])
    history.ingest()
    forget(history, *[f"ex-{each.key}" for each in history.stored() if each.exchange.prompt == "two?"])
    known = {each.exchange.prompt: each.key for each in history.stored()}
    database = history.store._database
    with database.transaction():  # As in a home of a version that skipped these records.
        database.run("DELETE FROM item WHERE session <> 1")
        database.run("DELETE FROM record WHERE source <> 1")
        database.run("DELETE FROM source WHERE id <> 1")
        database.run("DELETE FROM container")
        database.run("UPDATE source SET rules = '', coverage = '{\"progress\": 10}'")
    for path in history.home.archive.rglob("extracted/*"):
        path.unlink()
    history.ingest()

    assert known["one?"] in [each.key for each in history.stored()]
    assert [each.prompt for each in subagent(history)] == [TASK]
    assert history.prompts() == ["one?"]


def test_a_deletion_of_the_parents_exchange_includes_its_subagent(history: History) -> None:
    """The lines of a sub-agent are deleted in both copies, can be restored, and are erased in both copies."""
    history.write([*talk("one"), *in_progress(*messages()), *talk("two")])
    history.ingest()
    [key] = [each.key for each in history.stored() if each.exchange.prompt == "one?"]
    number = forget(history, f"ex-{key}")
    assert (history.prompts(), subagent(history)) == (["two?"], [])

    undo(history, number)
    assert history.prompts() == ["one?", "two?"]
    assert [exchange.prompt for exchange in subagent(history)] == [TASK]

    forget(history, f"ex-{key}", erase=True)
    assert (history.prompts(), subagent(history)) == (["two?"], [])
    assert b"ferry" not in copied_bytes(history)


@pytest.mark.parametrize("erase", [False, True])
def test_a_deleted_subagent_does_not_return(history: History, *, erase: bool) -> None:
    """Deleting only the sub-agent keeps the parent's exchange, also when the parent's transcript grows."""
    history.write([*talk("one"), *in_progress(*messages())])
    history.ingest()
    forget(history, AGENT, erase=erase)
    history.append(talk("two"))
    history.ingest()

    assert (history.prompts(), subagent(history)) == (["one?", "two?"], [])
    assert (b"ferry" in copied_bytes(history)) is not erase


def test_the_id_of_a_subagent_is_unique_only_in_its_parent(history: History) -> None:
    """Two sessions can have a sub-agent of the same ID. Each of the two has its own parent, title and exchanges."""
    history.write([*talk("one"), *in_progress(*messages())])
    other = messages(session=FORK, task="Paint the hull", first=20)
    history.write([*talk("two", session=FORK), *in_progress(*other, session=FORK)], FORK, project="yard", at=2)
    history.ingest()

    sessions = [each for each in history.store.sessions.all().values() if each.native_id == AGENT]
    assert [(each.parent_id, each.title) for each in sessions] == [(ORIGINAL, TASK), (FORK, "Paint the hull")]
    assert [exchange.prompt for exchange in subagent(history, FORK)] == ["Paint the hull"]
    numbers = [history.store.sessions.find("claude-code", AGENT, each.scope) or 0 for each in sessions]
    assert [*history.store.sessions.short_ids(numbers).values()] == [f"{ORIGINAL}/{AGENT}", f"{FORK}/{AGENT}"]
    assert history.store.sessions.beginning_with(f"{FORK}/{AGENT}") == numbers[1:]
    with pytest.raises(InvalidInput, match="2 session IDs begin with agent-a1b2c3d"):
        forget(history, AGENT)
    forget(history, f"{FORK}/{AGENT}")
    assert (len(subagent(history)), subagent(history, FORK)) == (1, [])


def test_subagents_that_shared_an_id_are_separated(history: History) -> None:
    """Older versions stored two sub-agents of one ID as one session. The next run gives each its own session."""
    for name, session, task, first in (("shop", ORIGINAL, TASK, 1), ("yard", FORK, "Paint the hull", 20)):
        path = history.folder / name / session / "subagents" / f"{AGENT}.jsonl"
        path.parent.mkdir(parents=True)
        path.write_bytes(jsonl(messages(session=session, task=task, first=first)))
    history.ingest()
    database = history.store._database
    with database.transaction():
        database.run("UPDATE item SET session = 1")
        database.run("UPDATE source SET session = 1, rules = ''")
        database.run("DELETE FROM session WHERE id <> 1")
    keys = {each.key for each in history.stored()}
    history.ingest()

    assert [[each.prompt for each in subagent(history, scope)] for scope in (ORIGINAL, FORK)] == [
        [TASK],
        ["Paint the hull"],
    ]
    assert {each.key for each in history.stored()} == keys


@pytest.mark.parametrize("at", [2, 0])
def test_a_fork_repeats_the_subagents_of_its_origin(history: History, at: int) -> None:
    """A fork copies the records of its origin, with its own session ID. The sub-agent belongs to the origin."""
    history.write([*talk("one"), *in_progress(*messages())])
    origin = {"forkedFrom": {"sessionId": ORIGINAL, "messageUuid": "m"}}
    copied = [*talk("one", session=FORK), *in_progress(*messages(), session=FORK)]
    history.write([*({**line, **origin} for line in copied), *talk("apart", session=FORK)], FORK, at=at)
    history.ingest()

    assert (history.prompts(), history.prompts(FORK)) == (["one?"], ["apart?"])
    assert ([each.prompt for each in subagent(history)], subagent(history, FORK)) == ([TASK], [])


def test_an_export_contains_the_lines_of_a_subagent_once(history: History, tmp_path: Path) -> None:
    """The transcript of the parent contains them. They have a file of their own only if they are exported alone."""
    history.write([*talk("one"), *in_progress(*messages())])
    history.ingest()
    exporter, folder = Exporter(history.store, history.raw), tmp_path / "export"
    whole = exporter.export(exporter.find(ORIGINAL), folder / "whole")
    alone = exporter.export(exporter.find(AGENT), folder / "alone")

    assert [file.path.name for file in whole.files] == [f"{ORIGINAL}.jsonl"]
    assert [file.path.name for file in alone.files] == [f"{AGENT}.jsonl"]


def test_the_records_of_an_erased_subagent_are_erased_from_its_parent(history: History) -> None:
    """The sub-agent has a transcript of its own, whose lines differ from the records in the parent's transcript."""
    history.write([*talk("one"), *in_progress(*messages())])
    write_own(history, messages())
    history.ingest()
    assert b"ferry" in copied_bytes(history)
    forget(history, AGENT, erase=True)

    assert (history.prompts(), subagent(history)) == (["one?"], [])
    assert b"ferry" not in copied_bytes(history)
