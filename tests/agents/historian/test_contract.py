"""Tests of Historian's schemas against its specification."""

import pytest

from palaver.agents.historian_tools import HISTORIAN
from palaver.agents.toolset import ServedTools, find_toolset
from palaver.core.errors import InvalidInput

from ..theo.test_contract import parameters
from .page import PARAMETERS

TOOLS = {tool.name: tool for tool in HISTORIAN.tools}


def test_the_toolset_has_the_tools_of_the_specification_in_order() -> None:
    """The toolset has the five tools of the specification, in the same order."""
    assert list(TOOLS) == list(PARAMETERS)


@pytest.mark.parametrize("name", PARAMETERS)
def test_every_parameter_is_that_of_the_specification(name: str) -> None:
    """Names, types, required parameters and defaults are exactly those of the specification."""
    schema = TOOLS[name].schema

    assert parameters(schema) == PARAMETERS[name]
    assert schema["additionalProperties"] is False


def test_the_tools_have_a_token_budget() -> None:
    """The tool descriptions, which every session pays for, stay within their token budget."""
    assert 200 < HISTORIAN.tokens <= 600


def test_tools_with_the_same_name_need_a_prefix() -> None:
    """Historian and Theo both have memory_recall and memory_forget, so serving both together needs a prefix."""
    historian, theo, conversation = (find_toolset(name) for name in ("historian", "theo", "conversation"))

    assert len(ServedTools.of([conversation, historian]).tools) == len(conversation.tools) + len(historian.tools)
    with pytest.raises(InvalidInput, match="theo and historian both define the tool memory_recall"):
        ServedTools.of([theo, historian])
    assert "historian_memory_forget" in ServedTools.of([theo, historian], prefix=True).tools


def test_destructive_tools_are_annotated() -> None:
    """Tools that delete or replace data are annotated, so that clients can ask first."""
    assert {name: tool.effect.name for name, tool in TOOLS.items()} == {
        "memory_list_types": "READS",
        "memory_remember": "WRITES",
        "memory_recall": "RECORDS",
        "memory_compound": "DESTROYS",
        "memory_forget": "DESTROYS",
    }
