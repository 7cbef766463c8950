"""`palaver sync` carries transcripts, memories and deletions, and refuses what it cannot trust."""

import shutil
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest

from palaver.archiver.copies.raw_copy import RawArchive
from palaver.archiver.store import Store
from palaver.archiver.store.sync_table import foreign_path
from palaver.core.errors import SyncRefused
from palaver.core.memory import EventKind
from palaver.observe.archive import Archive
from palaver.observe.sync.keyring import DeviceKey, Keyring, device_id, salt_of
from palaver.observe.sync.records import CopyPart, Manifest, MemoryRecord, Record, SegmentEntry, pack
from palaver.observe.sync.shared_folder import MANIFEST, LocalFolder, SharedFolder

from .devices import PASSPHRASE, Machine, exchange

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Two = tuple[Machine, Machine]


@pytest.fixture
def two(tmp_path: Path) -> Two:
    """Two machines with one replica of the folder, as of a network drive."""
    first, second = Machine(tmp_path / "a"), Machine(tmp_path / "b")
    second.replica.rmdir()
    second.replica = first.replica
    return first, second


def sync(*machines: Machine) -> None:
    for machine in machines:
        machine.sync()


def folder(machine: Machine) -> SharedFolder:
    return SharedFolder(LocalFolder(machine.replica), Keyring(machine.root / "none", PASSPHRASE))


def identity(machine: Machine) -> str:
    key = DeviceKey(machine.home.root / "sync" / "device.key").load()
    assert key is not None
    return device_id(key.public_key().public_bytes_raw())


def records(machine: Machine) -> list[Record]:
    """Return all records that a machine offers."""
    shared = folder(machine)
    name = shared.device_folders()[identity(machine)]
    accepted = shared.manifest(name)
    assert accepted is not None
    return [record for entry in accepted[0].segments for record in shared.records(name, entry) or ()]


def offered_bytes(machine: Machine) -> bytes:
    return b"".join(record.data for record in records(machine) if isinstance(record, CopyPart))


def copy_of(machine: Machine, owner: Machine, session: str) -> bytes:
    """Return the bytes here of a transcript of another machine."""
    archived = foreign_path(identity(owner), f"claude-code/shop/{session}.jsonl")
    with RawArchive(machine.home.archive).open_raw(archived) as file:
        return file.read()


def raw_bytes(machine: Machine) -> bytes:
    return b"".join(path.read_bytes() for path in machine.home.archive.rglob("*") if path.is_file())


def test_transcripts_arrive_byte_for_byte(two: Two) -> None:
    """The copy on the other machine has the bytes of the agent's file. A second run sends nothing."""
    first, second = two
    first.write("talk-1", "invoice")
    sync(first, second)
    assert copy_of(second, first, "talk-1") == exchange("talk-1", "invoice")
    assert second.words() == {"invoice"}
    assert not first.sync().has_sent
    assert not second.sync().has_received


def test_only_new_bytes_are_sent(two: Two) -> None:
    """A transcript that grew is sent from where the last run ended."""
    first, second = two
    first.write("talk-1", "invoice")
    sync(first, second)
    first.write("talk-1", "parcel")
    sync(first, second)
    parts = [record for record in records(first) if isinstance(record, CopyPart)]
    assert [part.data for part in parts] == [exchange("talk-1", "invoice"), exchange("talk-1", "parcel")]
    assert second.words() == {"invoice", "parcel"}


def test_a_session_continued_on_two_machines_is_one(two: Two) -> None:
    """Both machines show the session once, with the exchanges of both."""
    first, second = two
    first.write("talk-1", "invoice")
    shutil.copytree(first.transcripts, second.transcripts, dirs_exist_ok=True)
    second.write("talk-1", "parcel")
    sync(first, second, first)
    for machine in two:
        assert machine.words() == {"invoice", "parcel"}
        with Store.of(machine.home) as store:
            assert len(store.sessions.all()) == 1
            assert store.exchanges.count() == 2


def test_the_folder_does_not_hold_forgotten_lines(two: Two) -> None:
    """A forgotten exchange is hidden on both machines and gone from the folder, and returns with the undo."""
    first, second = two
    first.write("talk-1", "invoice")
    first.write("talk-1", "parcel")
    sync(first, second)
    number = first.forget("invoice", erase=False)
    sync(first, second)
    assert second.words() == {"parcel"}
    assert b"invoice" not in offered_bytes(first)
    assert number is not None
    first.undo(number)
    sync(first, second)
    assert first.words() == second.words() == {"invoice", "parcel"}
    assert b"invoice" in offered_bytes(first)


def test_an_erasure_removes_the_bytes_everywhere(two: Two) -> None:
    """After an erasure, no archive and no segment holds the text, even if another machine made the erasure."""
    first, second = two
    first.write("talk-1", "invoice")
    first.write("talk-1", "parcel")
    sync(first, second)
    second.forget("invoice", erase=True)
    sync(second, first, second)
    for machine in two:
        assert machine.words() == {"parcel"}
        assert b"invoice" not in raw_bytes(machine)
    assert b"invoice" not in offered_bytes(first)
    first.ingest()  # The agent's file still has the line.
    sync(first, second)
    assert second.words() == {"parcel"}


def test_the_status_names_a_deletion_that_waits_for_its_owner(two: Two) -> None:
    """Until the owner has run, the status says that it still holds the lines."""
    first, second = two
    first.write("talk-1", "invoice")
    sync(first, second, first)
    second.forget("invoice", erase=True)
    second.sync()
    with Archive(second.home) as archive:
        assert [device.unread_deletions for device in archive.synchronizer().status(archive.store).devices] == [True]
    sync(first)
    with Archive(second.home) as archive:
        assert [device.unread_deletions for device in archive.synchronizer().status(archive.store).devices] == [False]


def test_forgetting_wins_until_each_is_undone(two: Two) -> None:
    """An exchange that two machines forgot stays hidden until both deletions are undone."""
    first, second = two
    first.write("talk-1", "invoice")
    sync(first, second, first)
    mine, theirs = first.forget("invoice", erase=False), second.forget("invoice", erase=False)
    assert mine is not None
    assert theirs is not None
    sync(first, second, first, second)
    first.undo(mine)
    sync(first, second, first, second)
    assert first.words() == second.words() == set()
    second.undo(theirs)
    sync(second, first, second)
    assert first.words() == second.words() == {"invoice"}


def test_a_deletion_can_be_undone_on_another_machine(two: Two) -> None:
    """The undo of a received deletion counts on the machine that made it."""
    first, second = two
    first.write("talk-1", "invoice")
    sync(first, second)
    first.forget("invoice", erase=False)
    sync(first, second)
    with Archive(second.home) as archive:
        numbers = [deletion.id for deletion in archive.deletions.history()]
    second.undo(*numbers)
    sync(second, first, second)
    assert first.words() == second.words() == {"invoice"}


def test_the_higher_version_of_a_memory_wins_and_the_loser_is_kept(two: Two) -> None:
    """Both machines show one content. The other one is in the history of the machine where it was written."""
    first, second = two
    first.remember("The port is 80")
    sync(first, second)
    first.revise("The port is 80", "The port is 81")
    second.revise("The port is 80", "The port is 82")
    sync(first, second, first, second)
    assert len(first.memories()) == 1
    assert first.memories() == second.memories()
    (winner,) = first.memories()
    (loser,) = {"The port is 81", "The port is 82"} - {winner}
    histories = list[str]()
    for machine in two:
        with Store.of(machine.home) as store:
            (memory,) = store.memories.all()
            histories += [event.before for event in store.memory_events.of(memory.key, [EventKind.EDITED])]
    assert any(loser in snapshot for snapshot in histories)


def test_a_forgotten_memory_does_not_return(two: Two) -> None:
    """A later edit on a machine that did not know of the forgetting does not bring the memory back."""
    first, second = two
    first.remember("The port is 80")
    sync(first, second)
    first.forget_memory("The port is 80")
    second.revise("The port is 80", "The port is 82")
    second.revise("The port is 82", "The port is 83")
    sync(first, second, first, second)
    assert set(first.memories().values()) == set(second.memories().values()) == {"archived"}


def test_another_passphrase_is_refused(two: Two) -> None:
    """Nothing is written, and the message says what to do."""
    first, second = two
    first.write("talk-1", "invoice")
    first.sync()
    with Archive(second.home) as archive, pytest.raises(SyncRefused, match="Wrong passphrase") as caught:
        archive.synchronizer("another").run(str(second.replica))
    assert "passphrase of the other devices" in caught.value.hint
    assert len(list(second.replica.iterdir())) == 1


def test_files_of_others_are_ignored(two: Two) -> None:
    """Conflict copies, temporary files and unknown folders have no effect."""
    first, second = two
    first.write("talk-1", "invoice")
    first.sync()
    (device,) = first.replica.iterdir()
    shutil.copy(device / MANIFEST, device / "manifest (conflicted copy 2026-11-01)")
    (device / ".syncthing.manifest.tmp").write_bytes(b"half")
    (first.replica / "photos").mkdir()
    (first.replica / "photos" / "manifest").write_bytes(b"picture")
    (first.replica / f"stray-{32 * '0'}").write_text("a file with the name of a folder")
    second.sync()
    assert second.words() == {"invoice"}


def rewrite(machine: Machine, change: Callable[[Manifest], Manifest], *, key: DeviceKey | None = None) -> None:
    """Replace the manifest of a machine by a changed one, signed by its own or another key."""
    shared = folder(machine)
    name = shared.device_folders()[identity(machine)]
    accepted = shared.manifest(name)
    assert accepted is not None
    signer = (key or DeviceKey(machine.home.root / "sync" / "device.key")).load()
    assert signer is not None
    body = msgspec.msgpack.encode(change(accepted[0]))
    sealed = shared.transport.read(f"{name}/{MANIFEST}")
    assert sealed is not None
    shared.transport.write(
        f"{name}/{MANIFEST}", shared.seal(signer.sign(body) + body, salt_of(sealed), f"{name}/{MANIFEST}")
    )


def problem(machine: Machine) -> str:
    return machine.sync().devices[0].problem


def test_a_forged_manifest_is_refused(two: Two, tmp_path: Path) -> None:
    """Somebody who knows the passphrase cannot write as another device."""
    first, second = two
    first.write("talk-1", "invoice")
    sync(first, second)
    forger = DeviceKey(tmp_path / "forger")
    forger.create()
    rewrite(first, lambda manifest: msgspec.structs.replace(manifest, revision=9, segments=()), key=forger)
    assert "not signed by its device" in problem(second)
    assert second.words() == {"invoice"}


def test_an_older_manifest_is_refused(two: Two, tmp_path: Path) -> None:
    """A folder that was rolled back to an earlier state does not bring forgotten content back."""
    first, second = two
    first.write("talk-1", "invoice")
    first.sync()
    (device,) = first.replica.iterdir()
    shutil.copytree(device, tmp_path / "earlier")
    first.forget("invoice", erase=True)
    sync(first, second)
    shutil.rmtree(device)
    shutil.copytree(tmp_path / "earlier", device)
    assert "older than what this machine has already read" in problem(second)
    assert second.words() == set()
    sync(first, second)  # The owner restores its files.
    assert not second.sync().devices[0].problem


def test_a_replaced_segment_is_not_read(two: Two) -> None:
    """A segment whose content differs from the signed list counts as not arrived."""
    first, second = two
    first.write("talk-1", "invoice")
    first.sync()
    (segment,) = first.replica.rglob("*.seg")
    data = segment.read_bytes()
    segment.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    assert second.sync().devices[0].behind == 1
    assert second.words() == set()


def test_a_path_outside_the_archive_is_not_written(two: Two) -> None:
    """A device cannot write beside the archive of another one."""
    first, second = two
    first.write("talk-1", "invoice")
    first.sync()
    shared = folder(first)
    name = shared.device_folders()[identity(first)]
    part = CopyPart("claude-code/../../../../stolen.jsonl", 1, 0, b"{}\n", last=True)
    sealed = shared.seal(pack([part]), salt_of(shared.transport.read(f"{name}/{MANIFEST}") or b""), f"{name}/7")
    entry = SegmentEntry(7, sha256(sealed).digest(), len(sealed))
    shared.transport.write(f"{name}/{entry.name}", sealed)
    rewrite(first, lambda manifest: msgspec.structs.replace(manifest, revision=9, segments=(*manifest.segments, entry)))
    sync(second)
    assert not list(second.root.parent.rglob("stolen.jsonl"))
    assert second.words() == {"invoice"}


def test_a_copied_home_is_another_device(two: Two, tmp_path: Path) -> None:
    """The copy of a home gets its own name, so that two machines never write below one."""
    first, second = two
    first.write("talk-1", "invoice")
    first.sync()
    clone = Machine(tmp_path / "clone")
    clone.replica.rmdir()
    clone.replica = first.replica
    shutil.copytree(first.home.root, clone.home.root)
    clone.write("talk-2", "parcel")
    sync(clone, first, second)
    assert identity(clone) != identity(first)
    assert first.words() == second.words() == clone.words() == {"invoice", "parcel"}


def test_a_restored_database_loses_nothing(two: Two, tmp_path: Path) -> None:
    """A home that was set back to an earlier state continues as a new device."""
    first, second = two
    first.write("talk-1", "invoice")
    first.sync()
    with Store.of(first.home) as store:
        store.back_up()
    backup = next(first.home.backups.glob("palaver-*.db.zst"))
    (tmp_path / "backup.db").write_bytes(zstd.decompress(backup.read_bytes()))
    before = identity(first)
    first.write("talk-1", "parcel")
    sync(first, second)
    for path in first.home.root.glob("palaver.db*"):
        path.unlink()
    shutil.copy(tmp_path / "backup.db", first.home.database)
    first.ingest()
    first.write("talk-2", "letter")
    sync(first, second, first)
    assert identity(first) != before
    assert first.words() == second.words() == {"invoice", "parcel", "letter"}


def test_leaving_deletes_only_own_files(two: Two) -> None:
    """The other machine keeps what it received, and the files of others stay."""
    first, second = two
    first.write("talk-1", "invoice")
    second.write("talk-2", "parcel")
    sync(first, second, first)
    with Archive(first.home) as archive:
        archive.synchronizer().leave()
    assert [path.name.rpartition("-")[2] for path in first.replica.iterdir()] == [identity(second)]
    assert first.words() == second.words() == {"invoice", "parcel"}
    with Archive(first.home) as archive, pytest.raises(SyncRefused, match="not synchronised"):
        archive.synchronizer().status(archive.store)


def test_result_files_travel_with_their_transcript(two: Two) -> None:
    """A large result that Claude Code stores in a file of its own arrives beside the transcript."""
    first, second = two
    results = first.transcripts / "talk-1" / "tool-results"
    results.mkdir(parents=True)
    (results / "call-7.txt").write_text("a large result")
    with (first.transcripts / "talk-1.jsonl").open("ab") as file:
        file.write(exchange("talk-1", "invoice").replace(b"no address", f"{results}/call-7.txt".encode()))
    first.ingest()
    sync(first, second)
    archived = foreign_path(identity(first), "claude-code/shop/talk-1/tool-results/call-7.txt")
    assert (second.home.archive / archived).read_text() == "a large result"


def test_memories_of_sessions_stay_here(two: Two) -> None:
    """Only memories that outlive their session travel."""
    first, second = two
    first.remember("The port is 80")
    with Archive(first.home) as archive:
        stored = archive.memories.get("mem_1")
        archive.memories.rescope(stored.id, "session:one")
    sync(first, second)
    assert not [record for record in records(first) if isinstance(record, MemoryRecord)]


def test_a_lost_or_cut_segment_is_sent_again(two: Two) -> None:
    """The owner notices a segment of another size, and sends everything as new versions, with what came since."""
    first, second = two
    first.write("talk-1", "invoice")
    first.sync()
    (segment,) = first.replica.rglob("*.seg")
    segment.write_bytes(segment.read_bytes()[:-5])
    sync(second)
    first.write("talk-1", "parcel")
    sync(first, second)
    assert second.words() == {"invoice", "parcel"}
    for path in first.replica.rglob(f"*{identity(first)}/*.seg"):
        path.unlink()
    first.write("talk-1", "letter")
    sync(first, second)
    assert second.words() == {"invoice", "parcel", "letter"}


def test_a_planted_manifest_does_not_disable_other_devices(two: Two) -> None:
    """A manifest that cannot be decrypted is named. The keys of the folder stay known, and its salt is not used."""
    first, second = two
    first.write("talk-1", "invoice")
    sync(first, second)
    (manifest,) = first.replica.glob(f"*{identity(first)}/{MANIFEST}")
    planted = first.replica / f"a-{32 * 'a'}"
    planted.mkdir()
    (planted / MANIFEST).write_bytes(manifest.read_bytes()[:-1])
    first.write("talk-1", "parcel")
    for machine in two:
        with Archive(machine.home) as archive:
            archive.synchronizer().exchange(str(machine.replica))
    assert second.words() == {"invoice", "parcel"}


def test_a_memory_of_a_newer_version_is_a_problem_of_its_device(two: Two) -> None:
    """What this version cannot read is named, and nothing else stops."""
    first, second = two
    first.write("talk-1", "invoice")
    first.remember("The port is 80")
    first.sync()
    shared = folder(first)
    name = shared.device_folders()[identity(first)]
    future = MemoryRecord("u", 1, identity(first), 0, 0, erased=False, memory={"content": "x"}, state="quantum")
    sealed = shared.seal(pack([future]), salt_of(shared.transport.read(f"{name}/{MANIFEST}") or b""), f"{name}/9")
    entry = SegmentEntry(9, sha256(sealed).digest(), len(sealed))
    shared.transport.write(f"{name}/{entry.name}", sealed)
    rewrite(first, lambda manifest: msgspec.structs.replace(manifest, revision=9, segments=(*manifest.segments, entry)))
    assert "Update Palaver" in problem(second)
    assert second.words() == {"invoice"}


def test_a_folder_that_is_not_mounted_cannot_be_left(two: Two) -> None:
    """Otherwise, the files of this machine would stay in the folder for ever."""
    first, _ = two
    first.write("talk-1", "invoice")
    first.sync()
    first.replica.rename(first.root / "elsewhere")
    with Archive(first.home) as archive, pytest.raises(SyncRefused, match="No such file"):
        archive.synchronizer().leave()
    (first.root / "elsewhere").rename(first.replica)
    assert not first.sync().has_sent
