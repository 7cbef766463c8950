"""Tests of a memory that several toolsets use, with a separate process for each step."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import TextContent


@dataclass
class User:
    """User with a project and an empty home, in which agents start servers."""

    project: Path
    home: Path

    def call(self, toolset: str, name: str, **arguments: object) -> dict[str, Any]:
        """Start a server, call one of its tools, and return the text as JSON."""
        program = ["-m", "palaver", "mcp", "--toolset", toolset]
        server = StdioServerParameters(
            command=sys.executable, args=program, env=self.environment, cwd=str(self.project)
        )
        found = list[dict[str, Any]]()

        async def run() -> None:
            async with Client(stdio_client(server), mode="2026-07-28") as client:
                (content,) = (await client.call_tool(name, arguments)).content
                assert isinstance(content, TextContent)
                found.append(orjson.loads(content.text))

        anyio.run(run)
        return found[0]

    def theo(self, name: str, **arguments: object) -> dict[str, Any]:
        """Call a Theo tool and return its data or its error."""
        reply = self.call("theo", name, **arguments)
        return reply["data"] if reply["success"] else reply

    def listed(self) -> dict[str, tuple[float, list[str]]]:
        """Return the importance and the superseding IDs of each memory that Theo lists."""
        rows = self.theo("memory_list", namespace="project:tide-clock")["memories"]
        return {row["id"]: (row["importance"], row.get("superseded_by", [])) for row in rows}

    def run(self, *arguments: str, **environment: str) -> str:
        """Run a command and return its output."""
        return subprocess.run(
            [sys.executable, "-m", "palaver", *arguments],
            cwd=self.project,
            env=self.environment | environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of every process."""
        return os.environ | {"PALAVER_HOME": str(self.home)}

    def found(self, query: str) -> list[str]:
        """Return the titles that `palaver search` finds."""
        return [hit["title"] for hit in orjson.loads(self.run("search", query, "--json"))["results"]]

    def recalled(self, query: str) -> list[str]:
        """Return the texts that Historian recalls."""
        return [memory["content"] for memory in self.call("historian", "memory_recall", query=query)["memories"]]


class ReadOnlyUser(User):
    """User whose servers are in read-only mode."""

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of every process."""
        return super().environment | {"PALAVER_READ_ONLY": "1"}


@pytest.fixture
def user(tmp_path: Path) -> User:
    (tmp_path / "tide-clock").mkdir()
    return User(tmp_path / "tide-clock", tmp_path / "home")


SQLITE = "The tide clock caches readings in SQLite"
EDITED = "The tide clock caches its readings in SQLite"
POSTGRES = "The tide clock now caches readings in PostgreSQL instead of SQLite"


def test_every_toolset_sees_changes_of_a_memory(user: User, tmp_path: Path) -> None:
    """A memory stored through Theo is recalled by Historian and found by search. Edits, supersession, deletion and
    restoring are visible in all of them.
    """
    stored = user.theo("memory_store", content=SQLITE, memory_type="decision", namespace="project:tide-clock")
    memory = stored["id"]
    assert any(SQLITE in text for text in user.recalled("where are readings cached"))
    assert SQLITE in user.found("where are readings cached")

    editor = tmp_path / "editor"
    editor.write_text(f'#!/bin/sh\nprintf "%s" "{EDITED}" > "$1"\n')
    editor.chmod(0o700)
    user.run("memories", "edit", memory, EDITOR=str(editor), VISUAL=str(editor))
    assert user.found("where are readings cached") == [EDITED]
    assert any(EDITED in text for text in user.recalled("where are readings cached"))

    newer = user.theo("memory_store", content=POSTGRES, memory_type="decision", namespace="project:tide-clock")
    assert newer["superseded_ids"] == [memory]
    assert user.listed() == {memory: (0.25, [newer["id"]]), newer["id"]: (0.5, [])}
    assert POSTGRES in user.found("where are readings cached")
    recalled = user.call("historian", "memory_recall", query="where are readings cached")["memories"]
    superseded = {each["path"]: each.get("superseded_by", []) for each in recalled}
    assert superseded == {memory: [newer["id"]], newer["id"]: []}

    by_rag = user.call("rag", "retrieve_project_context", query="where are readings cached")["results"]
    assert [(row["content"], row["category"]) for row in by_rag] == [(POSTGRES, "fact"), (EDITED, "fact")]

    assert user.theo("memory_forget", memory_id=newer["id"])["deleted_ids"] == [newer["id"]]
    assert user.listed() == {memory: (0.5, [])}
    assert POSTGRES not in user.found("where are readings cached")
    assert not any(POSTGRES in text for text in user.recalled("where are readings cached"))
    refused = user.theo("memory_apply", memory_id=newer["id"], context="a test")
    assert refused["error"] == f"Memory not found: {newer['id']}"

    user.run("memories", "undo", newer["id"])
    assert user.listed() == {memory: (0.25, [newer["id"]]), newer["id"]: (0.5, [])}
    assert POSTGRES in user.found("where are readings cached")
    assert any(POSTGRES in text for text in user.recalled("where are readings cached"))


def test_a_memory_of_rag_is_a_memory_of_every_toolset(user: User) -> None:
    """A memory stored through rag is found by all others with one ID, and deleting it there deletes it here."""
    stored = user.call(
        "rag", "store_memory", content=SQLITE, category="fact", scope="project", project_name="tide-clock"
    )
    [listed] = user.theo("memory_list", namespace="project:tide-clock")["memories"]
    assert (listed["content"], listed["memory_type"]) == (SQLITE, "fact")
    assert user.found("where are readings cached") == [SQLITE]
    assert user.recalled("where are readings cached") == [SQLITE]
    refused = user.call("rag", "delete_memory", memory_id=stored["memory_id"].replace("-8000-8000-", "-8000-8001-"))
    assert refused["deleted"] is False

    user.theo("memory_forget", memory_id=listed["id"])
    assert user.call("rag", "delete_memory", memory_id=stored["memory_id"])["deleted"] is False
    assert user.call("rag", "retrieve_memories", query="where are readings cached")["count"] == 0


def test_an_event_is_a_memory_of_every_toolset_until_it_is_forgotten(user: User) -> None:
    """An event of fabric is recalled by Theo, listed by rag, found by search and written out by Historian. Forgotten
    once, none of them finds it, and its file is deleted.
    """
    event = {
        "type": "decision_made",
        "payload": {"decision": SQLITE},
        "timestamp": "2026-02-25T09:00:00.000Z",
        "sessionId": "s1",
        "cliType": "claude-code",
    }
    (user.project / ".mnemonics").mkdir()
    memory = user.call("fabric", "context.reportEvent", event=event)["memoryId"]
    query = {"query": "where are readings cached"}
    [recalled] = user.theo("memory_recall", **query, namespace="project:tide-clock")["memories"]
    by_rag = user.call("rag", "retrieve_project_context", **query)["results"]
    assert (recalled["content"], [(row["memory_id"], row["content"]) for row in by_rag]) == (SQLITE, [(memory, SQLITE)])
    assert SQLITE in user.found("where are readings cached")
    assert user.recalled("where are readings cached") == [SQLITE]
    written = user.call("historian", "memory_compound", query=SQLITE, modifications=EDITED)
    assert written["createdNew"] is False
    file = user.project / written["filePath"]
    assert EDITED in file.read_text("utf-8")
    assert user.call("fabric", "context.get", memoryId=memory)["memory"]["content"] == EDITED

    user.theo("memory_forget", memory_id=recalled["id"])
    assert not file.exists()
    assert user.theo("memory_recall", **query)["memories"] == []
    assert user.call("rag", "retrieve_memories", **query)["count"] == 0
    assert user.found("where are readings cached") == []
    assert user.recalled("where are readings cached") == []
    assert user.call("fabric", "context.get", memoryId=memory)["error"] == f"Memory not found: {memory}"


def test_the_environment_makes_a_server_read_only(user: User) -> None:
    """PALAVER_READ_ONLY=1 has the effect of --read-only."""
    user.call("rag", "store_memory", content=SQLITE, category="fact")
    reader = ReadOnlyUser(user.project, user.home)

    assert reader.call("rag", "get_memory_stats")["read_only_mode"] is True
    assert reader.call("rag", "store_memory", content=EDITED, category="fact")["error"]["type"] == "ReadOnlyError"
    assert user.call("rag", "get_memory_stats")["total_memories"] == 1
