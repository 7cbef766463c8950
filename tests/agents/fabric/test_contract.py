"""Tests of the schemas of the fabric tools against their specification."""

from typing import Any

from jsonschema import Draft202012Validator

from palaver.agents.fabric import FABRIC
from palaver.agents.toolset import ServedTools

from ...cases import for_each
from .page import PARAMETERS, schema_of

TOOLS = {tool.name: tool for tool in FABRIC.tools}


def schema_at(place: str) -> dict[str, Any]:
    """Return the schema of a tool, or of one of its objects, as in `context.store.metadata`."""
    group, tool, *objects = place.split(".")
    schema = TOOLS[f"{group}.{tool}"].schema
    for name in objects:
        schema = schema["properties"][name]
    return schema


def test_the_toolset_has_the_tools_of_the_specification_in_order() -> None:
    """The toolset has the 12 tools of the specification and no other tool."""
    assert list(TOOLS) == [name for name in PARAMETERS if name.count(".") == 1]
    assert len(TOOLS) == 12


@for_each("place", PARAMETERS)
def test_every_parameter_is_that_of_the_specification(place: str) -> None:
    """Names, types, defaults and required parameters are those of the specification, also within objects."""
    schema = schema_at(place)
    Draft202012Validator.check_schema(schema)
    properties = schema["properties"]
    wrong = [
        name
        for name, text in PARAMETERS[place].items()
        for expected in [schema_of(text)]
        if properties[name]["type"] not in expected["type"]
        or ("default" in expected and properties[name]["default"] != expected["default"])
    ]

    assert wrong == []
    assert list(properties) == list(PARAMETERS[place])
    required = [name for name, text in PARAMETERS[place].items() if "required" in text]
    assert schema.get("required", []) == required
    assert schema["additionalProperties"] is place.endswith("metadata")


def test_schemas_contain_no_references() -> None:
    """Every schema is complete, because some clients resolve no references."""
    assert [name for name, tool in TOOLS.items() if "$ref" in str(tool.schema)] == []


def test_names_can_have_underscores() -> None:
    """Clients that refuse dots in tool names get underscores."""
    served = ServedTools.of([FABRIC], underscores=True)

    assert list(served.tools)[:2] == ["context_getCurrent", "context_store"]
    assert [name for name in served.tools if "." in name] == []


def test_the_tools_have_a_token_budget() -> None:
    """The tool descriptions, which every session pays for, stay within their token budget."""
    assert 1_500 < FABRIC.tokens <= 3_000


def test_tools_have_effects() -> None:
    """Annotations let clients ask before a deletion and skip the question before a read."""
    effects = {name.removeprefix("context."): tool.effect.name for name, tool in TOOLS.items()}

    assert effects == {
        "getCurrent": "READS",
        "store": "WRITES",
        "recall": "RECORDS",
        "orient": "RECORDS",
        "searchCode": "RECORDS",
        "get": "RECORDS",
        "update": "WRITES",
        "delete": "DESTROYS",
        "list": "READS",
        "summarize": "DESTROYS",
        "reportEvent": "WRITES",
        "setup": "WRITES",
    }
