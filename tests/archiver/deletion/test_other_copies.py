"""Lines are erased from every kind of copy: containers, documents and compressed files."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from palaver.archiver.copies.verification import CopyVerifier
from palaver.archiver.deletion.deletions import Deletions
from palaver.archiver.lines import opened
from palaver.core.deletion import DeletionRequest

from ..formats.chatgpt import test_chatgpt
from ..formats.claude_ai import test_claude_ai
from ..formats.codex import codex_lines
from ..formats.container_files import database
from ..formats.cursor import test_cursor
from ..formats.opencode import test_opencode
from ..formats.reading import jsonl
from ..test_containers import Archive, document

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PROMPTS = ["Why herons?", "Why storks?", "Why geese?"]
Make = Callable[[Path, list[str]], Path]


def opencode(root: Path, texts: list[str]) -> Path:
    path = root / "opencode.db"
    for old in root.glob("opencode.db*"):
        old.unlink()
    program = database(path, test_opencode.SCHEMA)
    messages = [({"id": f"msg_{n}", "role": "user"}, [{"type": "text", "text": each}]) for n, each in enumerate(texts)]
    test_opencode.put(program, messages=messages)
    program.close()
    return path


def cursor(root: Path, texts: list[str]) -> Path:
    path = root / "globalStorage" / "state.vscdb"
    path.unlink(missing_ok=True)
    order = " ".join(f"b{number}" for number in range(len(texts)))
    bubbles = [test_cursor.bubble(f"b{number}", {"type": 1, "text": each}) for number, each in enumerate(texts)]
    return test_cursor.editor(path, test_cursor.composer(order), *bubbles)


def chatgpt(root: Path, texts: list[str]) -> Path:
    ids = ["root", *(f"n{number}" for number in range(len(texts)))]
    nodes = [test_chatgpt.node(ids[n + 1], ids[n], "user", each) for n, each in enumerate(texts)]
    return test_chatgpt.export(root / "conversations.json", test_chatgpt.conversation(*nodes, current=ids[-1]))


def claude_ai(root: Path, texts: list[str]) -> Path:
    return test_claude_ai.export(root / "claude.json", *(test_claude_ai.message("human", each) for each in texts))


def gemini(root: Path, texts: list[str]) -> Path:
    path = root / "chats" / "session-2026-01-01T00-00-00000000.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(document(*texts))
    return path


def compressed(root: Path, texts: list[str]) -> Path:
    lines: list[Any] = [codex_lines.meta()]
    for each in texts:
        lines += [*codex_lines.user_prompt(each), *codex_lines.agent_reply(f"DeletionSummary {each}")]
    path = root / f"rollout-2026-03-01T10-00-00-{codex_lines.SESSION}.jsonl.zst"
    path.write_bytes(zstd.compress(jsonl(lines)))
    return path


KINDS: list[Make] = [opencode, cursor, chatgpt, claude_ai, gemini, compressed]


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    made = Archive(tmp_path)
    yield made
    made.store.close()


def forget(archive: Archive, text: str, *, erase: bool) -> int:
    deletions = Deletions(archive.store, archive.raw)
    plan = deletions.plan(DeletionRequest(mentions=text, erase=erase))
    assert len(plan.selection.exchanges) == 1
    return deletions.delete(plan)


def copied_bytes(archive: Archive) -> bytes:
    """Return the bytes of all raw copies, compressed and decompressed."""
    found = b""
    for path in sorted(archive.home.archive.rglob("*")):
        if path.is_file():
            found += path.read_bytes()
            with opened(path) as file:
                found += file.read()
    return found


@pytest.mark.parametrize("erase", [True, False], ids=["erased", "forgotten"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.__name__))
def test_deleted_content_stays_deleted(archive: Archive, tmp_path: Path, kind: Make, erase: bool) -> None:
    """In every kind of copy, a deleted exchange stays deleted if its conversation grows and is ingested again."""
    archive.ingest(kind(tmp_path, PROMPTS))
    assert archive.prompts() == PROMPTS

    number = forget(archive, "storks", erase=erase)
    archive.ingest(kind(tmp_path, PROMPTS))
    assert archive.prompts() == ["Why herons?", "Why geese?"]
    assert (b"storks" in copied_bytes(archive)) is not erase
    assert list(CopyVerifier(archive.store, archive.raw).check_all()) == []

    archive.ingest(kind(tmp_path, [*PROMPTS, "Why cranes?"]))
    assert archive.prompts() == ["Why herons?", "Why geese?", "Why cranes?"]
    assert (b"storks" in copied_bytes(archive)) is not erase
    assert all(word in copied_bytes(archive) for word in (b"herons", b"geese", b"cranes"))
    if not erase:
        Deletions(archive.store, archive.raw).undo(number)
        archive.ingest(kind(tmp_path, [*PROMPTS, "Why cranes?"]))
        assert sorted(archive.prompts()) == sorted([*PROMPTS, "Why cranes?"])


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.__name__))
def test_expiry_erases_from_every_kind_of_copy(archive: Archive, tmp_path: Path, kind: Make) -> None:
    """When a deletion expires, its lines are erased from every kind of copy, and other exchanges stay."""
    path = kind(tmp_path, PROMPTS)
    archive.ingest(path)
    number = forget(archive, "storks", erase=False)
    archive.ingest(path)
    Deletions(archive.store, archive.raw).expire(number)
    archive.ingest(path)

    assert b"storks" not in copied_bytes(archive)
    assert archive.prompts() == ["Why herons?", "Why geese?"]


def test_the_database_of_an_agent_is_never_written(archive: Archive, tmp_path: Path) -> None:
    """An erasure never writes to an agent's own database, which keeps the content."""
    path = opencode(tmp_path, PROMPTS)
    before = path.read_bytes()
    archive.ingest(path)
    forget(archive, "storks", erase=True)
    archive.ingest(path)

    assert path.read_bytes() == before
    program = database(path, "")
    assert program.execute("SELECT count(*) FROM part WHERE data LIKE '%storks%'").fetchall() == [(1,)]
    program.close()
