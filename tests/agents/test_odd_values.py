"""Tests of unusual values for every parameter of every tool. Each call returns a reply or a typed error."""

from pathlib import Path

import pytest

from palaver.agents.toolset import TOOLSETS, ServerConfig, Tool, ToolReply, find_toolset
from palaver.archiver.store import Store
from palaver.core.errors import PalaverError
from palaver.core.home import Home
from palaver.observe import pipeline
from palaver.observe.archive import Archive
from palaver.observe.memory import memory_core
from palaver.search import archive_search, document_library
from palaver.templates.render import Renderer

from ..faults.worker import fake

ODD = ("a\0b", 10**22, -(10**22), 2**63 - 1, ["a\0b"], "[" * 900)
"""Odd values: a null character, integers beyond and at the limit of 64 bits, and 900 nested brackets."""

ORDINARY: dict[str, object] = {
    "string": "heron",
    "integer": 1,
    "number": 0.5,
    "boolean": False,
    "array": ["heron"],
    "object": {},
}


@pytest.fixture(autouse=True)
def _no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (pipeline, archive_search, document_library, memory_core):
        monkeypatch.setattr(module, "load", fake)


@pytest.mark.parametrize("name", list(TOOLSETS))
def test_every_tool_answers_odd_values(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Odd values of a parameter raise only Palaver's own errors."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    home = Home(tmp_path / "home")
    home.make()
    Store.create(home.database).close()
    toolset = find_toolset(name)
    context = toolset.open(ServerConfig(Archive(home), Renderer(), (work,), work))

    for tool in toolset.tools:
        for parameter in tool.schema.get("properties", {}):
            for value in ODD:
                answer = called(tool, context, ordinary(tool) | {parameter: value})
                assert isinstance(answer, ToolReply | PalaverError)


def ordinary(tool: Tool) -> dict[str, object]:
    """Return a plausible value for each required parameter."""
    properties = tool.schema.get("properties", {})
    return {
        name: properties[name].get("enum", [ORDINARY.get(properties[name].get("type", "string"))])[0]
        for name in tool.schema.get("required", [])
    }


def called(tool: Tool, context: object, arguments: dict[str, object]) -> ToolReply | PalaverError:
    """Return the reply, or the typed error."""
    try:
        return tool.call(context, arguments)
    except PalaverError as error:
        return error
