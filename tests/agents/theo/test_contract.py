"""Tests of Theo's schemas against its specification."""

from typing import Any

from palaver.agents.theo import THEO

from ...cases import for_each
from .page import FILTERS, PARAMETERS

TOOLS = {tool.name: tool for tool in THEO.tools}
FACTS = ("type", "default", "enum", "items", "minimum", "maximum")


def parameters(schema: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the properties of each parameter of a schema."""
    required = schema.get("required", [])
    return {
        name: {fact: shown[fact] for fact in FACTS if fact in shown} | {"required": name in required}
        for name, shown in schema.get("properties", {}).items()
    }


def test_the_toolset_has_the_tools_of_the_specification_in_order() -> None:
    """The toolset has the 26 tools of the overview and two other tools of the specification."""
    assert [tool.name for tool in THEO.tools] == list(PARAMETERS)
    assert len(PARAMETERS) == 28


@for_each("name", PARAMETERS)
def test_every_parameter_is_that_of_the_specification(name: str) -> None:
    """Names, types, required parameters, defaults and enumerations are exactly those of the specification."""
    schema = TOOLS[name].schema

    assert parameters(schema) == PARAMETERS[name]
    assert schema["additionalProperties"] is False


def test_the_filters_of_a_search_are_those_of_the_specification() -> None:
    """The filters are namespace, doc_type and source_file."""
    filters = TOOLS["search_with_filters"].schema["properties"]["filters"]

    assert {name: shown["type"] for name, shown in filters["properties"].items()} == FILTERS
    assert filters["additionalProperties"] is False


def test_every_parameter_is_described() -> None:
    """Every parameter has a description."""
    silent = [
        f"{tool.name}.{name}"
        for tool in THEO.tools
        for name, shown in tool.schema.get("properties", {}).items()
        if not shown.get("description")
    ]

    assert silent == []


def test_the_tools_have_a_token_budget() -> None:
    """The tool descriptions, which every session pays for, stay within their token budget."""
    assert 2_000 < THEO.tokens <= 3_700


def test_tools_are_annotated_as_destructive_or_read_only() -> None:
    """Annotations let clients ask before a deletion and skip the question before a read."""
    effects = {tool.name: tool.effect.name for tool in THEO.tools}

    assert {name for name, effect in effects.items() if effect == "DESTROYS"} == {
        "memory_forget",
        "memory_edge_forget",
        "delete_chunks",
        "delete_file",
        "clear_index",
    }
    assert effects["memory_list"] == effects["search"] == effects["trace_query"] == "READS"
