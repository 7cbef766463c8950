"""Tests of the context window: every part comes from stored memories and states its reason."""

from typing import Any

from palaver.agents.fabric.orient_tool import BUDGET
from palaver.templates.truncation import json_cost

from ..rag.test_examples import odd
from .client import Agent
from .page import REPLIES


def pattern(fabric: Agent, name: str, language: str, path: str) -> str:
    """Store a pattern and return its ID."""
    block = {"code": f"const {name} = 1", "language": language, "filePath": path}
    return fabric.store(f"Pattern {name}", "code_pattern", {"title": name, "codeBlock": block})


def current(fabric: Agent, **more: object) -> dict[str, Any]:
    """Return the context of a session."""
    context: dict[str, Any] = fabric.call("getCurrent", sessionId="s1", **more)["context"]
    return context


def test_an_empty_project_has_advice(fabric: Agent) -> None:
    """Without memories, the context contains only the advice to store some."""
    context = current(fabric)

    assert [each["type"] for each in context.pop("suggestions")] == ["explore"]
    assert context == {"working": [], "relevant": [], "patterns": [], "ghostMessages": []}


def test_every_entry_has_a_reason(fabric: Agent) -> None:
    """The example of the specification: working memories, relevant ones, patterns, suggestions, ghost messages."""
    fabric.event("file_opened", {"file": "src/main.ts"})
    fabric.store("Currently refactoring the auth module", "scratchpad")
    fabric.store("Use JWT with 15-minute expiry for API tokens", "decision", {"tags": ["auth"], "weight": 5})
    fabric.store("npm test needs Node 22", "convention")
    pattern(fabric, "zod", "typescript", "src/main.ts")
    asked = {"currentFile": "src/main.ts", "currentCommand": "npm test", "language": "typescript"}
    reply = fabric.call("getCurrent", sessionId="s1", **asked)
    context = reply["context"]

    assert odd(REPLIES["context.getCurrent"], reply) == []
    assert [entry for part in context.values() for entry in part if not entry.get("reason")] == []
    assert "matches npm test main ts" in [each["reason"] for each in context["relevant"]]
    assert context["relevant"][0]["metadata"]["weight"] == 5
    assert [each["content"] for each in context["ghostMessages"]] == [
        "Recent files: src/main.ts",
        "Decision: Use JWT with 15-minute expiry for API tokens",
    ]
    assert {each["role"] for each in context["ghostMessages"]} == {"system"}


def test_patterns_are_filtered_by_language_and_ranked_by_path(fabric: Agent) -> None:
    """Patterns of another language are left out. A shared path ranks higher than a later pattern."""
    near = pattern(fabric, "near", "typescript", "src/api/users.ts")
    far = pattern(fabric, "far", "typescript", "lib/other.ts")
    pattern(fabric, "python", "python", "src/api/users.py")
    found = current(fabric, language="TypeScript", filePath="src/api/mail.ts")["patterns"]

    assert [each["id"] for each in found] == [near, far]
    assert [each["reason"] for each in found] == ["same part of the source tree", "same language: TypeScript"]


def test_the_context_stays_within_its_budget(fabric: Agent) -> None:
    """Long memories are shortened, and the reply says so."""
    for number in range(8):
        fabric.store(f"Decision {number}: " + "a long explanation of a choice " * 120)
    reply = fabric.call("getCurrent", sessionId="s1")

    assert reply["truncated"] is True
    assert json_cost(reply) <= BUDGET
