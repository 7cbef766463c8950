"""Tests of files that users edit, and of memories that other toolsets edit."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from palaver.agents.theo import THEO
from palaver.archiver.store import Store
from palaver.core.memory import Memory, MemoryRevision, MemoryState, Relation

from .client import Agent

PORT = "The staging server listens on port 8443"


def held_type(historian: Agent, query: str) -> str:
    """Return the type of the best match."""
    return historian.core.recall(query)[0].stored.memory.type


def test_edits_moves_and_deletions_are_detected(historian: Agent) -> None:
    """The next call of any toolset detects edited, moved and deleted files, and the memory keeps its ID."""
    file = historian.remember("Staging port", PORT)
    memory = historian.core.recall("staging port")[0].stored.id
    file.write_text(file.read_text().replace("8443", "9443"))
    assert historian.recall("staging port") == {"staging-port.md": PORT.replace("8443", "9443")}

    moved = file.parents[1] / "issue" / "port.md"
    moved.parent.mkdir()
    file.rename(moved)
    assert historian.recall("staging port") == {"port.md": PORT.replace("8443", "9443")}
    stored = historian.core.get(memory).memory
    assert (stored.type, stored.path, stored.title) == ("issue", str(moved), "port")

    moved.unlink()
    assert historian.recall("staging port") == {}
    assert historian.core.get(memory).state == "archived"
    assert historian.core.history(memory)[0].context == f"deleted by hand: {moved}"


def test_a_restored_file_keeps_its_memory(historian: Agent) -> None:
    """A file that a branch change removes and restores keeps the statistics of its memory."""
    file = historian.remember("Staging port", PORT)
    memory = historian.core.recall("staging port")[0].stored.id
    historian.core.feedback.outcome(memory, success=True)
    shutil.move(file.parents[1], historian.folder / "away")
    assert historian.recall("staging port") == {}
    shutil.move(historian.folder / "away", file.parents[1])

    assert historian.recall("staging port") == {"staging-port.md": PORT}
    stored = historian.core.at_path(str(file))
    assert stored is not None
    assert (stored.id, stored.stats.confidence) == (memory, 0.4)


def test_a_file_that_was_moved_and_edited_is_the_same_memory(historian: Agent) -> None:
    """A file that was both moved and edited is recognised by its creation time."""
    file = historian.remember("Staging port", PORT)
    memory = historian.core.recall("staging port")[0].stored.id
    (file.parent / "port.md").write_text(file.read_text().replace("8443", "9443"))
    file.unlink()

    assert historian.recall("staging port") == {"port.md": PORT.replace("8443", "9443")}
    assert historian.core.get(memory).memory.content.endswith("9443")


def test_files_that_users_wrote_are_memories(historian: Agent) -> None:
    """Files need no front matter to be memories. Folders and entries of types.yaml define types."""
    historian.write("runbook/deploy.md", "Deploy with `make ship` after the smoke tests\n")
    historian.write("learning/ünïcode 数据.md", "---\ntags: [cache, redis]\n---\nRedis evicts the oldest cache key\n")
    historian.write("types.yaml", "post mortem: What broke, and why\n")
    historian.recall("anything")
    with Store.open(historian.home.database) as store, store.transaction():
        store.mnemonics.allow(str(historian.project / ".mnemonics"))
    types = {each["name"]: each["description"] for each in historian("memory_list_types")["types"]}

    assert (types["runbook"], types["post-mortem"]) == ("A type of this project", "What broke, and why")
    assert list(historian.recall("how is it deployed with make", memoryType="runbook")) == ["deploy.md"]
    assert list(historian.recall("Redis cache key evicts")) == ["ünïcode 数据.md"]
    assert historian.core.recall("Redis cache key")[0].stored.memory.tags == ("cache", "redis")
    assert historian.remember("Outage", "The disk was full", "postMortem").parent.name == "post-mortem"


def test_the_type_follows_the_last_change(historian: Agent) -> None:
    """A moved file has the type of its folder, an edited file the type of its front matter. The file is not changed."""
    file = historian.remember("Staging port", PORT)
    file.write_text(file.read_text().replace("memory_type: learning", "memory_type: issue"))
    historian.recall("staging port")
    assert held_type(historian, "staging port") == "issue"
    moved = file.parents[1] / "context" / file.name
    moved.parent.mkdir()
    file.rename(moved)
    historian.recall("staging port")

    assert held_type(historian, "staging port") == "context"
    assert "memory_type: issue" in moved.read_text()


def test_a_type_change_moves_the_file(historian: Agent) -> None:
    """A type change moves the file to the folder of its type and keeps the rest of its front matter."""
    text = f"---\n# ours\nmemory_type: learning # really?\nreviewed-by:   'nobody'\n---\n\n{PORT}\n"
    file = historian.write("learning/port.md", text)
    reply = historian("memory_compound", query="staging server port", modifications="Port 9000", memoryType="issue")

    moved = file.parents[1] / "issue" / "port.md"
    assert (reply["filePath"], reply["memoryType"]) == (str(moved), "issue")
    assert not file.exists()
    head, _, body = moved.read_text().removeprefix("---\n").partition("---\n")
    lines = head.splitlines()
    assert lines[:3] == ["# ours", "memory_type: issue # really?", "reviewed-by:   'nobody'"]
    assert (lines[3].partition(":")[0], body) == ("modified", "\nPort 9000\n")
    assert historian.recall("Port 9000") == {"port.md": "Port 9000"}


def test_a_repeated_title_overwrites_no_file(historian: Agent) -> None:
    """A repeated title with other content gets a numbered file. With the same content it is the same memory."""
    first = historian.remember("Staging port", PORT)
    second = historian.remember("staging PORT", "The staging port is closed at night")
    third = historian("memory_remember", title="Staging port", content=PORT, memoryType="learning")

    assert [first.name, second.name] == ["staging-port.md", "staging-port-2.md"]
    assert (third["filePath"], third["alreadyExisted"]) == (str(first), True)
    by_hand = historian.write("learning/by-hand.md", "Somebody's own words")
    assert historian.remember("By hand", "Other words").name == "by-hand-2.md"
    assert by_hand.read_text() == "Somebody's own words"


def test_broken_files_are_reported_and_not_changed(historian: Agent) -> None:
    """A broken file is reported with a reason, its memory keeps the former content, and all other files are read."""
    file = historian.remember("Staging port", PORT)
    file.write_text(file.read_text().replace("tags: []", "tags: [a, b"))
    historian.write("issue/twice.md", "---\ntags: [a]\ntags: [b]\n---\nx\n")
    historian.write("issue/open.md", "---\nmemory_type: issue\n\nno end\n")
    historian.write("issue/empty.md", "---\nmemory_type: issue\n---\n")
    historian.write("issue/deep.md", f"---\ntags: {'[' * 5000}\n---\nx\n")
    historian.write("types.yaml", "- a\n- list\n")
    (file.parents[1] / "issue" / "bytes.md").write_bytes(b"caf\xe9")
    (file.parents[1] / "issue" / "long.md").write_text("x" * 200_000)
    before = {each: each.read_bytes() for each in file.parents[1].rglob("*.*")}
    problems = historian.problems()

    assert problems.keys() == {
        *("staging-port.md", "twice.md", "open.md", "empty.md", "deep.md", "bytes.md", "long.md", "types.yaml")
    }
    assert problems["staging-port.md"].startswith("invalid YAML in line 4: ")
    assert problems["twice.md"] == "the front matter has a duplicate key"
    assert problems["open.md"] == "the front matter does not end with a line `---`"
    assert problems["empty.md"] == "Content cannot be empty"
    assert problems["bytes.md"] == "it is not UTF-8"
    assert problems["long.md"] == "it is larger than 131,072 bytes"
    assert problems["types.yaml"] == "it needs one `name: description` on each line"
    assert {each: each.read_bytes() for each in before} == before
    assert historian.core.recall("staging port")[0].stored.state == "active"


def test_links_are_not_followed(historian: Agent, tmp_path: Path) -> None:
    """A link to a file, to a folder or to `.mnemonics` itself is neither read nor written."""
    secret = tmp_path / "elsewhere"
    secret.mkdir()
    (secret / "key.md").write_text("The launch code is 0000")
    file = historian.remember("Staging port", PORT)
    (file.parent / "link.md").symlink_to(secret / "key.md")
    (file.parents[1] / "issue").symlink_to(secret)
    assert historian.recall("launch code") == {}
    assert historian.problems() == dict.fromkeys(("link.md", "issue"), "it is a link, and links are not followed")
    through = historian("memory_remember", title="x", content="y", memoryType="issue")
    assert through["error"] == f"{file.parents[1]}/issue/x.md: it is a link, and links are not followed"
    assert [each.name for each in secret.iterdir()] == ["key.md"]

    shutil.rmtree(file.parents[1])
    file.parents[1].symlink_to(secret)
    reply = historian("memory_list_types")
    assert reply["error"] == f"{file.parents[1]}: it is a link, and links are not followed"


def test_titles_cannot_escape_the_folder(historian: Agent) -> None:
    """The file of any title is in the folder of its type."""
    folder = historian.project / ".mnemonics" / "learning"
    for title in ("../../etc/passwd", "..", "/root", "a\0b\nc", "-rf", "🎉", "x" * 500, "日本語のタイトル", "CON"):
        file = historian.remember(title, f"Something about {title!r}")
        assert file.parent == folder
        assert file.is_file()
        assert not file.name.startswith((".", "-"))
    assert {"日本語のタイトル.md", "untitled.md", "untitled-2.md"} <= {each.name for each in folder.iterdir()}


def test_secrets_are_not_written(historian: Agent) -> None:
    """Content, title and tags are redacted before the file is written."""
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    file = historian.remember("Token", f"The deploy token is {secret}")

    assert secret not in file.read_text()
    assert "[secret:" in file.read_text()


def test_memories_of_another_toolset_can_be_edited_and_forgotten(historian: Agent) -> None:
    """The path of a memory without a file is its ID. An update writes a file."""
    theo = {tool.name: tool for tool in THEO.tools}
    context = THEO.open(historian.place)
    stored = theo["memory_store"].call(
        context,
        {"content": "We use Kafka for the order events", "memory_type": "decision", "namespace": "project:myapp"},
    )
    memory = (stored.data or {})["data"]["id"]
    assert historian.recall("Kafka order events") == {memory: "We use Kafka for the order events"}
    reply = historian("memory_compound", query="Kafka order events", modifications="We use Kafka 4 for order events")
    assert Path(reply["filePath"]).read_text().endswith("\n\nWe use Kafka 4 for order events\n")
    found = theo["memory_recall"].call(context, {"query": "Kafka order events"})
    assert (found.data or {})["data"]["memories"][0]["content"] == "We use Kafka 4 for order events"

    theo["memory_forget"].call(context, {"memory_id": memory})
    assert historian.recall("Kafka order events") == {}
    assert not Path(reply["filePath"]).exists()


def test_edits_of_a_memory_change_its_file(historian: Agent) -> None:
    """Undoing an edit or a deletion changes the file, too."""
    file = historian.remember("Staging port", PORT)
    memory = historian.core.recall("staging port")[0].stored.id
    historian.core.revise(memory, MemoryRevision(content="The staging server listens on port 1"))
    assert historian.recall("staging port") == {"staging-port.md": "The staging server listens on port 1"}
    assert file.read_text().endswith("\n---\n\nThe staging server listens on port 1\n")
    historian.core.undo([memory])[0]
    historian.recall("staging port")
    assert file.read_text().endswith(f"\n---\n\n{PORT}\n")

    historian("memory_forget", query="staging port")
    historian("memory_forget", query="staging port", confirm=True)
    assert not file.exists()
    historian.core.undo([memory])[0]
    assert historian.recall("staging port") == {"staging-port.md": PORT}
    assert file.read_text().endswith(f"\n---\n\n{PORT}\n")


def test_undoing_a_type_change_keeps_the_file(historian: Agent) -> None:
    """Undoing a type change restores the content, and the file stays in its new folder."""
    historian.remember("Staging port", PORT)
    reply = historian("memory_compound", query="staging port", modifications="Port 9000", memoryType="issue")
    historian.core.undo([reply["undo"].split()[-1]])[0]

    assert historian.recall("staging port") == {"staging-port.md": PORT}
    assert Path(reply["filePath"]).read_text().endswith(f"\n\n{PORT}\n")
    assert historian.problems() == {}


def test_other_projects_are_excluded(historian: Agent) -> None:
    """Global memories are found, memories of other projects are not, and neither can be forgotten here."""
    for namespace in ("global", "project:other", "session:1"):
        historian.core.remember(Memory(f"Lint with ruff ({namespace})", namespace=namespace))

    assert list(historian.recall("Lint with ruff").values()) == ["Lint with ruff (global)"]
    assert historian("memory_forget", query="Lint with ruff")["error"] == "No memories found: Lint with ruff"
    reply = historian("memory_compound", query="Lint with ruff", modifications="Lint with ruff and mypy")
    assert reply["createdNew"] is True


def test_the_project_of_a_subfolder_is_found(historian: Agent) -> None:
    """A server that starts in a subfolder uses the memories of the project."""
    historian.remember("Staging port", PORT)
    inner = Agent(historian.folder)
    (historian.project / "src" / "deep").mkdir(parents=True)
    inner.__class__ = type(
        "Inner", (Agent,), {"project": property(lambda self: self.folder / "myapp" / "src" / "deep")}
    )

    assert inner.recall("staging port") == {"staging-port.md": PORT}


def test_two_checkouts_of_a_project_keep_their_files_apart(historian: Agent) -> None:
    """Each checkout finds its own files, and both have the same namespace."""
    other = Agent(historian.folder / "elsewhere")
    other.home = historian.home
    historian.remember("Staging port", PORT)
    other.remember("Staging port", "The staging server listens on port 9000")

    assert list(historian.recall("staging server port").values()) == [PORT]
    assert list(other.recall("staging server port").values()) == ["The staging server listens on port 9000"]


def test_memories_of_an_unreadable_folder_are_kept(historian: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unreadable folder is reported, and its memories stay stored."""
    file = historian.remember("Staging port", PORT)
    with monkeypatch.context() as patched:
        scan = os.scandir

        def refused(folder: Path) -> Any:
            if folder.name == "learning":
                raise PermissionError(13, "Permission denied")
            return scan(folder)

        patched.setattr("os.scandir", refused)
        assert historian.problems() == {"learning": "permission denied"}
    assert historian.core.at_path(str(file)) is not None
    assert historian.recall("staging port") == {"staging-port.md": PORT}


def test_many_files_are_read_over_several_calls(historian: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call ends in time and reports the number of remaining files, which the next calls read."""
    for number in range(4):
        historian.write(f"learning/{number}.md", f"Note number {number}")
    monkeypatch.setattr("palaver.observe.mnemonics.file_sync._TIME_MAX", -1.0)
    assert historian.problems() == {".mnemonics": "4 files are not read yet. Call again to continue"}
    monkeypatch.undo()

    assert historian.problems() == {}
    assert historian.core.count() == 4


def test_only_near_memories_are_replaced_or_offered(historian: Agent) -> None:
    """Memories far from the query are neither overwritten nor offered for deletion."""
    kept = historian.remember("Staging port", PORT)
    reply = historian("memory_compound", query="colours of the server room", modifications="The room is blue")
    assert (reply["createdNew"], Path(reply["filePath"]).name) == (True, "colours-of-the-server-room.md")
    assert kept.read_text().endswith(f"\n\n{PORT}\n")
    historian.remember("Server names", "A server is named after a river")
    offered = historian("memory_forget", query="staging server listens on port 8443")

    assert [Path(each["path"]).name for each in offered["candidates"]] == ["staging-port.md"]


def test_secrets_remain_only_in_files_of_the_user(historian: Agent) -> None:
    """Palaver writes placeholders for secrets, also in names and tags, but does not change a file edited by hand."""
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    arguments = {"title": f"Key {token}", "content": f"It is {token}", "memoryType": "context", "tags": [token]}
    reply = historian("memory_remember", **arguments)
    assert reply["secretsRemoved"] == ["github-pat"]
    file = Path(reply["filePath"])
    assert token not in file.name + file.read_text()

    by_hand = file.with_name("by-hand.md")
    by_hand.write_text(f"---\ntags: [{token}]\n---\nThe kettle's key is {token}.\n")
    recalled = historian.recall("kettle's key")
    assert token not in str(recalled)
    assert "by-hand.md" in recalled
    assert token in by_hand.read_text()
    database = historian.folder / "palaver" / "palaver.db"
    assert not any(token.encode() in each.read_bytes() for each in database.parent.glob("palaver.db*"))


def test_a_superseded_file_is_recalled_until_it_is_deleted(historian: Agent) -> None:
    """A superseded memory is recalled until the user deletes its file. Then it is forgotten."""
    file = historian.write("learning/ci.md", "CI runs on Jenkins\n")
    historian.recall("jenkins")
    core = historian.core
    [old] = core.page()
    newer = core.remember(Memory("Builds are made elsewhere", namespace=old.memory.namespace)).stored
    core.graph.relate(newer.id, old.id, Relation.SUPERSEDES)
    recalled = historian.recall("jenkins")
    file.unlink()

    assert recalled == {"ci.md": "CI runs on Jenkins"}
    assert historian.recall("jenkins") == {}
    assert core.get(old.id).state is MemoryState.ARCHIVED
