"""Tests of Historian's error messages. Its specification has only the fields of errors, not their texts."""

from pathlib import Path

import pytest

from palaver.core.home import Home

from .client import Agent
from .page import BUILT_IN

TYPES = f"Use one of: {', '.join(BUILT_IN)}. When uncertain: context."


NEW = {"title": "x", "content": "y", "memoryType": "issue"}


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("memory_remember", NEW | {"memoryType": "general"}, "Invalid memory type: general"),
        ("memory_remember", NEW | {"memoryType": "../context"}, "Invalid memory type: ../context"),
        ("memory_remember", NEW | {"memoryType": "golden_rule"}, "Invalid memory type: golden_rule"),
        ("memory_remember", NEW | {"title": " "}, "Title cannot be empty"),
        ("memory_remember", NEW | {"content": " \n"}, "Content cannot be empty"),
        ("memory_remember", NEW | {"content": "y" * 51_201}, "Content is longer than 51,200 bytes"),
        ("memory_remember", {"title": "x", "content": "y"}, "Invalid parameter: memoryType is required"),
        ("memory_remember", NEW | {"tags": "z"}, "Invalid parameter: tags must be an array of strings"),
        ("memory_recall", {"query": "x", "limit": 51}, "Invalid limit: 51"),
        ("memory_recall", {"query": "x", "limit": 0}, "Invalid limit: 0"),
        ("memory_recall", {"query": "x", "namespace": "y"}, "Invalid parameter: namespace is not a parameter"),
        ("memory_compound", {"query": "x", "modifications": "y", "memoryType": "note"}, "Invalid memory type: note"),
        ("memory_compound", {"query": "x", "modifications": " "}, "Content cannot be empty"),
        ("memory_compound", {"query": " ", "modifications": "y"}, "Query cannot be empty"),
        ("memory_forget", {"query": " "}, "Query cannot be empty"),
        ("memory_forget", {"query": "x", "memoryType": "note"}, "Invalid memory type: note"),
        ("memory_forget", {"query": "nothing of that kind"}, "No memories found: nothing of that kind"),
    ],
)
def test_an_invalid_call_has_a_hint(historian: Agent, name: str, arguments: dict[str, object], message: str) -> None:
    """An invalid call changes nothing. The hint for an unknown type lists the types."""
    reply = historian(name, **arguments)

    assert (reply["success"], reply["error"]) == (False, message)
    assert reply["hint"]
    assert (reply["hint"] == TYPES) == message.startswith("Invalid memory type: ")
    assert not (historian.project / ".mnemonics").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"query": " "}, "Query cannot be empty"),
        ({"query": "x", "memoryType": "note"}, "Invalid memory type: note"),
    ],
)
def test_a_failed_search_has_no_memories_and_an_error(
    historian: Agent, arguments: dict[str, object], message: str
) -> None:
    """A failed search returns an empty list and an error, as specified."""
    reply = historian("memory_recall", **arguments)

    assert (reply["memories"], reply["error"]) == ([], message)


def test_only_listed_memories_are_deleted(historian: Agent) -> None:
    """A confirmation without a preview is a preview. Memories that are new or changed since the preview are kept."""
    kept = historian.remember("Cache", "The cache is flushed by the deploy script")
    edited = historian.remember("Cache size", "The cache has 512 MB")
    first = historian("memory_forget", query="cache", confirm=True)
    assert first["confirmRequired"] is True
    assert first["message"].startswith("Nothing was deleted, ")
    edited.write_text(edited.read_text().replace("512", "1024"))
    joined = historian.remember("Cache keys", "The cache has keys of 32 bytes")
    reply = historian("memory_forget", query="cache", confirm=True)

    assert (reply["success"], reply["files"]) == (False, [str(kept)])
    [left] = reply["kept"]
    assert (left["path"], left["reason"]) == (str(edited), "The memory has changed since it was shown")
    assert [edited.exists(), joined.exists(), kept.exists()] == [True, True, False]
    again = historian("memory_forget", query="cache", confirm=True)
    assert again["confirmRequired"] is True


def test_golden_rules_are_protected(historian: Agent) -> None:
    """Golden rules are neither offered, deleted nor updated, even if their file is deleted."""
    file = historian.remember("Tests", "Always run the tests before a commit", "project-preference")
    [stored] = [found.stored for found in historian.core.recall("tests before a commit")]
    historian("memory_forget", query="tests commit")
    for _ in range(6):
        historian.core.feedback.outcome(stored.id, success=True)

    confirmed = historian("memory_forget", query="tests commit", confirm=True)
    assert confirmed["kept"] == [{"path": str(file), "reason": f"Golden rule is protected: {stored.id}"}]
    offered = historian("memory_forget", query="tests commit")
    assert (offered["candidates"], [each["path"] for each in offered["protected"]]) == ([], [str(file)])
    reply = historian("memory_compound", query="run the tests before a commit", modifications="Never run them")
    assert reply["error"] == f"Golden rule is protected: {stored.id}"
    assert "Always run" in file.read_text()
    file.unlink()
    assert historian("memory_list_types")["types"]
    assert historian.core.get(stored.id).state == "active"


def test_an_unreadable_archive_is_reported(historian: Agent) -> None:
    """If the archive is unreadable, a call reports that the server is not initialized. After the repair it works."""
    home = Home(historian.folder / "palaver")
    home.make()
    home.database.write_bytes(b"this is no database" * 100)

    assert historian("memory_list_types")["error"] == "Server not initialized"
    home.database.unlink()
    assert historian("memory_list_types")["types"]


def test_an_unwritable_folder_is_reported(historian: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memories of an unwritable folder are still recalled, and a failed call leaves no files."""
    file = historian.remember("Ports", "The staging server listens on port 8443")

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr("palaver.observe.mnemonics.mnemonics_folder._write_beside", refused)
        patched.setattr("pathlib.Path.unlink", refused)
        new = historian("memory_remember", title="New", content="Something else", memoryType="issue")
        assert new["error"] == f"{file.parents[1]}/issue/new.md: permission denied"
        reply = historian("memory_compound", query="staging server port", modifications="It listens on port 9000")
        assert reply["error"] == f"{file}: permission denied"
        historian("memory_forget", query="staging server port")
        gone = historian("memory_forget", query="staging server port", confirm=True)
        assert gone["kept"] == [{"path": str(file), "reason": f"{file}: permission denied"}]
        assert historian.recall("staging port") == {"ports.md": "The staging server listens on port 8443"}
    assert [each.name for each in sorted(file.parents[1].rglob("*.md"))] == [Path(file).name]
