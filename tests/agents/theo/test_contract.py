"""Theo's page against the schemas that are derived from the tools."""

from typing import Any

import pytest

from palaver.agents.theo import THEO

from .page import FILTERS, PARAMETERS

TOOLS = {tool.name: tool for tool in THEO.tools}
FACTS = ("type", "default", "enum", "items", "minimum", "maximum")


def parameters(schema: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the facts of each parameter that the specification has."""
    required = schema.get("required", [])
    return {
        name: {fact: shown[fact] for fact in FACTS if fact in shown} | {"required": name in required}
        for name, shown in schema.get("properties", {}).items()
    }


def test_the_surface_has_the_tools_of_the_page_in_its_order() -> None:
    """It has the 26 tools of the overview and two more of the specification."""
    assert [tool.name for tool in THEO.tools] == list(PARAMETERS)
    assert len(PARAMETERS) == 28


@pytest.mark.parametrize("name", PARAMETERS)
def test_every_parameter_is_as_the_page_has_it(name: str) -> None:
    """Names, types, which are required, defaults and enumerations; none is missing, none is extra."""
    schema = TOOLS[name].schema

    assert parameters(schema) == PARAMETERS[name]
    assert schema["additionalProperties"] is False


def test_the_filters_of_a_search_are_those_of_the_page() -> None:
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


def test_the_surface_costs_no_more_than_it_must() -> None:
    """The tools cost every session at most this many tokens."""
    assert 2_000 < THEO.tokens <= 3_700


def test_what_destroys_is_said_to() -> None:
    """Clients can ask before a deletion, and need not ask before reading."""
    effects = {tool.name: tool.effect.name for tool in THEO.tools}

    assert {name for name, effect in effects.items() if effect == "DESTROYS"} == {
        "memory_forget",
        "memory_edge_forget",
        "delete_chunks",
        "delete_file",
        "clear_index",
    }
    assert effects["memory_list"] == effects["search"] == effects["trace_query"] == "READS"
