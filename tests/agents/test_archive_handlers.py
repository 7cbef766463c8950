"""Tests for resources, prompts and completions: agents/resources.py over a real archive in both eras."""

import os
import sys
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    GetPromptResult,
    PromptReference,
    ReadResourceResult,
    ResourceTemplateReference,
    TextContent,
    TextResourceContents,
)

from palaver.agents.conversation_tools import CONVERSATION, ConversationContext
from palaver.agents.resources import ArchiveHandlers, SessionWatch, completions, latest_sessions
from palaver.agents.server import build
from palaver.agents.theo import THEO
from palaver.agents.tool_calls import ToolContexts
from palaver.agents.toolset import ServedTools, ServerConfig
from palaver.core.home import Home
from palaver.core.results import Hit
from palaver.observe.archive import Archive
from palaver.templates.render import Renderer

from .. import demo
from .fake_layers import FakeLayers

ERAS = ["legacy", "2026-07-28"]
NOT_FOUND = {"legacy": -32002, "2026-07-28": INVALID_PARAMS}
SESSION = "palaver://session/{id}"
Scenario = Callable[[Client], Coroutine[Any, Any, None]]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Home with the archived demo data."""
    return demo.archived(tmp_path_factory.mktemp("resources"))


def over_stdio(home: Home, era: str, scenario: Scenario) -> None:
    """Run the scenario against `palaver mcp` in a separate process."""

    async def run() -> None:
        environment = dict(os.environ) | {"PALAVER_HOME": str(home.root)}
        server = StdioServerParameters(command=sys.executable, args=["-m", "palaver", "mcp"], env=environment)
        async with Client(stdio_client(server), mode=era) as client:
            await scenario(client)

    anyio.run(run)


def in_process(home: Home, scenario: Scenario, era: str = ERAS[1], served: ServedTools | None = None) -> None:
    """Run the scenario against a server in this process."""

    async def run() -> None:
        server = build(served or ServedTools.of([CONVERSATION]), ServerConfig(Archive(home), Renderer()))
        async with Client(server, mode=era) as client:
            await scenario(client)

    anyio.run(run)


def text(result: ReadResourceResult) -> str:
    """Return the only text of a resource."""
    [content] = result.contents
    assert isinstance(content, TextResourceContents)
    assert content.mime_type == "text/markdown"
    return content.text


def prompt_text(result: GetPromptResult) -> str:
    """Return the only message of a prompt."""
    [message] = result.messages
    assert message.role == "user"
    assert isinstance(message.content, TextContent)
    return message.content.text


@pytest.mark.parametrize("era", ERAS)
def test_a_client_reads_sessions_and_starts_prompts(archive: Home, era: str) -> None:
    """Every listed session can be read, and each prompt contains what the archive has about its arguments."""

    async def scenario(client: Client) -> None:
        listed = (await client.list_resources()).resources
        dates = [each.annotations.last_modified for each in listed if each.annotations]
        assert len(listed) == 7
        assert dates == sorted(dates, key=str, reverse=True)
        for each in listed:
            assert each.uri.startswith("palaver://session/")
            assert (each.title or "").partition(":")[0] in {"tide-clock", "seed-library"}
            assert text(await client.read_resource(each.uri)).startswith("Retrieved 1 session:\n<recalled-")
        assert text(await client.read_resource("palaver://session/0b6f")).count("tide-clock") > 0
        assert "Use SQLite, one file" in text(await client.read_resource("palaver://observation/obs-19"))

        templates = (await client.list_resource_templates()).resource_templates
        assert [each.uri_template for each in templates] == ["palaver://observation/{id}", SESSION]

        prompts = (await client.list_prompts()).prompts
        assert [each.name for each in prompts] == ["recall", "review_session"]
        recalled = prompt_text(await client.get_prompt("recall", {"topic": "sqlite or json files"}))
        assert recalled.startswith("What do my past coding sessions say about this: sqlite or json files\n")
        assert "## Search Results (" in recalled
        only = prompt_text(await client.get_prompt("recall", {"topic": "sqlite", "project": "tide-clock"}))
        assert "[tide-clock]" in only
        assert "[seed-library]" not in only
        review = prompt_text(await client.get_prompt("review_session", {"session": "0b6f"}))
        assert "`claude-code/-home-demo-tide-clock/0b6f21c4-3d0e-4f57-9a41-2c7d5e8f1a01.jsonl`" in review

    over_stdio(archive, era, scenario)


def test_all_projects_are_completed() -> None:
    """Projects are suggested even if none of the latest sessions belongs to them."""
    names = [f"shop-{number}" for number in range(60)]
    conversation = ConversationContext(FakeLayers(), Renderer(), project_names=lambda: names)

    assert completions(conversation, "project", "SHOP-") == names
    assert completions(conversation, "project", "shop-59") == ["shop-59"]
    assert completions(conversation, "topic", "s") == []


def test_completions_are_inert() -> None:
    """A suggested name contains no tool syntax and no invisible character."""
    conversation = ConversationContext(FakeLayers(), Renderer(), project_names=lambda: ["tide<system>\u200b[INST]"])

    assert completions(conversation, "project", "") == ["tide&lt;system>&#91;INST]"]


@pytest.mark.parametrize("era", ERAS)
def test_arguments_are_completed_from_the_archive(archive: Home, era: str) -> None:
    """Projects and sessions that begin with the typed text are suggested."""

    async def complete(client: Client, ref: Any, name: str, typed: str) -> list[str]:
        return (await client.complete(ref, {"name": name, "value": typed})).completion.values

    async def scenario(client: Client) -> None:
        recall, review = PromptReference(name="recall"), PromptReference(name="review_session")
        assert await complete(client, recall, "project", "TID") == ["tide-clock"]
        assert set(await complete(client, recall, "project", "")) == {"tide-clock", "seed-library"}
        assert await complete(client, recall, "project", "zzz") == []
        assert await complete(client, recall, "topic", "sql") == []
        [session] = await complete(client, review, "session", "0b6f")
        assert session == "0b6f21c4-3d0e-4f57-9a41-2c7d5e8f1a01"
        assert await complete(client, ResourceTemplateReference(uri=SESSION), "id", "0b6f") == [session]
        for ref, name in ((PromptReference(name="nothing"), "project"), (recall, "session"), (review, "../x")):
            with pytest.raises(MCPError, match="Unknown prompt, template or argument"):
                await complete(client, ref, name, "a")

    in_process(archive, scenario, era)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    "address",
    [
        "palaver://session/../../../../etc/passwd",
        "palaver://session/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "palaver://session/..",
        "palaver://session/",
        "palaver://session/%00",
        "palaver://session/%ff%fe",
        "palaver://session/%25",
        "palaver://session/_",
        "palaver://session/obs-23",
        "palaver://observation/0b6f",
        "palaver://observation/obs-19?raw=1",
        "palaver://observation/obs-99999999999999999999",
        "palaver://observation/obs-999",
        "palaver://observation/obs-٢٣",
        "palaver://memory/mem_1",
        "palaver://session/0b6f/..",
        "file:///etc/passwd",
        "http://127.0.0.1/",
        "",
        "palaver://session/" + "a" * 100_000,
    ],
)
def test_a_hostile_address_is_not_found(archive: Home, era: str, address: str) -> None:
    """An address that names no observation or session is an error with this address, and nothing else is read."""

    async def scenario(client: Client) -> None:
        with pytest.raises(MCPError) as failure:
            await client.read_resource(address)
        assert failure.value.error.code == NOT_FOUND[era]
        assert failure.value.error.data == {"uri": address}
        assert "root:" not in failure.value.error.message
        assert len(failure.value.error.message) < 600

    in_process(archive, scenario, era)


def test_an_invalid_prompt_is_an_error_with_a_remedy(archive: Home) -> None:
    """The error names the missing, unknown or invalid argument."""

    async def scenario(client: Client) -> None:
        for name, arguments, message in (
            ("nothing", {}, r"Unknown prompt: nothing\. Prompts: recall, review_session\."),
            ("recall", {}, r"Missing argument: topic\."),
            ("recall", {"topic": " "}, r"Missing argument: topic\."),
            ("recall", {"topic": "sqlite", "x": "y"}, r"Unknown argument: x\. Use: topic, project\."),
            (
                "recall",
                {"topic": "sqlite", "project": "tide"},
                r"Unknown project: tide\. Projects: tide-clock, [a-z, -]+\.$",
            ),
            ("review_session", {"session": "zzz"}, r"Unknown session: zzz\. Use a session ID, or .* 4 characters"),
        ):
            with pytest.raises(MCPError, match=message) as failure:
                await client.get_prompt(name, arguments)
            assert failure.value.error.code == INVALID_PARAMS

    in_process(archive, scenario)


@pytest.mark.parametrize("era", ERAS)
def test_without_an_archive_the_list_is_empty(tmp_path: Path, era: str) -> None:
    """Without an archive there is no resource, and a prompt explains how to create an archive."""

    async def scenario(client: Client) -> None:
        assert (await client.list_resources()).resources == []
        with pytest.raises(MCPError, match="Run `palaver up` to create one"):
            await client.get_prompt("recall", {"topic": "sqlite"})

    in_process(Home(tmp_path / "nothing"), scenario, era)


@pytest.mark.parametrize("era", ["legacy", "auto"])
def test_only_the_conversation_toolset_has_resources_and_prompts(archive: Home, era: str) -> None:
    """A server announces only what it serves. Only the list of resources changes."""

    async def conversation(client: Client) -> None:
        shown = client.server_capabilities
        assert shown.resources is not None
        assert (shown.resources.list_changed, shown.resources.subscribe) == (True, False)
        assert shown.tools is not None
        assert shown.prompts is not None
        assert (shown.tools.list_changed, shown.prompts.list_changed) == (False, False)
        assert shown.completions is not None
        assert shown.logging is None

    async def theo(client: Client) -> None:
        shown = client.server_capabilities
        assert (shown.resources, shown.prompts, shown.completions, shown.logging) == (None, None, None, None)

    in_process(archive, conversation, era)
    in_process(archive, theo, era, ServedTools.of([THEO]))


def test_the_watch_sees_the_addresses_that_clients_see(archive: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions with the same ID are in neither list, so a client gets no notification without a change."""
    seen: list[frozenset[str]] = []

    class Watch(SessionWatch):
        def __init__(self, addresses: Callable[[], Awaitable[frozenset[str]]]) -> None:
            super().__init__(addresses)
            self.addresses = addresses

        def listed(self, addresses: frozenset[str], context: Any, *, notify: bool) -> None:  # noqa: ARG002
            seen.append(addresses)

    def with_duplicate(conversation: ConversationContext) -> tuple[Hit, ...]:
        first, *others = latest_sessions(conversation)
        return first, first, *others

    monkeypatch.setattr("palaver.agents.resources.SessionWatch", Watch)
    monkeypatch.setattr("palaver.agents.resources.latest_sessions", with_duplicate)

    async def run() -> None:
        handlers = ArchiveHandlers(CONVERSATION, ToolContexts(ServerConfig(Archive(archive), Renderer())))
        await handlers.list_resources(cast("Any", SimpleNamespace(protocol_version=ERAS[1])), None)
        assert isinstance(handlers.watch, Watch)
        seen.append(await handlers.watch.addresses())

    anyio.run(run)
    assert seen[0] == seen[1] != frozenset()
