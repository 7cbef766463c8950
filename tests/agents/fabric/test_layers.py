"""Tests of the layers: expiry, sessions, processes and decay."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import cast

import orjson
import pytest

from palaver.agents.fabric import fabric_context
from palaver.core.memory import MemoryState, session_namespace

from .client import DAY, Agent

ROOT = Path(__file__).parents[3]
HOUR = 3_600_000


def server(fabric: Agent) -> "subprocess.Popen[str]":
    """Start a server in another process. It reads one call a line and prints its reply."""
    command = [sys.executable, "-m", "tests.agents.fabric.server_process", str(fabric.folder)]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def ask(process: "subprocess.Popen[str]", name: str, **arguments: object) -> dict[str, object]:
    """Call a tool of a server in another process."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(orjson.dumps([name, arguments]).decode() + "\n")
    process.stdin.flush()
    reply: dict[str, object] = orjson.loads(process.stdout.readline())
    return reply


def working(fabric: Agent, session: str) -> list[str]:
    """Return the contents of the working memories of a session."""
    return [each["content"] for each in fabric.call("getCurrent", sessionId=session)["context"]["working"]]


def test_sessions_have_separate_working_memories(fabric: Agent) -> None:
    """Tools without a session ID use the last session. Notes stored before any session are seen in all of them."""
    fabric.store("before any session", "scratchpad")
    fabric.call("getCurrent", sessionId="s1")
    fabric.store("note of the first", "scratchpad")
    fabric.call("recall", query="anything", sessionId="s2")
    fabric.store("note of the second", "scratchpad")

    assert working(fabric, "s1") == ["note of the first", "before any session"]
    assert working(fabric, "s2") == ["note of the second", "before any session"]


def test_sessions_with_odd_ids_share_nothing() -> None:
    """IDs that differ only in characters that a namespace cannot contain have different namespaces."""
    names = {session_namespace(each) for each in ("a b", "a/b", "a-b", "ä" * 300, "ä" * 301, "")}

    assert len(names) == 6


@pytest.mark.parametrize(("ttl", "lifetime"), [(None, HOUR), (60.0, 60_000)])
def test_working_memories_expire(fabric: Agent, ttl: float | None, lifetime: int) -> None:
    """A working memory expires after its time-to-live, by default an hour. A pinned one does not expire by default."""
    memory = fabric.store("Refactoring the auth module", "scratchpad", ttl=ttl)
    fabric.store("Pinned note", "scratchpad", pinned=True)
    fabric.shift = lifetime - 5_000
    assert fabric.contents(1) == ["Pinned note", "Refactoring the auth module"]
    fabric.shift = lifetime + 5_000

    assert fabric.contents(1) == ["Pinned note"]
    assert fabric.error("get", memoryId=memory) == f"Memory not found: {memory}"
    assert fabric.call("recall", query="Refactoring the auth module", sessionId="s", threshold=0)["total"] == 0


def test_a_full_session_forgets_the_least_recently_used(fabric: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the maximum, the memory that was unused for longest is archived. Pinned ones stay."""
    monkeypatch.setattr(fabric_context, "SESSION_MAX", 3)
    fabric.store("note pinned", "scratchpad", pinned=True)
    first, second = (fabric.store(f"note {name}", "scratchpad") for name in ("one", "two"))
    fabric.call("get", memoryId=first)
    fabric.store("note three", "scratchpad")

    assert set(fabric.contents(1)) == {"note pinned", "note one", "note three"}
    assert fabric.context.core.get(f"mem_{int(second.replace('-', ''), 16) & 0xFFFF}").state is MemoryState.ARCHIVED


def test_two_processes_share_a_session_and_a_killed_one_loses_nothing(fabric: Agent) -> None:
    """A memory that another process acknowledged is there at once, and after that process is killed."""
    one, other = server(fabric), server(fabric)
    try:
        note: dict[str, object] = {"type": "scratchpad", "metadata": {}}
        for process in (one, other):
            ask(process, "context.getCurrent", sessionId="shared")
        first = ask(one, "context.store", content="note of the first process", **note)
        assert ask(other, "context.get", memoryId=first["id"])["layer"] == 1
        stored = [ask(one, "context.store", content=f"note {number}", **note)["id"] for number in range(5)]
        os.kill(one.pid, signal.SIGKILL)
        one.wait()
        listed = ask(other, "context.list", layer=1)
    finally:
        for process in (one, other):
            process.kill()
            process.communicate()

    memories = cast("list[dict[str, object]]", listed["memories"])
    assert {first["id"], *stored} == {each["id"] for each in memories}


def test_decay_archives_and_can_be_undone(fabric: Agent) -> None:
    """An unused memory of layer 3 is archived after four weeks. Used, pinned and the user's own memories stay."""
    unused = fabric.store("Prefer early returns", "convention")
    stays = [
        fabric.store("Prefer tabs", "convention", pinned=True),
        fabric.store("Prefer composition", "convention", {"source": "user_explicit"}),
        fabric.store("Use Zod", "decision"),
        fabric.store("Prefer pure functions", "convention"),
    ]
    for _ in range(2):
        fabric.call("get", memoryId=stays[-1])
    fabric.shift = 27 * DAY
    assert "archived" not in fabric.call("orient")
    fabric.shift = 60 * DAY
    archived = fabric.call("orient")["archived"]

    assert archived["count"] == 1
    assert fabric.error("get", memoryId=unused) == f"Memory not found: {unused}"
    assert [fabric.call("get", memoryId=each)["memory"]["id"] for each in stays] == stays
    fabric.context.core.undo(archived["undo"].split()[3:])
    assert fabric.call("get", memoryId=unused)["memory"]["content"] == "Prefer early returns"


def test_a_list_says_where_it_continues(fabric: Agent) -> None:
    """A page that ends early, by its limit or by the budget of a reply, names the offset of the next page."""
    for number in range(6):
        fabric.store(f"Decision {number}: " + f"tide{number} " * 2_000)
    seen: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = fabric.call("list", limit=4, offset=offset)
        assert page["memories"], offset
        seen += [each["content"][:11] for each in page["memories"]]
        offset = page.get("nextOffset")

    assert seen == [f"Decision {number}:" for number in reversed(range(6))]
