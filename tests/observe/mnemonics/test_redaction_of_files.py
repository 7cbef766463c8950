"""Redaction never changes a user's own file, even if newer rules detect a secret in it."""

from pathlib import Path

import pytest

from palaver.archiver.redaction import Redacted, Redactor
from palaver.archiver.store import Store
from palaver.core.home import Home
from palaver.observe.archive import Archive
from palaver.observe.memory.memory_core import redact_stored_memories
from palaver.observe.mnemonics import ProjectMemories

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def untouched(_: Redactor, text: str) -> Redacted:
    """Return the text unchanged, like rules that detect no secrets."""
    return Redacted(text)


def test_redaction_changes_the_memory_and_not_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory loses the secret, the file stays unchanged, and both still count as synchronized."""
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    file = tmp_path / "shop" / ".mnemonics" / "issue" / "key.md"
    file.parent.mkdir(parents=True)
    file.write_text(f"The deploy key is {TOKEN} until May.\n")
    home = Home(tmp_path / "home")
    with monkeypatch.context() as earlier:
        earlier.setattr(Redactor, "redact", untouched)
        first = ProjectMemories.of(Archive(home).memories, tmp_path / "shop")
        [match] = first.recall("deploy key")
        first.close()
    assert TOKEN in match.stored.memory.content

    with Store.open(home.database) as store:
        with store.transaction():
            store.memories.mark_redacted([match.stored.key], "earlier")
        assert redact_stored_memories(store, Redactor(home.key())) == 1
    later = ProjectMemories.of(Archive(home).memories, tmp_path / "shop")
    [again] = later.recall("deploy key")
    later.close()

    assert again.stored.id == match.stored.id
    assert "[secret:github-pat:" in again.stored.memory.content
    assert file.read_text() == f"The deploy key is {TOKEN} until May.\n"
