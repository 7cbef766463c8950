"""Tests of the schemas of the rag tools against their specification."""

from jsonschema import Draft202012Validator

from palaver.agents.rag import RAG

from ...cases import for_each
from .page import PARAMETERS, schema_of

TOOLS = {tool.name: tool for tool in RAG.tools}


def test_the_toolset_has_the_tools_of_the_specification_in_order() -> None:
    """The toolset has the 10 tools of the specification and no other tool."""
    assert list(TOOLS) == list(PARAMETERS)
    assert len(TOOLS) == 10


@for_each("name", PARAMETERS)
def test_every_parameter_is_that_of_the_specification(name: str) -> None:
    """Names, types, defaults, limits and required parameters are those of the specification."""
    schema = TOOLS[name].schema
    Draft202012Validator.check_schema(schema)
    properties = schema.get("properties", {})
    expected = {parameter: schema_of(text) for parameter, text in PARAMETERS[name].items()}
    actual = {
        parameter: {fact: properties[parameter].get(fact) for fact in facts} for parameter, facts in expected.items()
    }

    assert list(properties) == list(PARAMETERS[name])
    assert actual == expected
    assert schema.get("required", []) == [each for each, text in PARAMETERS[name].items() if "(required" in text]
    assert schema["additionalProperties"] is False


def test_every_parameter_is_described() -> None:
    """Every parameter has a description."""
    silent = [
        f"{tool.name}.{name}"
        for tool in RAG.tools
        for name, shown in tool.schema.get("properties", {}).items()
        if not shown.get("description")
    ]

    assert silent == []


def test_the_tools_have_a_token_budget() -> None:
    """The tool descriptions, which every session pays for, stay within their token budget."""
    assert 1_000 < RAG.tokens <= 2_500


def test_tools_have_effects() -> None:
    """Annotations let clients ask before a deletion and skip the question before a read."""
    assert {name: tool.effect.name for name, tool in TOOLS.items()} == {
        "store_memory": "WRITES",
        "retrieve_memories": "RECORDS",
        "retrieve_preferences": "RECORDS",
        "retrieve_project_context": "RECORDS",
        "retrieve_session_state": "RECORDS",
        "delete_memory": "DESTROYS",
        "get_memory_stats": "READS",
        "show_current_context": "READS",
        "search_code": "READS",
        "index_codebase": "WRITES",
    }
