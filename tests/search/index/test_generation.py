"""Is a generation published at once, verified before it is opened, and never changed?"""

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


def test_before_the_first(generations: Generations, root: Path) -> None:
    """Where nothing was published there is no generation, and looking makes nothing."""
    assert generations.current() is None
    assert generations.name() is None
    assert not root.exists()


def test_what_is_published_is_current(generations: Generations) -> None:
    """A published generation is the current one, as it was built, for every later reader."""
    published = generations.publish(build("one"))

    found = generations.current()

    assert found is not None
    assert found == published
    assert (found.text / "part").read_text() == "one"


def test_each_has_a_name_of_its_own(generations: Generations) -> None:
    """A reader sees from the name alone that another generation was published."""
    generations.publish(build("one"))
    first = generations.name()
    generations.publish(build("one"))

    assert generations.name() != first


@pytest.mark.parametrize("away", [-1e8, 1e8])
def test_the_last_one_stays(generations: Generations, root: Path, away: float) -> None:
    """The generation before the current one stays for those who have it open; older ones and leftovers go."""
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


def test_what_was_replaced_goes_when_nobody_can_read_it(generations: Generations, root: Path) -> None:
    """A look some time after a publishing removes what it replaced, and nothing of what somebody builds meanwhile."""
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
    """While a generation is built, and when that fails, the one before stays current; the next build starts clean."""
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
    """An open file of a generation that was removed can still be read."""
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
def test_garbage_in_current(generations: Generations, root: Path, content: bytes) -> None:
    """Whatever stands in CURRENT, it is a damage that the next publish repairs."""
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
    """A file shared with another generation keeps the checksum it was published with, so that damage shows."""
    before = generations.publish(build("one"))
    folder = tmp_path / "next"
    folder.mkdir()
    generation.link_or_copy(before.text / "part", folder / "shared")
    (before.text / "part").write_text("two")
    (folder / "own").write_text("two")

    known = checksums(folder, before)

    assert known["shared"] == before.manifest.files["text/part"]
    assert known["own"] == checksums(folder)["own"] != known["shared"]


def test_every_bit_of_the_manifest_counts(generations: Generations) -> None:
    """A manifest that still reads well with another watermark is damaged all the same."""
    path = generations.publish(build(watermark=11)).folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"watermark": 12}))

    with pytest.raises(IndexDamaged, match="differs from the published manifest"):
        generations.current()


@pytest.mark.parametrize(
    "other", [{"format": generation.FORMAT + 1}, {"format": generation.FORMAT - 1}, {"analysis": tokenizer.VERSION + 1}]
)
def test_another_version_is_not_opened(generations: Generations, other: dict[str, Any]) -> None:
    """A generation of another version of the format or of the tokenizer is made anew."""

    def fill(folder: Path) -> Manifest:
        return replace(build()(folder), **other)

    generations.publish(fill)

    with pytest.raises(IndexDamaged, match="another version"):
        generations.current()


def test_a_vanished_generation_is_looked_up_again(generations: Generations, monkeypatch: pytest.MonkeyPatch) -> None:
    """A generation that is removed while it is verified was replaced by a newer one, which is found."""
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
    """A file that was not published keeps its generation from being opened."""
    path = generations.publish(build()).folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("planted")

    with pytest.raises(IndexDamaged, match="not in the manifest"):
        generations.current()
