"""Historian's page against the schemas that are derived from the tools."""

import pytest

from palaver.agents.historian_tools import HISTORIAN
from palaver.agents.toolset import ServedTools, find_toolset
from palaver.core.errors import InvalidInput

from ..theo.test_contract import parameters
from .page import PARAMETERS

TOOLS = {tool.name: tool for tool in HISTORIAN.tools}


def test_the_surface_has_the_tools_of_the_page_in_its_order() -> None:
    """The toolset has five tools."""
    assert list(TOOLS) == list(PARAMETERS)


@pytest.mark.parametrize("name", PARAMETERS)
def test_every_parameter_is_as_the_page_has_it(name: str) -> None:
    """Names, types, which are required, and defaults; none is missing, none is extra."""
    schema = TOOLS[name].schema

    assert parameters(schema) == PARAMETERS[name]
    assert schema["additionalProperties"] is False


def test_the_surface_costs_little() -> None:
    """The tools cost every session at most this many tokens."""
    assert 200 < HISTORIAN.tokens <= 600


def test_it_is_served_alone_and_with_others() -> None:
    """memory_recall and memory_forget are also names of Theo tools, so both need a prefix."""
    historian, theo, conversation = (find_toolset(name) for name in ("historian", "theo", "conversation"))

    assert len(ServedTools.of([conversation, historian]).tools) == 8
    with pytest.raises(InvalidInput, match="theo and historian both define the tool memory_recall"):
        ServedTools.of([theo, historian])
    assert "historian_memory_forget" in ServedTools.of([theo, historian], prefix=True).tools


def test_what_destroys_is_said_to() -> None:
    """Clients can ask before a tool deletes or replaces anything."""
    assert {name: tool.effect.name for name, tool in TOOLS.items()} == {
        "memory_list_types": "READS",
        "memory_remember": "WRITES",
        "memory_recall": "WRITES",
        "memory_compound": "DESTROYS",
        "memory_forget": "DESTROYS",
    }
