"""Tests for agents/server.py with the SDK's client over real standard input and output."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextContent

from palaver.agents.conversation_tools import CONVERSATION
from palaver.agents.server import build
from palaver.agents.toolset import TOOLSETS
from palaver.core.errors import StoreMissing
from palaver.core.home import Home

from ..templates.samples import transcript
from .fake_layers import DATES, FakeLayers, over

ROOT = Path(__file__).parents[2]
MODULE = "tests.agents.fake_layers"
PATH = transcript().path
ERAS = ["legacy", "2026-07-28"]
# Modules that no server needs to list its tools, and those that the conversation tools do not need either.
UNLISTED = {
    "anthropic",
    "jinja2",
    "numpy",
    "onnxruntime",
    "palaver.observe.pipeline",
    "palaver.observe.llm",
    "palaver.observe.rules.rule_extractor",
    "tokenizers",
    "usearch",
}
UNSEARCHED = {"palaver.observe.memory", "palaver.observe.mnemonics", "palaver.search.document_library", "yaml"}
Scenario = Callable[[Client], Coroutine[Any, Any, None]]


def over_stdio(scenario: Scenario, mode: str) -> None:
    """Run `talk` against a server in a separate process."""

    async def run() -> None:
        server = StdioServerParameters(command=sys.executable, args=["-m", MODULE], cwd=ROOT)
        async with Client(stdio_client(server), mode=mode) as client:
            await scenario(client)

    anyio.run(run)


def in_process(scenario: Scenario, open_layers: Callable[[], FakeLayers] = FakeLayers) -> None:
    """Run `talk` against a server in this process."""

    async def run() -> None:
        async with Client(build(*over(open_layers)), mode="2026-07-28") as client:
            await scenario(client)

    anyio.run(run)


def missing() -> FakeLayers:
    """Raise the error of a missing archive."""
    raise StoreMissing(Home.find().database)


def text(result: CallToolResult) -> str:
    """Return the only text of the reply."""
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


@pytest.mark.parametrize("mode", ERAS)
def test_both_protocol_generations_are_served(mode: str) -> None:
    """Clients with and without a handshake see the same tools and replies."""

    async def scenario(client: Client) -> None:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == ["search", "get_observations", "read"]
        for listed, tool in zip(tools, CONVERSATION.tools, strict=True):
            assert (listed.input_schema, listed.description) == (tool.schema, tool.description)
            assert listed.annotations is not None
            assert listed.annotations.read_only_hint
            assert listed.output_schema is None
        for name, arguments, begin in (
            ("search", {"query": "auth"}, "## Search Results (2 observations)\n"),
            ("search", {"query": ["React", "JWT"]}, "## Search Results (2 conversations)\n"),
            ("search", {"query": "nothing"}, "No observations found."),
            ("get_observations", {"ids": ["obs-1", "obs-2"]}, "Retrieved 2 observations:\n"),
            ("read", {"path": PATH}, "<recalled-N>\n# Conversation: 5e0c\n# Project: my-api\n# Date: 2025-12-01\n"),
        ):
            result = await client.call_tool(name, arguments)
            assert re.sub(r"\d{8}", "N", text(result)).startswith(begin)
            assert result.structured_content is None
            assert not result.is_error

    over_stdio(scenario, mode)


@pytest.mark.parametrize("mode", ERAS)
def test_json_is_the_text_and_the_structured_content(mode: str) -> None:
    """The text of a JSON reply is its structured content."""

    async def scenario(client: Client) -> None:
        for name, arguments, key in (
            ("search", {"query": "auth"}, "results"),
            ("get_observations", {"ids": ["obs-1"]}, "observations"),
            ("read", {"path": PATH}, "exchanges"),
        ):
            result = await client.call_tool(name, {**arguments, "response_format": "json"})
            assert result.structured_content[key]
            assert orjson.loads(text(result)) == result.structured_content

    over_stdio(scenario, mode)


@pytest.mark.parametrize("mode", ERAS)
def test_errors_have_the_text_of_the_specification(mode: str) -> None:
    """An invalid call is a tool error with a remedy, and the server continues."""

    async def scenario(client: Client) -> None:
        for name, arguments, message in (
            ("search", {"query": "x"}, "Query too short: Single string must be ≥2 characters"),
            ("search", {"query": 1}, "Query must be string or array. Use string or string[]"),
            ("search", {"query": ["ab"] * 6}, "Query array must have 2-5 items. Add/remove concepts"),
            ("search", {"query": "ab", "after": "soon"}, DATES),
            ("get_observations", {"ids": ["obs-9"]}, "Invalid observation ID: obs-9. Verify ID from search results"),
            (
                "get_observations",
                {"ids": ["obs-1"] * 21},
                "Maximum 20 observations per request. Split into multiple requests if needed",
            ),
            ("read", {"path": "../x"}, "File not found: ../x. Verify path from search"),
            (
                "read",
                {"path": PATH, "startLine": 0},
                "Invalid line range: startLine must be ≥1. Check line numbers",
            ),
            (
                "read",
                {"path": PATH, "startLine": 3, "endLine": 2},
                "Invalid line range: endLine must be ≥startLine. Check line numbers",
            ),
        ):
            result = await client.call_tool(name, arguments)
            assert result.is_error
            assert text(result) == message
        assert not (await client.call_tool("search", {"query": "auth"})).is_error

    over_stdio(scenario, mode)


def test_an_unknown_tool_is_a_protocol_error() -> None:
    """A call of an unknown tool is an error that lists the tools."""

    async def scenario(client: Client) -> None:
        with pytest.raises(MCPError, match=r"Unknown tool: forget\. Tools: search, get_observations, read"):
            await client.call_tool("forget", {})

    in_process(scenario)


def test_a_bug_does_not_end_the_server() -> None:
    """An unexpected error ends one call, not the connection."""

    async def scenario(client: Client) -> None:
        with pytest.raises(MCPError):
            await client.call_tool("search", {"query": "crash"})
        assert not (await client.call_tool("search", {"query": "auth"})).is_error

    in_process(scenario)


def test_the_archive_is_opened_at_the_first_call() -> None:
    """Without an archive, the server lists its tools, and each call explains how to create an archive."""

    async def scenario(client: Client) -> None:
        assert len((await client.list_tools()).tools) == 3
        for _ in range(2):
            result = await client.call_tool("search", {"query": "auth"})
            assert result.is_error
            assert "Run `palaver up` to create one." in text(result)

    in_process(scenario, missing)


def test_concurrent_calls_are_all_answered() -> None:
    """Many calls on one connection do not disturb each other."""

    async def scenario(client: Client) -> None:
        replies: list[str] = []

        async def ask(ids: list[str]) -> None:
            replies.append(text(await client.call_tool("get_observations", {"ids": ids})).split("\n")[0])

        async with anyio.create_task_group() as group:
            for number in range(1, 11):
                group.start_soon(ask, ["obs-1"] * number)
        assert sorted(replies) == sorted(f"Retrieved {n} observation{'s' if n > 1 else ''}:" for n in range(1, 11))

    in_process(scenario)


def spawn(*program: str) -> subprocess.Popen[bytes]:
    """Start a server for messages that a test writes itself."""
    pipe, words = subprocess.PIPE, [sys.executable, "-m", *(program or (MODULE,))]
    return subprocess.Popen(words, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe)


def ask(server: subprocess.Popen[bytes], message: dict[str, Any]) -> dict[str, Any]:
    """Send this message and return the server's next line."""
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(orjson.dumps(message) + b"\n")
    server.stdin.flush()
    answer: dict[str, Any] = orjson.loads(server.stdout.readline())
    return answer


def shake_hands(server: subprocess.Popen[bytes], version: str) -> dict[str, Any]:
    """Return the result of `initialize` with this protocol version."""
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}
    result: dict[str, Any] = ask(server, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})[
        "result"
    ]
    assert server.stdin is not None
    server.stdin.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
    server.stdin.flush()
    return result


@pytest.mark.parametrize(
    ("version", "structured"), [("2024-11-05", False), ("2025-03-26", False), ("2025-06-18", True)]
)
def test_structured_content_is_sent_to_clients_that_support_it(version: str, structured: bool) -> None:
    """Every client gets JSON as text. Clients since 2025-06-18 also get structured content."""
    with spawn() as server:
        hello = shake_hands(server, version)
        call = {"name": "search", "arguments": {"query": "auth", "response_format": "json"}}
        result = ask(server, {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call})["result"]
        server.communicate()

    assert (hello["protocolVersion"], hello["serverInfo"]["version"]) == (version, "1.2.3")
    assert hello["instructions"] == CONVERSATION.instructions
    (content,) = result["content"]
    data = orjson.loads(content["text"])
    assert data["results"][0]["id"] == "obs-1041"
    assert result.get("structuredContent", data) == data
    assert ("structuredContent" in result) is structured


def test_discovery_needs_no_handshake() -> None:
    """A client of the newer protocol gets versions and instructions with its first request."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    with spawn() as server:
        message = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}}
        result = ask(server, message)["result"]
        server.communicate()

    assert "2026-07-28" in result["supportedVersions"]
    assert result["instructions"] == CONVERSATION.instructions


@pytest.mark.parametrize("toolset", TOOLSETS)
def test_tools_are_listed_before_their_libraries_are_loaded(toolset: str) -> None:
    """A server starts without models, templates and extraction. The conversation tools need no memories either."""
    start = f"from palaver.cli import main; main(['mcp', '--toolset', '{toolset}'], standalone_mode=False)"
    words, pipe = [sys.executable, "-c", f"import sys; {start}; print(*sys.modules, file=sys.stderr)"], subprocess.PIPE
    with subprocess.Popen(words, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe) as server:
        shake_hands(server, "2025-11-25")
        listed = ask(server, {"jsonrpc": "2.0", "id": 2, "method": "tools/list"})["result"]["tools"]
        _, log = server.communicate(timeout=200)

    unneeded = UNLISTED | (UNSEARCHED if toolset == "conversation" else set[str]())
    assert listed
    assert unneeded.intersection(log.decode().split()) == set()


def test_the_end_of_input_ends_the_server() -> None:
    """The server ends silently when its standard input is closed."""
    with spawn() as server:
        shake_hands(server, "2025-11-25")
        rest, log = server.communicate(timeout=200)

    assert (server.returncode, rest, log) == (0, b"", b"")


def test_a_closed_pipe_is_not_an_error() -> None:
    """The server ends without a traceback when its client closes the pipe."""
    with spawn() as server:
        shake_hands(server, "2025-11-25")
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stderr is not None
        server.stdout.close()
        server.stdin.write(b'{"jsonrpc": "2.0", "id": 2, "method": "tools/list"}\n')
        server.stdin.close()
        log = server.stderr.read()

    assert (server.returncode, log) == (0, b"")


@pytest.mark.skipif(os.name == "nt", reason="signals are sent differently there")
def test_ctrl_c_ends_the_server_at_once() -> None:
    """An interrupt ends the server without a traceback while it waits for input."""
    with spawn("palaver", "mcp") as server:
        shake_hands(server, "2025-11-25")
        server.send_signal(signal.SIGINT)
        assert server.stderr is not None
        log = server.stderr.read()

    assert (server.returncode, log) == (130, b"\npalaver: stopped.\n")


def test_ctrl_c_ends_a_server_that_is_still_loading() -> None:
    """An interrupt ends the server while the SDK is loading."""
    program = """
import runpy, signal, sys
class Interrupted:
    def find_spec(self, name, path=None, target=None):
        if name == "mcp":
            signal.raise_signal(signal.SIGINT)
            print("went on")
sys.meta_path.insert(0, Interrupted())
sys.argv = ["palaver", "mcp"]
runpy.run_module("palaver", run_name="__main__", alter_sys=True)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, stdin=subprocess.DEVNULL, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"\npalaver: stopped.\n")
