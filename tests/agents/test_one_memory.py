"""One memory across all surfaces, each step in a process of its own: what one stores, changes or forgets, all know."""

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
    """Somebody with a project and an empty home, whose agents start servers there."""

    project: Path
    home: Path

    def call(self, toolset: str, name: str, **arguments: object) -> dict[str, Any]:
        """Call a tool of a server that is started for this call; its text as JSON."""
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
        """Call a tool of theo; its data, or its error."""
        reply = self.call("theo", name, **arguments)
        return reply["data"] if reply["success"] else reply

    def listed(self) -> dict[str, tuple[float, list[str]]]:
        """Return the importance of each memory that theo lists and the ids of those that superseded it."""
        rows = self.theo("memory_list", namespace="project:tide-clock")["memories"]
        return {row["id"]: (row["importance"], row.get("superseded_by", [])) for row in rows}

    def run(self, *arguments: str, **environment: str) -> str:
        """Run a command; what it prints."""
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
        """The variables of every process."""
        return os.environ | {"PALAVER_HOME": str(self.home)}

    def found(self, query: str) -> list[str]:
        """The titles that `palaver search` finds."""
        return [hit["title"] for hit in orjson.loads(self.run("search", query, "--json"))["results"]]

    def recalled(self, query: str) -> list[str]:
        """The texts that historian recalls."""
        return [memory["content"] for memory in self.call("historian", "memory_recall", query=query)["memories"]]


@pytest.fixture
def user(tmp_path: Path) -> User:
    (tmp_path / "tide-clock").mkdir()
    return User(tmp_path / "tide-clock", tmp_path / "home")


SQLITE = "The tide clock caches readings in SQLite"
EDITED = "The tide clock caches its readings in SQLite"
POSTGRES = "The tide clock now caches readings in PostgreSQL instead of SQLite"


def test_a_memory_goes_through_every_surface(user: User, tmp_path: Path) -> None:
    """Stored through theo, it is recalled by historian and found by search; edited, superseded, forgotten and restored
    it is so for all of them.
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
