"""Tests of toolsets, served alone and together."""

from pathlib import Path

import anyio
import pytest
from click.testing import CliRunner
from mcp.client.client import Client

from palaver.agents.conversation_tools import CONVERSATION
from palaver.agents.historian_tools import HISTORIAN
from palaver.agents.server import build
from palaver.agents.theo import THEO
from palaver.agents.toolset import TOOLSETS, Effect, ServedTools, ServerConfig, Tool, ToolReply, find_toolset
from palaver.archiver.store import Store
from palaver.cli import main
from palaver.core.errors import InvalidInput, PalaverError, StoreBusy, UnknownIds
from palaver.core.home import Home
from palaver.observe.archive import Archive
from palaver.observe.memory import Judge, JudgeFactory, RuleJudge
from palaver.templates.render import Renderer

from .theo.client import envelope


def test_every_toolset_is_loaded_by_its_name() -> None:
    """Only requested toolsets are loaded. An unknown name is an error that lists the toolsets."""
    assert [find_toolset(name).name for name in TOOLSETS] == list(TOOLSETS)
    with pytest.raises(InvalidInput, match="Unknown toolset: nothing") as caught:
        find_toolset("nothing")
    assert caught.value.hint == f"Use one or more of: {', '.join(TOOLSETS)}."


def test_two_tools_of_one_name_need_a_prefix() -> None:
    """If two tools have one name, the error names both toolsets and the option that adds prefixes."""
    with pytest.raises(InvalidInput, match="conversation and theo both define the tool search") as caught:
        ServedTools.of([CONVERSATION, THEO])
    both = ServedTools.of([CONVERSATION, THEO], prefix=True)

    assert "--prefix" in caught.value.hint
    assert list(both.tools)[:4] == [
        "conversation_search",
        "conversation_get_observations",
        "conversation_read",
        "theo_index_file",
    ]
    assert len(both.tools) == 31
    assert both.instructions == f"{CONVERSATION.instructions}\n\n{THEO.instructions}"
    assert list(ServedTools.of([THEO]).tools) == [tool.name for tool in THEO.tools]


def judging(_: Store) -> Judge:
    """Return a judge with a configured model that is never called."""
    return RuleJudge()


@pytest.mark.parametrize("chosen", [None, judging], ids=["rules", "model"])
def test_tools_declare_whether_they_call_a_remote_model(tmp_path: Path, chosen: JudgeFactory | None) -> None:
    """Only tools that compare memories are open-world, and only if the user configured a model."""

    async def run() -> None:
        place = ServerConfig(Archive(Home(tmp_path), make_judge=chosen), Renderer())
        server = build(ServedTools.of([CONVERSATION, THEO, HISTORIAN], prefix=True), place)
        async with Client(server, mode="2026-07-28") as client:
            listed = (await client.list_tools()).tools
        hints = {tool.name: tool.annotations.open_world_hint for tool in listed if tool.annotations}
        comparing = {f"theo_memory_{name}" for name in ("store", "detect_contradictions", "check_supersedes")}
        comparing |= {f"historian_{tool.name}" for tool in HISTORIAN.tools}
        assert set(hints.values()) <= {True, False}
        assert {name for name, online in hints.items() if online} == (comparing if chosen else set())

    anyio.run(run)


def test_each_toolset_keeps_its_replies_and_errors(tmp_path: Path) -> None:
    """Tools that are served together keep the reply and error formats of their toolset."""

    async def run() -> None:
        place = ServerConfig(Archive(Home(tmp_path)), Renderer())
        server = build(ServedTools.of([CONVERSATION, THEO], prefix=True), place)
        async with Client(server, mode="2026-07-28") as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            hints = tools["theo_clear_index"].annotations, tools["conversation_read"].annotations
            assert [hint and (hint.read_only_hint, hint.destructive_hint) for hint in hints] == [
                (False, True),
                (True, None),
            ]
            count = await client.call_tool("theo_memory_count", {})
            assert envelope(count)["data"]["count"] == 0
            refused = await client.call_tool("conversation_search", {"query": "x"})
            assert refused.is_error
            assert refused.structured_content is None

    anyio.run(run)


def test_the_command_shows_the_token_cost_of_each_toolset() -> None:
    """The command lists names, purposes, tools and tokens as text, and names, tools and tokens as JSON."""
    shown = CliRunner().invoke(main, ["toolsets"])
    as_json = CliRunner().invoke(main, ["toolsets", "--json"])

    assert (shown.exit_code, as_json.exit_code) == (0, 0)
    for name in TOOLSETS:
        toolset = find_toolset(name)
        assert f" ({len(toolset.tools)} tools, {toolset.tokens:,} tokens)\n" in shown.stdout
        assert f"{name}: {toolset.instructions[:20]}" in shown.stdout
        assert f'"name":"{name}","tokens":{toolset.tokens}' in as_json.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--toolset", "theo,conversation"], "theo and conversation both define the tool search"),
        (["--toolset", "nothing"], "Unknown toolset: nothing"),
        (["--toolset", ""], "Unknown toolset: "),
    ],
)
def test_invalid_toolsets_are_refused_before_the_start(arguments: list[str], message: str) -> None:
    """Invalid toolsets are refused before the server starts, with a remedy."""
    ran = CliRunner().invoke(main, ["mcp", *arguments])

    assert ran.exit_code == 2
    assert message.strip() in ran.output
    assert "--prefix" in ran.output or "Use one or more of: " in ran.output


@pytest.mark.parametrize("name", TOOLSETS)
def test_every_tool_that_deletes_asks_and_can_be_undone(name: str) -> None:
    """A tool that is marked as destructive has a question for the user, and its reply has the field `undo`."""
    for tool in find_toolset(name).tools:
        if tool.effect is Effect.DESTROYS:
            fields = (tool.output_schema or {})["properties"]
            assert tool.question is not None, tool.name
            assert "undo" in fields.get("data", {}).get("properties", fields), tool.name


def test_a_question_that_fails_for_another_reason_stops_the_call() -> None:
    """Invalid input needs no question, because the call reports it. Any other failure reaches the caller."""

    def delete(_context: object) -> ToolReply:
        """Delete something."""
        return ToolReply("deleted")

    def question(error: PalaverError) -> str:
        raise error

    tool = Tool.of(delete, Effect.DESTROYS, question=question)

    assert tool.question_for(UnknownIds(["obs-9"]), {}) == ""
    assert tool.question_for(None, {"unknown": 1}) == ""
    with pytest.raises(StoreBusy):
        tool.question_for(StoreBusy("The archive is busy"), {})
