"""Tests that the data in `page.py` equals the specifications of the toolsets, if these are available."""

import json
import re
from pathlib import Path
from typing import Any, cast

import pytest

from ..cases import for_each
from ..shared import SHARED
from .fabric import page as fabric
from .historian import page as historian
from .rag import page as rag
from .theo import page as theo

SPEC = SHARED / "spec"
HERE = Path(__file__).parent
pytestmark = pytest.mark.skipif(not SPEC.is_dir(), reason="the pages are not here")

Fields = dict[str, Any]


def sections(name: str, heading: str) -> dict[str, str]:
    """Return the section of each tool in a specification."""
    parts = re.split(rf"(?m)^{heading}(\w+)$", (SPEC / name).read_text("utf-8"))
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def block(section: str, title: str) -> Fields | None:
    """Return the JSON below a heading, or None without such a heading. Dots in the JSON become an empty list."""
    found = re.search(rf"#### {title}\n\n```json\n(.*?)```", section, re.DOTALL)
    return cast("Fields", json.loads(found[1].replace("[...]", "[]"))) if found else None


def facts(schema: Fields) -> dict[str, Fields]:
    """Return the properties of each parameter of a schema, in the form of `PARAMETERS`."""
    required = schema.get("required", [])
    names = ("type", "default", "enum", "items", "minimum", "maximum")
    return {
        name: {fact: property_[fact] for fact in names if fact in property_} | {"required": name in required}
        for name, property_ in schema.get("properties", {}).items()
    }


def differs(shape: object, example: object, where: str) -> list[str]:
    """Return the paths at which an expected reply and an example of the specification have different fields."""
    if isinstance(shape, dict):
        if not isinstance(example, dict):
            return [where]
        wanted, shown = cast("Fields", shape), cast("Fields", example)
        odd = [f"{where}.{name}" for name in wanted.keys() ^ shown.keys()]
        return odd + [
            fault
            for name in wanted.keys() & shown.keys()
            for fault in differs(wanted[name], shown[name], f"{where}.{name}")
        ]
    if isinstance(shape, list) or shape is list:
        if not isinstance(example, list):
            return [where]
        entries, kinds = cast("list[object]", example), cast("list[object]", [] if shape is list else shape)
        return [fault for kind in kinds for each in entries for fault in differs(kind, each, f"{where}[]")]
    return [where] if isinstance(example, dict | list) else []


THEO = sections("2-theo.md", "### Tool: ") if SPEC.is_dir() else {}
HISTORIAN = sections("3-historian.md", "## ") if SPEC.is_dir() else {}
SHORTER: dict[str, Fields] = {
    "search_with_budget": {"results": list},
    "memory_recall": {"filters": {"namespace": str, "memory_type": str}},
}
"""Replies with fewer fields in the specification than in the tests."""


@pytest.mark.parametrize("name", THEO)
def test_theo_s_parameters_are_those_of_the_specification(name: str) -> None:
    """Names, types, defaults, enumerations and required parameters equal those of the specification."""
    schema = block(THEO[name], "Input Schema")
    assert schema is not None
    actual, known = facts(schema), theo.PARAMETERS[name]

    assert actual == known


@pytest.mark.parametrize("name", [name for name in THEO if "#### Response Schema" in THEO[name]])
def test_theo_s_replies_are_those_of_the_specification(name: str) -> None:
    """The expected replies have every field of the example replies and no other field."""
    example = block(THEO[name], "Response Schema")
    assert example is not None
    shape = (
        theo.GRAPH
        if name == "memory_inspect_graph"
        else {"success": bool, "data": theo.REPLIES[name] | SHORTER.get(name, {})}
    )

    assert differs(shape, example, name) == []


def test_every_error_of_theo_s_specification_is_tested() -> None:
    """The tests provoke every error of the specification. Messages are compared up to their first value."""
    page, provoked = (SPEC / "2-theo.md").read_text("utf-8"), (HERE / "theo" / "test_refusals.py").read_text("utf-8")
    rows = {row.partition("{")[0].strip() for row in re.findall(r"(?m)^\| `([^`]+)` \| [^|]+ \| [^|]+ \|$", page)}
    errors = {row for row in rows if row[:1].isupper()}

    assert len(errors) == 8
    assert [row for row in errors if row not in provoked] == []


@pytest.mark.parametrize("name", historian.PARAMETERS)
def test_historian_s_parameters_are_those_of_the_specification(name: str) -> None:
    """Names, types, required parameters and defaults equal those of the specification."""
    rows = re.findall(r"(?m)^\| `(\w+)` \| `([\w\[\]]+)` \| (Yes|No) \| (.*) \|$", HISTORIAN[name])
    actual: dict[str, Fields] = {}
    for parameter, kind, required, words in rows:
        items = {"type": "array", "items": {"type": kind.removesuffix("[]")}} if kind.endswith("[]") else {"type": kind}
        default = re.search(r"\(default: (\w+)\)", words)
        given = {"default": json.loads(default[1])} if default else {}
        actual[parameter] = {**items, **given, "required": required == "Yes"}

    assert actual == historian.PARAMETERS[name]


def test_historian_s_replies_are_those_of_the_specification() -> None:
    """The tests check every field that the specification declares."""
    declared = {
        name: set(re.findall(r"(?m)^\s+(\w+)\??:", HISTORIAN[name].partition("### Example")[0]))
        for name in historian.PARAMETERS
    }

    def fields(*shapes: Fields) -> set[str]:
        found: set[str] = set()
        for shape in shapes:
            for name, value in shape.items():
                found |= {name} | (
                    fields(cast("Fields", value[0]))
                    if isinstance(value, list) and isinstance(value[0], dict)
                    else set()
                )
        return found

    assert declared["memory_list_types"] | {"name", "description"} == fields(historian.LISTED)
    assert declared["memory_remember"] == fields(historian.REMEMBERED)
    assert declared["memory_recall"] - {"message", "error"} == fields(historian.RECALLED)
    assert declared["memory_compound"] == fields(historian.COMPOUNDED)
    assert declared["memory_forget"] == fields(historian.OFFERED, historian.DELETED)


RAG = sections("4-memory-rag-server.md", "### ") if SPEC.is_dir() else {}


def rag_json(section: str, title: str) -> Fields:
    """Return the JSON below a title of rag's specification."""
    found = re.search(rf"\*\*{title}:\*\*\n```json\n(.*?)```", section, re.DOTALL)
    assert found is not None
    return cast("Fields", json.loads(found[1]))


@for_each("name", rag.PARAMETERS)
def test_rag_s_parameters_are_those_of_the_specification(name: str) -> None:
    """The text of each parameter equals that of the specification, in the same order."""
    [schema] = re.findall(r"\*\*Input Schema:\*\*\n```json\n(.*?)```", RAG[name], re.DOTALL)
    rows = re.findall(r'(?m)^  "(\w+)": (.*?),?$', schema)
    texts = {name: json.loads(text) if text.startswith('"') else text for name, text in rows}

    assert list(texts.items()) == list(rag.PARAMETERS[name].items())


@pytest.mark.parametrize("name", rag.REPLIES)
def test_rag_s_replies_are_those_of_the_specification(name: str) -> None:
    """The expected replies have every field of the example replies and no other field."""
    assert differs(rag.REPLIES[name], rag_json(RAG[name], "Response"), name) == []


@pytest.mark.parametrize("name", rag.ERRORS)
def test_rag_s_errors_are_those_of_the_specification(name: str) -> None:
    """The expected errors equal the errors of the specification."""
    page = (SPEC / "4-memory-rag-server.md").read_text("utf-8")

    assert {"error": rag.ERRORS[name]} == rag_json(page, name)
    assert '"type": "ValidationError|StorageError|ReadOnlyError|SecurityError"' in page


@for_each("place", fabric.PARAMETERS)
def test_fabric_s_parameters_are_those_of_the_specification(place: str) -> None:
    """Names, types and required parameters equal the rows of the specification, in the same order."""
    page = (SPEC / "5-context-fabric.md").read_text("utf-8")
    parts = re.split(r"(?m)^### (context\.\w+)$", page)
    group, tool, *objects = place.split(".")
    section = dict(zip(parts[1::2], parts[2::2], strict=True))[f"{group}.{tool}"].partition("#### Example")[0]
    tables = re.split(r"\*\*[\w ]+:\*\*", section)
    rows = re.findall(r"(?m)^\| `(\w+)` \| ([\w\[\]]+) \| (?:(Yes|No) \| )?", tables[1 if objects else 0])
    expected = [(name, text.partition(" =")[0]) for name, text in fabric.PARAMETERS[place].items()]

    assert [(name, kind + (" required" if required == "Yes" else "")) for name, kind, required in rows] == expected
