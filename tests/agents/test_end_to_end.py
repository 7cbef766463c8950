"""Tests of `palaver mcp` in a real process with an MCP client and a real archive."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import CallToolResult, TextContent

from palaver.core.home import Home
from palaver.core.tokens import count

from .. import demo
from .fake_layers import DATES

ERAS = ["legacy", "2026-07-28"]
PALAVER = (sys.executable, "-m", "palaver", "mcp")
SESSION = "claude-code/-home-demo-tide-clock/1c90a7e2-77b1-4c36-8d1f-90b4a6c2d302.jsonl"
Scenario = Callable[[Client], Coroutine[Any, Any, None]]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Home with the archived demo data and with links inside its archive."""
    root = tmp_path_factory.mktemp("served")
    home = demo.archived(root)
    (root / "secret.jsonl").write_text('{"type":"user"}\n')
    (home.archive / "outside.jsonl").symlink_to(root / "secret.jsonl")
    (home.archive / "inside.jsonl").symlink_to(home.archive / SESSION)
    return home


def served(home: Path, scenario: Scenario, era: str = ERAS[1], command: tuple[str, ...] = PALAVER) -> None:
    """Run `talk` against a server in a separate process."""

    async def run() -> None:
        program, *arguments = command
        environment = dict(os.environ) | {"PALAVER_HOME": str(home)}
        server = StdioServerParameters(command=program, args=arguments, env=environment)
        async with Client(stdio_client(server), mode=era) as client:
            await scenario(client)

    anyio.run(run)


def text(result: CallToolResult) -> str:
    """Return the only text of the reply."""
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


@pytest.mark.parametrize("era", ERAS)
def test_a_question_leads_to_the_lines_of_its_answer(home: Home, era: str) -> None:
    """Each of the three tools returns the input of the next tool, in JSON and Markdown."""

    async def scenario(client: Client) -> None:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["search", "get_observations", "read"]

        question = {"query": "high water one hour late since the clocks changed", "limit": 3}
        found = (await client.call_tool("search", question | {"response_format": "json"})).structured_content
        assert found is not None
        hit = found["results"][0]
        shown = text(await client.call_tool("search", question))
        assert shown.startswith("## Search Results (3 observations)\n")
        assert hit["id"] in shown

        reply = await client.call_tool("get_observations", {"ids": [hit["id"]], "response_format": "json"})
        assert reply.structured_content is not None
        [detail] = reply.structured_content["observations"]
        assert detail["path"] == SESSION
        assert "summer time" in text(await client.call_tool("get_observations", {"ids": [hit["id"]]}))

        proof = detail["evidence"][0]
        place = {"path": detail["path"], "startLine": proof["start_line"], "endLine": proof["end_line"]}
        raw = await client.call_tool("read", place | {"response_format": "json"})
        assert raw.structured_content is not None
        turns = raw.structured_content["exchanges"][0]["turns"]
        assert any(proof["quote"] in turn["text"] for turn in turns)
        assert f"(line {turns[0]['line']})" in text(await client.call_tool("read", place))

        lines = {"path": SESSION, "startLine": detail["start_line"], "endLine": detail["end_line"]}
        by_id, by_lines = [text(await client.call_tool("read", each)) for each in ({"path": hit["id"]}, lines)]
        assert by_id.split("\n")[1:-3] == by_lines.split("\n")[1:-3]
        assert detail["tokens"] == pytest.approx(count(by_id), rel=0.1)
        assert found["next"] is None

    served(home.root, scenario, era)


MISTAKES: list[tuple[str, dict[str, Any], str]] = [
    ("search", {"query": "x"}, "Query too short: Single string must be ≥2 characters"),
    ("search", {"query": 7}, "Query must be string or array. Use string or string[]"),
    ("search", {"query": [*"abcdef"]}, "Query array must have 2-5 items. Add/remove concepts"),
    ("search", {"query": "tide", "after": "12/01/2025"}, DATES),
    ("get_observations", {"ids": ["obs-0"]}, "Invalid observation ID: obs-0. Verify ID from search results"),
    (
        "get_observations",
        {"ids": [f"obs-{number}" for number in range(21)]},
        "Maximum 20 observations per request. Split into multiple requests if needed",
    ),
    ("read", {"path": "/etc/passwd"}, "File not found: /etc/passwd. Verify path from search"),
    ("read", {"path": "../palaver.db"}, "File not found: ../palaver.db. Verify path from search"),
    ("read", {"path": "outside.jsonl"}, "File not found: outside.jsonl. Verify path from search"),
    ("read", {"path": "inside.jsonl"}, "File not found: inside.jsonl. Verify path from search"),
    ("read", {"path": SESSION, "startLine": 0}, "Invalid line range: startLine must be ≥1. Check line numbers"),
    (
        "read",
        {"path": SESSION, "startLine": 9, "endLine": 8},
        "Invalid line range: endLine must be ≥startLine. Check line numbers",
    ),
]


@pytest.mark.parametrize("era", ERAS)
def test_errors_have_the_text_of_the_specification(home: Home, era: str) -> None:
    """Each invalid call is a tool error with the text of the specification, and the server continues."""

    async def scenario(client: Client) -> None:
        for name, arguments, words in MISTAKES:
            refused = await client.call_tool(name, arguments)
            assert (refused.is_error, text(refused)) == (True, words)
        assert not (await client.call_tool("search", {"query": "sqlite"})).is_error

    served(home.root, scenario, era)


def test_a_search_without_hits_is_not_an_error(home: Home) -> None:
    """A search without hits suggests a next step."""

    async def scenario(client: Client) -> None:
        for query, noun in (("tide", "observations"), (["tide", "clock"], "conversations")):
            found = await client.call_tool("search", {"query": query, "before": "2020-01-01"})
            assert (found.is_error, text(found).startswith(f"No {noun} found. Try broader query")) == (False, True)

    served(home.root, scenario)


def test_several_concepts_find_conversations(home: Home) -> None:
    """An array of concepts finds exchanges of conversations that contain all concepts."""

    async def scenario(client: Client) -> None:
        found = await client.call_tool("search", {"query": ["SQLite", "UTC"]})
        assert text(found).startswith("## Search Results (1 conversation)\n")
        assert SESSION in text(found)

    served(home.root, scenario)


def test_a_search_has_a_token_budget(home: Home) -> None:
    """Hits of two projects cost at most 45 tokens each, including heading and last line."""

    async def scenario(client: Client) -> None:
        shown = text(await client.call_tool("search", {"query": "tests fail in the name search"}))
        assert shown.count("\nobs-") >= 5
        assert count(shown) <= 45 * shown.count("\nobs-")

    served(home.root, scenario)


def test_an_archive_created_later_is_found(tmp_path: Path, home: Home) -> None:
    """A server without an archive reports that, and works once the archive exists."""

    async def scenario(client: Client) -> None:
        missing = await client.call_tool("search", {"query": "sqlite"})
        assert (missing.is_error, "Run `palaver up`" in text(missing)) == (True, True)
        shutil.copytree(home.root, tmp_path / "later", symlinks=True, ignore=shutil.ignore_patterns("*.sock"))
        assert not (await client.call_tool("search", {"query": "sqlite"})).is_error

    served(tmp_path / "later", scenario)


def test_the_install_command_of_up_works() -> None:
    """The command that `palaver up` prints connects a client to the new archive."""
    shown = subprocess.run([*PALAVER[:-1], "up"], capture_output=True, text=True, check=True).stdout
    line = next(line for line in shown.splitlines() if line.endswith(" install"))
    subprocess.run(f"{line} cursor --yes", shell=True, check=True, capture_output=True)
    entry = json.loads((Path.home() / ".cursor" / "mcp.json").read_text())["mcpServers"]["palaver"]

    async def scenario(client: Client) -> None:
        assert "obs-" in text(await client.call_tool("search", {"query": "sqlite"}))

    served(Path(entry["env"]["PALAVER_HOME"]), scenario, command=(entry["command"], *entry["args"]))


def test_days_are_those_of_the_servers_time_zone(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages and date parameters have local days, and with `--utc` days in UTC. `context.orient` keeps its own zone."""
    monkeypatch.setenv("TZ", "Asia/Seoul")
    question = {"query": "sqlite or json files", "limit": 1}

    def scenario(day: str, other: str) -> Scenario:
        async def talk(client: Client) -> None:
            assert day in text(await client.call_tool("search", question))
            assert day in text(await client.call_tool("search", question | {"after": day, "before": day}))
            nothing = await client.call_tool("search", question | {"after": other, "before": other})
            assert text(nothing).startswith("No observations found.")
            orientation = (await client.call_tool("context.orient", {})).structured_content
            assert orientation is not None
            assert orientation["time"]["timezone"] == "Asia/Seoul"

        return talk

    command = (*PALAVER, "--toolset", "conversation,fabric")
    served(home.root, scenario("2026-02-04", "2026-02-03"), command=command)
    served(home.root, scenario("2026-02-03", "2026-02-04"), command=(*command, "--utc"))
