"""Damage to raw copies, `redaction.key` and small files of the archive is detected or harmless."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from palaver.archiver.copies.checksums import BLOCK
from palaver.archiver.copies.exporter import Exporter
from palaver.archiver.copies.raw_copy import RawArchive
from palaver.archiver.copies.verification import CopyCompressor, CopyVerifier
from palaver.archiver.ingest.ingest import Ingest
from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.store import Store
from palaver.archiver.store.tombstone_table import KeyLost
from palaver.cli import main
from palaver.core.deletion import DeletionRequest
from palaver.core.home import Home
from palaver.observe.deletion.deleter import Deleter
from palaver.observe.upkeep.consistency import check_consistency

from ..archiver.formats.claude_code.claude_lines import jsonl
from ..archiver.history import FORK, ORIGINAL, History, talk

SEEDS = range(4)
LONG = 30
"""Number of exchanges in the long session, whose copy has several blocks."""
OTHER = "33333333-0000-4000-8000-000000000003"


class Place:
    """Home that tests damage repeatedly, and the folder of the agents."""

    def __init__(self, root: Path, whole: Path) -> None:
        self.root, self._whole = root, whole
        self.home, self.agents = Home(root / "home"), root / "projects"
        self.out = root / "out"

    def restore(self, *, agents: bool = True) -> None:
        """Undo all damage. If `agents` is false, delete the agents' files."""
        shutil.rmtree(self.root)
        shutil.copytree(self._whole, self.root)
        if not agents:
            shutil.rmtree(self.agents)

    @property
    def originals(self) -> dict[str, bytes]:
        """Return the agents' files by name."""
        return {path.name: path.read_bytes() for path in (self._whole / "projects").rglob("*.jsonl")}

    def is_sound(self, *, repair: bool = False) -> bool:
        """Return whether `fsck` finds no problem except the missing index."""
        findings = check_consistency(self.home, repair=repair).problems
        return all(each.repaired or each.part == "index" for each in findings)

    def exported(self) -> tuple[dict[str, bytes], int]:
        """Export everything and return the exported files by name and the number of problems."""
        shutil.rmtree(self.out, ignore_errors=True)
        with Store.open(self.home.database) as store:
            done = Exporter(store, RawArchive(self.home.archive)).export(store.sources.all(), self.out)
        return {path.name: path.read_bytes() for path in self.out.rglob("*.jsonl")}, len(done.problems)

    def compress(self) -> None:
        """Compress every copy."""
        with Store.open(self.home.database) as store:
            CopyCompressor(store, RawArchive(self.home.archive)).run()

    def archive(self) -> None:
        """Run the archiver once."""
        with Store.open(self.home.database) as store:
            Ingest(store, RawArchive(self.home.archive)).run(in_paths([self.agents]))

    def verify(self) -> int:
        """Verify copies as in the background and return the number of damaged copies."""
        with Store.open(self.home.database) as store:
            return CopyVerifier(store, RawArchive(self.home.archive)).run().damaged


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Return a home with an uncompressed copy of several blocks and a compressed one."""
    root = tmp_path_factory.mktemp("made") / "root"
    with History(root) as history:
        history.write(talk("compressed", "quiet", session=FORK), FORK)
        history.ingest()
        CopyCompressor(history.store, history.raw).run()
        history.write(talk(*(f"long{number}" * 400 for number in range(LONG))), at=5)
        history.ingest()
        assert history.source().size > 3 * 65536
    shutil.copytree(root, root.with_name("whole"))
    return Place(root, root.with_name("whole"))


def flip(path: Path, chance: random.Random) -> None:
    """Flip one bit of a file."""
    data = bytearray(path.read_bytes())
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def cut(path: Path, chance: random.Random) -> None:
    """Truncate a file."""
    path.write_bytes(path.read_bytes()[: chance.randrange(path.stat().st_size)])


Damage = Callable[[Path, random.Random], None]
DAMAGES = pytest.mark.parametrize("damage", [flip, cut])
BLOBS = {
    "uncompressed": f"claude-code/shop/{ORIGINAL}.jsonl",
    "compressed": f"claude-code/shop/{FORK}.jsonl.sealed.zst",
}


@DAMAGES
@pytest.mark.parametrize("kind", BLOBS)
def test_damage_to_a_copy_is_never_certified(place: Place, kind: str, damage: Damage) -> None:
    """Without the agent's file, `fsck` detects damage before and after compression, and export writes no wrong byte."""
    for seed in SEEDS:
        place.restore(agents=False)
        damage(place.home.archive / BLOBS[kind], random.Random(seed))

        for act in (lambda: None, place.compress, place.verify):
            act()
            files, problems = place.exported()
            assert not place.is_sound() or files == place.originals, seed
            assert all(place.originals[name] == data for name, data in files.items()), seed
            assert len(files) + problems == len(place.originals), seed
        with Store.open(place.home.database) as store:
            assert store.sources.damaged() or place.is_sound(), seed


@DAMAGES
@pytest.mark.parametrize("kind", BLOBS)
def test_damage_is_repaired_from_the_agents_file(place: Place, kind: str, damage: Damage) -> None:
    """`fsck --repair` restores the copy byte for byte from the agent's file."""
    for seed in SEEDS:
        place.restore()
        damage(place.home.archive / BLOBS[kind], random.Random(seed))

        assert not place.is_sound(), seed
        assert place.is_sound(repair=True), seed
        shutil.rmtree(place.agents)
        assert place.is_sound(), seed
        assert place.exported() == (place.originals, 0), seed


def test_growing_copy_stays_damaged(place: Place) -> None:
    """An append to a damaged copy does not hide the damage."""
    place.restore()
    copy = place.home.archive / BLOBS["uncompressed"]
    data = bytearray(copy.read_bytes())
    data[70_000] ^= 4
    copy.write_bytes(data)
    with next(place.agents.rglob(f"{ORIGINAL}.jsonl")).open("ab") as file:
        file.write(jsonl(talk("more")))
    place.archive()
    shutil.rmtree(place.agents)

    assert place.verify() == 1
    place.compress()
    assert "bytes 65536-131071" in str(check_consistency(place.home).problems)


@pytest.mark.parametrize("block", [0, 2])
def test_erasing_works_in_a_damaged_copy(place: Place, block: int) -> None:
    """Erasing removes every byte of a line. A damaged block stays damaged."""
    place.restore(agents=False)
    copy = place.home.archive / BLOBS["uncompressed"]
    data = bytearray(copy.read_bytes())
    data[block * BLOCK + 60_000] ^= 4
    copy.write_bytes(data)
    damage = f"bytes {block * BLOCK}-{(block + 1) * BLOCK - 1}"
    with Deleter(place.home) as deleter:
        wanted = DeletionRequest(mentions="long2" * 3, erase=True)
        deleter.delete(wanted, deleter.preview(wanted).token)

    assert len(copy.read_bytes()) == len(data)
    assert copy.read_bytes().count(b"long2" * 3) == 0
    assert copy.read_bytes().count(b"long4" * 3) > 0
    for act in (lambda: None, place.compress, place.verify):
        act()
        assert damage in str(check_consistency(place.home).problems)
    data = bytearray(copy.read_bytes())
    data[block * BLOCK + 60_000] ^= 4
    copy.write_bytes(data)
    assert place.is_sound() == (block == 2)


def test_copies_of_older_homes_get_checksums_once(place: Place) -> None:
    """The first repair computes missing checksums, and later verifications detect damage with them."""
    place.restore(agents=False)
    drop_checksums(place)

    assert place.is_sound()
    assert place.is_sound(repair=True)
    with Store.open(place.home.database) as store:
        assert all(source.sums for source in store.sources.all())
    flip(place.home.archive / BLOBS["uncompressed"], random.Random(1))
    assert not place.is_sound()


def test_a_truncated_copy_without_checksums_is_damaged(place: Place) -> None:
    """A copy that is shorter than its recorded size is damaged, even without checksums."""
    place.restore(agents=False)
    drop_checksums(place)
    cut(place.home.archive / BLOBS["uncompressed"], random.Random(1))

    assert not place.is_sound()
    assert not place.is_sound()


def test_bytes_after_a_compressed_copy_are_removed(place: Place) -> None:
    """Extra bytes after a compressed copy are reported, its content can be exported, and `--repair` removes them."""
    place.restore(agents=False)
    compressed = place.home.archive / BLOBS["compressed"]
    compressed.write_bytes(compressed.read_bytes() + b"garbage")

    assert "7 unexpected bytes follow the end of the file" in str(check_consistency(place.home).problems)
    assert place.exported() == (place.originals, 0)
    result = CliRunner().invoke(
        main, ["export", "--all", str(place.out / "again")], env={"PALAVER_HOME": str(place.home.root)}
    )
    assert result.exit_code == 1
    assert "Exported, but damaged: " in result.output
    assert "7 unexpected bytes follow the end of the file" in result.output

    assert place.is_sound(repair=True)
    assert place.is_sound()
    assert place.exported() == (place.originals, 0)


def test_seek_table_is_rebuilt(place: Place) -> None:
    """A lost seek table is rebuilt from the content, which has its own checksums."""
    place.restore(agents=False)
    compressed = place.home.archive / BLOBS["compressed"]
    compressed.write_bytes(compressed.read_bytes()[:-3])

    assert place.exported() == (place.originals, 0)
    assert place.is_sound(repair=True)
    assert place.exported() == (place.originals, 0)


@pytest.mark.parametrize("forgotten", [False, True])
@DAMAGES
def test_a_damaged_key_stops_the_next_run(place: Place, forgotten: bool, damage: Damage) -> None:
    """With a damaged key, `fsck` and the next run report the remedy and archive nothing under another key."""
    for seed in SEEDS:
        place.restore()
        if forgotten:
            forget(place)
        damage(place.home.key_file, random.Random(seed))
        next(place.agents.rglob(f"{ORIGINAL}.jsonl")).touch()

        with pytest.raises(KeyLost, match=r"redaction\.key") as raised:
            place.archive()
        assert "Restore" in raised.value.hint
        result = CliRunner().invoke(main, ["fsck"], env={"PALAVER_HOME": str(place.home.root)})
        assert result.exit_code == 1, result.output
        assert "redaction.key" in result.output
        if not forgotten:
            assert place.is_sound(repair=True)
            place.archive()


@DAMAGES
@pytest.mark.parametrize("name", [".given", ".forgotten"])
def test_small_files_of_the_archive_are_checked(place: Place, name: str, damage: Damage) -> None:
    """Damage to small files is repaired on opening the database or by `fsck`, and deleted items stay deleted."""
    for seed in SEEDS:
        place.restore(agents=False)
        forget(place)
        path = place.home.archive / name
        damage(path, random.Random(seed))

        if not place.is_sound():
            assert place.is_sound(repair=True), seed
            assert place.is_sound(), seed
        with Store.open(place.home.database) as store:
            assert not store.tombstones.differs_from_file(), seed
            assert not store.reserved_ids.damage, seed
        assert place.exported()[1] == 1, seed


def forget(place: Place) -> None:
    with Deleter(place.home) as deleter:
        wanted = DeletionRequest(mentions="quiet")
        deleter.delete(wanted, deleter.preview(wanted).token)


def drop_checksums(place: Place) -> None:
    """Remove the checksums from the rows, as in an older version."""
    with Store.open(place.home.database) as store, store.transaction():
        for source in store.sources.all():
            assert source.id is not None
            store.sources.save_checksums(source.id)
