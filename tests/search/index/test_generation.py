"""Tests of generations: they are published atomically, verified when opened, and never changed."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from palaver.core.errors import IndexDamaged, IndexUnwritable
from palaver.search.index import generation
from palaver.search.index.generation import Generations, Manifest, checksums
from palaver.search.query import tokenizer


def build(content: str = "data", watermark: int = 1) -> Callable[[Path], Manifest]:
    def fill(folder: Path) -> Manifest:
        (folder / "text").mkdir()
        (folder / "text" / "part").write_text(content)
        (folder / "vectors").mkdir()
        return Manifest(watermark, "fake/1", 32, 1, 0, checksums(folder))

    return fill


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "index"


@pytest.fixture
def generations(root: Path) -> Generations:
    return Generations(root)


def test_before_the_first_publication(generations: Generations, root: Path) -> None:
    """Before the first publication, there is no current generation, and a check creates no files."""
    assert generations.current() is None
    assert generations.name() is None
    assert not root.exists()


def test_a_published_generation_is_current(generations: Generations) -> None:
    """A published generation is the current generation of every later reader."""
    published = generations.publish(build("one"))

    found = generations.current()

    assert found is not None
    assert found == published
    assert (found.text / "part").read_text() == "one"


def test_only_the_owner_can_read_a_generation(generations: Generations) -> None:
    """The files and folders of a generation are readable by their owner alone, with any umask of the process."""
    before = os.umask(0o022)
    try:
        published = generations.publish(build("one"))
    finally:
        os.umask(before)

    files = [published.folder, *published.folder.rglob("*")]
    assert len(files) == 5
    assert not any(path.stat().st_mode & 0o077 for path in files)


def test_each_generation_has_a_unique_name(generations: Generations) -> None:
    """A reader detects a new generation by its name alone."""
    generations.publish(build("one"))
    first = generations.name()
    generations.publish(build("one"))

    assert generations.name() != first


@pytest.mark.parametrize("away", [-1e8, 1e8])
def test_the_previous_generation_is_kept(generations: Generations, root: Path, away: float) -> None:
    """The previous generation is kept for open readers. Older generations and leftovers are removed."""
    generations.publish(build())
    (root / "new-2").mkdir()
    (root / "new-2" / "half").write_text("written by a process that was killed")
    for content in ("two", "three"):
        second = generations.publish(build(content))

    assert sorted(path.name for path in root.iterdir()) == ["CURRENT", "gen-1", "gen-2", "gen-3"]
    replaced = second.folder.stat().st_mtime + away
    os.utime(root / "gen-2" / "manifest.json", (replaced, replaced))
    generations.publish(build("four"))
    assert sorted(path.name for path in root.iterdir()) == ["CURRENT", "gen-2", "gen-3", "gen-4"]


def test_the_previous_generation_is_removed_later(generations: Generations, root: Path) -> None:
    """A check some time after a publication removes the previous generation, but not an unfinished build."""
    generations.sweep()
    for content in ("one", "two", "three"):
        current = generations.publish(build(content))
    (root / "new-2").mkdir()
    (root / "new-4").mkdir()
    generations.sweep()
    assert {path.name for path in root.iterdir()} == {"CURRENT", "gen-1", "gen-2", "gen-3", "new-4"}

    for name in ("gen-2", "gen-3"):
        os.utime(root / name / "manifest.json", (1_000, 1_000))
    generations.sweep()
    generations.sweep()

    assert {path.name for path in root.iterdir()} == {"CURRENT", "gen-3", "new-4"}
    assert generations.current() == current


def test_a_failed_build_changes_nothing(generations: Generations) -> None:
    """During a build and after a failed build, the previous generation stays current. The next build starts empty."""
    before = generations.publish(build("one"))

    def fail(folder: Path) -> Manifest:
        (folder / "text").write_text("half")
        assert generations.current() == before
        raise OSError

    with pytest.raises(IndexUnwritable):
        generations.publish(fail)

    assert generations.current() == before
    published, current = generations.publish(build("two")), generations.current()
    assert current
    assert published.folder == current.folder


def test_readers_keep_what_they_opened(generations: Generations, monkeypatch: pytest.MonkeyPatch) -> None:
    """An open file of a removed generation can still be read."""
    monkeypatch.setattr(generation, "_GRACE", 0)
    with (generations.publish(build("old")).text / "part").open() as file:
        for content in ("new", "newer", "newest"):
            generations.publish(build(content))

        assert not (generations.root / "gen-1").exists()
        assert file.read() == "old"


GARBAGE = [
    b"",
    b"\n",
    b"gen-1",
    b"../../etc",
    b"/etc/passwd",
    b"gen-1 " + b"0" * 64,
    b"\xff\xfe\0",
    b"gen-1\0",
    b"gen-9 " + b"a" * 64,
    b"x" * 100_000,
]


@pytest.mark.parametrize("content", GARBAGE, ids=range(len(GARBAGE)))
def test_an_invalid_current_file_is_damage(generations: Generations, root: Path, content: bytes) -> None:
    """Any invalid content of CURRENT is reported as damage, and the next publication repairs it."""
    generations.publish(build())
    (root / "CURRENT").write_bytes(content)

    with pytest.raises(IndexDamaged):
        generations.current()
    published, current = generations.publish(build("again")), generations.current()
    assert current
    assert published.folder == current.folder


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def zero(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


@pytest.mark.parametrize("damage", [truncate, flip, zero, Path.unlink])
@pytest.mark.parametrize("name", ["manifest.json", "text/part"])
def test_damaged_generation_is_not_opened(generations: Generations, name: str, damage: Callable[[Path], None]) -> None:
    """A missing, truncated or changed file raises `IndexDamaged`."""
    damage(generations.publish(build()).folder / name)

    with pytest.raises(IndexDamaged):
        generations.current()


@pytest.mark.parametrize("damage", [flip, zero])
def test_verification_compares_checksums(generations: Generations, damage: Callable[[Path], None]) -> None:
    """`verify` detects damage that keeps the size of a file."""
    published = generations.publish(build())
    damage(published.folder / "text/part")

    with pytest.raises(IndexDamaged):
        generations.verify(published)


def test_shared_files_keep_their_checksum(generations: Generations, tmp_path: Path) -> None:
    """A file shared with another generation keeps its original checksum, so that damage is detected."""
    before = generations.publish(build("one"))
    folder = tmp_path / "next"
    folder.mkdir()
    generation.link_or_copy(before.text / "part", folder / "shared")
    (before.text / "part").write_text("two")
    (folder / "own").write_text("two")

    known = checksums(folder, before)

    assert known["shared"] == before.manifest.files["text/part"]
    assert known["own"] == checksums(folder)["own"] != known["shared"]


def test_the_manifest_has_a_checksum(generations: Generations) -> None:
    """A manifest with a changed watermark is damaged, even if it is valid JSON."""
    path = generations.publish(build(watermark=11)).folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"watermark": 12}))

    with pytest.raises(IndexDamaged, match="does not match its published checksum"):
        generations.current()


@pytest.mark.parametrize(
    "other", [{"format": generation.FORMAT + 1}, {"format": generation.FORMAT - 1}, {"analysis": tokenizer.VERSION + 1}]
)
def test_another_version_is_not_opened(generations: Generations, other: dict[str, Any]) -> None:
    """A generation with another version of the format or of the tokenizer raises IndexDamaged."""

    def fill(folder: Path) -> Manifest:
        return replace(build()(folder), **other)

    generations.publish(fill)

    with pytest.raises(IndexDamaged, match="another version"):
        generations.current()


def test_a_vanished_generation_is_looked_up_again(generations: Generations, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a generation is removed while it is verified, the newer generation is opened."""
    first = generations.publish(build("one"))
    verify = Generations._open  # pyright: ignore[reportPrivateUsage]

    def late(self: Generations, name: str) -> generation.Generation:
        if first.folder.exists():
            shutil.rmtree(first.folder)
            self.publish(build("two"))
        return verify(self, name)

    monkeypatch.setattr(Generations, "_open", late)

    found = generations.current()

    assert found is not None
    assert (found.text / "part").read_text() == "two"


@pytest.mark.parametrize("name", ["text/more", "vectors/9/graph.usearch"])
def test_file_outside_the_manifest_closes_the_generation(generations: Generations, name: str) -> None:
    """A generation with a file that is not in its manifest is not opened."""
    path = generations.publish(build()).folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("planted")

    with pytest.raises(IndexDamaged, match="not listed in the manifest"):
        generations.current()
