"""Tests against template injection, by stored text and by users' templates."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from palaver.core.errors import TemplateInvalid
from palaver.core.memory import Memory, MemoryState, MemoryStats, StoredMemory
from palaver.templates.quote import line
from palaver.templates.render import Renderer

from ..faults import payloads
from .samples import detail, hit, renderer, results, transcript

pytestmark = payloads.needed
RENDERER = renderer(full_titles=True, budget=100_000)
MARK = "wordbetween"


def a_memory(text: str) -> StoredMemory:
    memory = Memory(f"Held: {text}", "fact", f"Title: {text}", tags=("one",), project="my-api")
    return StoredMemory(1, memory, MemoryStats(), MemoryState.ACTIVE, 1, 1)


SHOWN: dict[str, Callable[[str], str]] = {
    "search": lambda text: RENDERER.search(results(hit(title=f"Asked {text}"))),
    "observations": lambda text: RENDERER.observations([detail(f" {text}")]),
    "read": lambda text: RENDERER.read(transcript(f" {text}")),
    "memory": lambda text: RENDERER.render("memory", stored=a_memory(text), edges=()),
    "memories": lambda text: RENDERER.render("memories", memories=[a_memory(text)], admitted=1, total=1),
}


def without_markup(text: str) -> str:
    """Return a text without Markdown characters and spaces."""
    return " ".join(text.replace("*", "").replace("`", "'").split())


def normalised(shown: str, text: str) -> str:
    """Return a reply with a placeholder in place of the text."""
    return re.sub(r"\d+ tokens", "some tokens", without_markup(shown)).replace(without_markup(line(text)), MARK)


@pytest.mark.parametrize("name", SHOWN)
def test_stored_expressions_are_not_evaluated(name: str) -> None:
    """Template expressions in stored text appear letter for letter."""
    plain = normalised(SHOWN[name](MARK), MARK)
    assert MARK in plain
    for text in payloads.injections():
        if len(text) < 60:  # lists truncate longer texts
            assert normalised(SHOWN[name](text), text) == plain, text


def test_users_templates_are_sandboxed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hostile user template is rendered as text or refused, without reading files or running code."""
    monkeypatch.chdir(tmp_path)
    refused = 0
    for number, text in enumerate(payloads.injections()):
        folder = tmp_path / f"t{number}"
        folder.mkdir()
        (folder / "search.md.j2").write_text(text)
        try:
            shown = Renderer(folder).search(results(hit()))
        except TemplateInvalid:
            refused += 1
            continue
        assert not re.search(r"root:|uid=|<class '|/bin/", shown.replace(text, "")), text
    assert refused > 20
    assert {path.name for path in tmp_path.iterdir()} == {f"t{number}" for number in range(len(payloads.injections()))}
