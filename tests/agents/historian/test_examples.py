"""Tests of Historian's example requests: each reply has every field of the specification."""

import re
from pathlib import Path

from ..theo.page import misses
from .client import Agent
from .page import BUILT_IN, COMPOUNDED, DELETED, LISTED, OFFERED, RECALLED, REMEMBERED

POSTGRES = (
    "## Decision\n\nSelected PostgreSQL as the primary database...\n\n## Rationale\n\n"
    "- ACID compliance\n- Strong community"
)
REPLICAS = (
    "## Decision\n\nSelected PostgreSQL...\n\n## Updates\n\n- Added read replicas\n- Configured connection pooling"
)
STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


def remembered(historian: Agent) -> Path:
    """Store the example memory of the specification and return the reply."""
    reply = historian(
        "memory_remember",
        title="Use PostgreSQL for primary database",
        content=POSTGRES,
        memoryType="architectural-decision",
        tags=["database", "infrastructure"],
    )
    assert misses(REMEMBERED, reply) == []
    assert (reply["memoryType"], reply["tags"]) == ("architectural-decision", ["database", "infrastructure"])
    return Path(reply["filePath"])


def test_the_types_are_listed(historian: Agent) -> None:
    """The nine built-in types have descriptions, and the fallback type is marked."""
    reply = historian("memory_list_types")

    assert misses(LISTED, reply) == []
    assert tuple(each["name"] for each in reply["types"]) == BUILT_IN
    assert all(each["description"] for each in reply["types"])
    assert reply["fallbackType"] == "context"


def test_a_memory_is_a_file_as_specified(historian: Agent) -> None:
    """A memory file has the front matter in the specified order, a blank line and the content."""
    file = remembered(historian)

    assert file.relative_to(historian.project).as_posix() == (
        ".mnemonics/architectural-decision/use-postgresql-for-primary-database.md"
    )
    head = "---\nmemory_type: architectural-decision\ntags:\n  - database\n  - infrastructure\n"
    assert re.fullmatch(
        f"{re.escape(head)}created: {STAMP}\nmodified: {STAMP}\n---\n\n{re.escape(POSTGRES)}\n", file.read_text()
    )


def test_a_stored_memory_is_recalled(historian: Agent) -> None:
    """A search covers all types or one type. A reply without memories has a message."""
    file = remembered(historian)
    historian.remember("OAuth flow", "The authentication flow uses OAuth with PKCE", "architectural-decision")
    found = historian("memory_recall", query="database decisions")
    typed = historian("memory_recall", query="authentication flow", memoryType="architectural-decision", limit=5)
    nothing = historian("memory_recall", query="authentication flow", memoryType="issue", limit=5)

    assert misses(RECALLED, found) == misses(RECALLED, typed) == []
    assert (found["memories"][0]["path"], found["memories"][0]["content"]) == (str(file), POSTGRES)
    assert Path(typed["memories"][0]["path"]).name == "oauth-flow.md"
    assert nothing == {"memories": [], "message": "No memories found. Try other words, or leave memoryType out."}


def test_a_memory_is_compounded(historian: Agent) -> None:
    """`memory_compound` changes the content and `modified`, but not `created`."""
    file = remembered(historian)
    before = file.read_text()
    reply = historian(
        "memory_compound",
        query="database decision PostgreSQL",
        modifications=REPLICAS,
        memoryType="architectural-decision",
    )

    assert misses(COMPOUNDED, reply) == []
    assert (reply["filePath"], reply["createdNew"]) == (str(file), False)
    after = file.read_text()
    assert after.endswith(f"\n---\n\n{REPLICAS}\n")
    kept, renewed = (
        [re.findall(f"{key}: ({STAMP})", text) for text in (before, after)] for key in ("created", "modified")
    )
    assert kept[0] == kept[1]
    assert renewed[0] < renewed[1]


def test_forgetting_needs_a_preview(historian: Agent) -> None:
    """The first call of `memory_forget` lists the files, and the second call deletes them."""
    file = remembered(historian)
    offered = historian("memory_forget", query="outdated notes about the database")

    assert misses(OFFERED, offered) == []
    assert offered["confirmRequired"] is True
    assert file.exists()
    gone = historian("memory_forget", query="outdated notes about the database", confirm=True)
    assert misses(DELETED, gone) == []
    assert (gone["success"], gone["deletedFiles"], gone["files"]) == (True, 1, [str(file)])
    assert not file.exists()
    assert historian.recall("PostgreSQL") == {}


def test_irrelevant_memories_are_listed_as_weak(historian: Agent) -> None:
    """A question on another topic recalls no memories and lists the nearest memory as weak."""
    historian.remember("Video", "The video codec is AV1", "context")
    found = historian("memory_recall", query="zxqv gnarl")

    assert found["memories"] == []
    assert [Path(each["path"]).name for each in found["weak"]] == ["video.md"]
    assert found["message"].startswith("No memories found. `weak` has the nearest")
