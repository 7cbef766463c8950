"""Synchronisation of one archive with the other devices of a shared folder: `Synchronizer.run`."""

import re
import shutil
import socket
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec
import orjson
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ...archiver.copies.raw_copy import RawArchive
from ...archiver.deletion.suppression import SuppressionList
from ...archiver.ingest.ingest import Ingest
from ...archiver.ingest.recovery import Recovery
from ...archiver.reading.parsing import Exclusion
from ...archiver.reading.source_reader import IngestFilters
from ...archiver.redaction import Redactor
from ...archiver.store import ARCHIVER, Store
from ...archiver.store.sync_table import Sent, SyncDevice
from ...core.config import Config
from ...core.errors import SyncRefused
from ...core.home import Home
from ...core.runtime import Reporter, replacing, silent
from ...core.sync_report import DeviceStatus, SyncReport
from ..deletion.deleter import Deleter
from ..pipeline import Pipeline
from .inbox import DeletionFollower, Inbox
from .keyring import DeviceKey, Keyring, device_id, new_salt, salt_of
from .memory_sync import MemorySync
from .outbox import Change, Outbox
from .records import Manifest, Record, SegmentEntry, key_of, pack
from .shared_folder import MANIFEST, SharedFolder, behind, transport_of, unread_by

_FOLDER: Final = "sync"
_KEY: Final = "device.key"
_KEYS: Final = "folder.keys"
_PLACE: Final = "folder.json"
_SEGMENT: Final = 4 << 20
"""Bytes of records after which a segment is full."""
_LEASE_SECONDS: Final = 30.0
"""Seconds to wait for another ingest process."""
_INVALID: Final = re.compile(r"[^A-Za-z0-9-]+")


class Synchronizer:
    """Synchronisation of one archive. Each run sends what changed here, and reads what other devices sent.

    A run can be interrupted at any moment. The next run continues.
    """

    def __init__(
        self,
        home: Home,
        config: Config,
        open_store: Callable[[], Store],
        passphrase: str = "",
    ) -> None:
        """Prepare runs.

        Args:
            home: Folder with the archive.
            config: Settings.
            open_store: Function that opens the database, and creates it if it is missing.
            passphrase: Passphrase of the shared folder. The keys that were derived from it before are in the home.
        """
        self._home, self._config, self._open_store = home, config, open_store
        self._folder = home.root / _FOLDER
        self._problems = dict[str, str]()
        """Reason why a device was not read in this run, by its ID."""
        self._keyring = Keyring(self._folder / _KEYS, passphrase)

    @property
    def place(self) -> str:
        """The shared folder of the last run. Empty if there was none."""
        try:
            place: str = orjson.loads((self._folder / _PLACE).read_bytes())["folder"]
        except (OSError, ValueError, KeyError, TypeError):
            return ""
        return place

    @property
    def needs_passphrase(self) -> bool:
        """True if no key is known for any device in the shared folder."""
        return self._keyring.is_empty

    def has_devices(self, place: str) -> bool:
        """Return whether any machine uses a folder. Raises `SyncRefused`."""
        return bool(SharedFolder(transport_of(place), self._keyring).device_folders())

    def run(self, place: str, report: Reporter = silent) -> SyncReport:
        """Send and receive, then extract and index what was received. Raises the errors of `exchange`."""
        result = self.exchange(place, report)
        with Pipeline(self._home, self._config.model, self._config.exclude) as pipeline:
            pipeline.run((), report)
        return result

    def exchange(self, place: str, report: Reporter = silent) -> SyncReport:
        """Send what changed here, and store what other devices sent.

        Raises:
            SyncRefused: The folder is missing, or the passphrase is not that of the folder.
            LeaseHeld: Another process is ingesting.
        """
        folder = SharedFolder(transport_of(place), self._keyring)
        self._check_passphrase(folder)
        with self._open_store() as store:
            with store.leases.hold(ARCHIVER, _LEASE_SECONDS):
                own = _OwnDevice(store, folder, self._folder)
                result = SyncReport(place, own.name)
                self._remember(place)
                memories = MemorySync(store, own.id)
                with store.transaction():
                    memories.scan()
                self._receive(store, folder, own, memories, result, report)
            with Deleter(self._home, self._config.model, self._config.exclude) as deleter:
                result.deletions = DeletionFollower(self._home, store, deleter, own.id).run()
            with store.leases.hold(ARCHIVER, _LEASE_SECONDS):
                self._send(store, own, memories, result, report)
            self._keyring.save()
            result.devices = self._statuses(store, folder, own)
        return result

    def status(self, store: Store) -> SyncReport:
        """Return what is behind and what waits, without changing anything. Raises `SyncRefused`."""
        folder = SharedFolder(transport_of(self._require_place()), self._keyring)
        own = _OwnDevice(store, folder, self._folder, create=False)
        return SyncReport(self.place, own.name, devices=self._statuses(store, folder, own))

    def leave(self) -> str:
        """Delete this device's files from the shared folder, and forget the folder. Return the folder.

        What was received stays here, and other devices keep what they received. Raises `SyncRefused`.
        """
        place = self._require_place()
        folder = SharedFolder(transport_of(place), self._keyring)
        folder.device_folders()  # A folder that is not mounted cannot be left.
        with self._open_store() as store, store.leases.hold(ARCHIVER, _LEASE_SECONDS):
            _OwnDevice(store, folder, self._folder, create=False).delete_files()
            with store.transaction():
                store.sync.leave()
        shutil.rmtree(self._folder, ignore_errors=True)
        return place

    def _require_place(self) -> str:
        if not self.place:
            raise SyncRefused("This archive is not synchronised", hint="Run `palaver sync DIR` with a shared folder.")
        return self.place

    def _check_passphrase(self, folder: SharedFolder) -> None:
        """Raise `SyncRefused` if a passphrase is missing, or is not that of the devices in the folder.

        If a key is known already, an incomplete manifest is no reason to stop.
        """
        if self._keyring.is_empty:
            raise SyncRefused("The folder needs a passphrase", hint="Run `palaver sync DIR` to enter one.")
        refusals = list[SyncRefused]()
        for name in folder.device_folders().values() if self._keyring.is_new else ():
            try:
                if folder.manifest(name) is not None:
                    return
            except SyncRefused as refusal:
                refusals.append(refusal)
        if refusals:
            hint = "Enter the passphrase of the other devices, or wait until the sync tool has brought their files."
            problem = "Wrong passphrase, or incomplete files: no manifest in the folder can be decrypted"
            raise SyncRefused(problem, hint=hint)

    def _remember(self, place: str) -> None:
        self._keyring.save()  # The folder of the home may not exist yet.
        with replacing(self._folder / _PLACE) as file:
            file.write(orjson.dumps({"folder": place}))

    def _receive(
        self,
        store: Store,
        folder: SharedFolder,
        own: "_OwnDevice",
        memories: MemorySync,
        result: SyncReport,
        report: Reporter,
    ) -> None:
        """Read the segments that have arrived, and parse the copies in them."""
        raw = RawArchive(self._home.archive)
        inbox = Inbox(store, raw, self._folder, memories)
        for device, name in folder.device_folders().items():
            if device != own.id:
                self._read_device(store, folder, inbox, device, name)
        result.received_copies, result.received_memories = inbox.changed["copies"], inbox.changed["memories"]
        exclusion = Exclusion(self._config.exclude)
        Ingest(store, raw, exclusion).run((), partial(report, "Reading"), budget=None)
        key = self._home.key()
        filters = IngestFilters(self._home.root, Redactor(key), exclusion, SuppressionList(store, key))
        Recovery(store, raw, filters).run(partial(report, "Reading"))

    def _read_device(self, store: Store, folder: SharedFolder, inbox: Inbox, device: str, name: str) -> None:
        before = store.sync.devices().get(device, SyncDevice(device, name.rpartition("-")[0], 0, b"", 0))
        try:
            accepted = folder.manifest(name, before)
            if accepted is None:
                return
            manifest, digest = accepted
            with store.transaction():
                store.sync.save_device(before._replace(name=manifest.name, revision=manifest.revision, digest=digest))
            for entry in manifest.segments:
                if entry.number > before.applied:
                    records = folder.records(name, entry)
                    if records is None:
                        return  # The sync tool has not brought it yet.
                    inbox.read(device, records, entry.number)
        except SyncRefused as refusal:
            self._problems[device] = refusal.full_message
        except (msgspec.ValidationError, ValueError) as error:
            self._problems[device] = f"has unknown content ({error}). Update Palaver on this machine."
        except OSError as error:
            self._problems[device] = f"cannot be stored: {error}"

    def _send(
        self, store: Store, own: "_OwnDevice", memories: MemorySync, result: SyncReport, report: Reporter
    ) -> None:
        outbox = Outbox(store, RawArchive(self._home.archive), own.id)
        read = {device.id: device.applied for device in store.sync.devices().values() if device.id != own.id}
        report("Sending", 0, 1)
        counts = own.send(outbox.changes(), memories.changes(), read)
        report("Sending", 1, 1)
        result.sent_copies, result.sent_memories, result.sent_deletions, result.sent_bytes = counts

    def _statuses(self, store: Store, folder: SharedFolder, own: "_OwnDevice") -> list[DeviceStatus]:
        deletions = [max(sent.segments, default=0) for sent in store.sync.sent("deletion:").values()]
        statuses = list[DeviceStatus]()
        for device, name in folder.device_folders().items():
            known = store.sync.devices().get(device)
            if device == own.id:
                continue
            try:
                accepted = folder.manifest(name, known)
            except SyncRefused as refusal:
                problem = f"{name}/{MANIFEST} {refusal.full_message}"
                statuses.append(
                    DeviceStatus(device[:8], known.name if known else name.rpartition("-")[0], problem=problem)
                )
                continue
            if accepted is None:
                statuses.append(
                    DeviceStatus(device[:8], name.rpartition("-")[0], problem="its manifest has not arrived")
                )
                continue
            manifest, applied = accepted[0], known.applied if known else 0
            statuses.append(
                DeviceStatus(
                    device[:8],
                    manifest.name,
                    behind(manifest, applied),
                    unread_by(manifest.read, own.id, own.last),
                    unread_by(manifest.read, own.id, max(deletions, default=0)),
                    self._problems.get(device, ""),
                )
            )
        return statuses


class _OwnDevice:
    """This device: its identity, and its files in the shared folder."""

    def __init__(
        self,
        store: Store,
        folder: SharedFolder,
        home: Path,
        *,
        create: bool = True,
    ) -> None:
        self._store, self._folder, self._copy = store, folder, home / MANIFEST
        self._key_file = DeviceKey(home / _KEY)
        key = self._key_file.load()
        if key is None and not create:
            raise SyncRefused("This machine has no key for the shared folder", hint="Run `palaver sync DIR` again.")
        self.manifest: Manifest | None = None
        self._adopt(key or self._key_file.create())
        if create and not self._restore_manifest():
            # The home was restored from a backup, so other devices know more of this device than it does itself.
            with store.transaction():
                store.sync.reset()
            self._adopt(self._key_file.create())

    def _adopt(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self._public = key.public_key().public_bytes_raw()
        self.id = device_id(self._public)
        known = self._store.sync.devices().get(self.id)
        self.name = known.name if known else _INVALID.sub("-", socket.gethostname()).strip("-")[:40] or "device"
        self._state = known or SyncDevice(self.id, self.name, 0, b"", 0)
        self._path = f"{self.name}-{self.id}"

    @property
    def last(self) -> int:
        """Number of the last segment."""
        return self._state.applied

    def _restore_manifest(self) -> bool:
        """Restore the manifest in the shared folder if it was lost. Return False if it is newer than this archive."""
        sealed = self._folder.transport.read(f"{self._path}/{MANIFEST}")
        local = self._local_manifest()
        if self._state.revision == 0:
            return sealed is None
        if local is None:
            return False
        self.manifest = local[0]
        if sealed == local[1]:
            self._resend_lost_segments()
            return True
        try:
            accepted = self._folder.manifest(self._path, self._state) if sealed else None
        except SyncRefused:
            accepted = None  # An older or damaged file is replaced.
        if accepted is not None and accepted[0].revision > self._state.revision:
            return False
        self._folder.transport.write(f"{self._path}/{MANIFEST}", local[1])
        self._resend_lost_segments()
        return True

    def _local_manifest(self) -> tuple[Manifest, bytes] | None:
        """Return the last manifest that the database knows, with its encrypted file."""
        for path in (self._copy.with_name(f"{MANIFEST}.next"), self._copy):
            try:
                sealed = path.read_bytes()
                manifest, digest = self._folder.decode(sealed, self._path)
            except (OSError, SyncRefused):
                continue
            if digest == self._state.digest:
                path.replace(self._copy)
                return manifest, sealed
        return None

    def _resend_lost_segments(self) -> None:
        """Let everything be sent again if a segment in the shared folder was lost or cut."""
        sizes = self._folder.segments(self._path)
        if self.manifest is not None and any(sizes.get(entry.name) != entry.size for entry in self.manifest.segments):
            self.manifest = msgspec.structs.replace(self.manifest, segments=())
            with self._store.transaction():
                self._store.sync.reset()

    def send(
        self, changes: Iterator[Change], memories: Iterator[Change], read: dict[str, int]
    ) -> tuple[int, int, int, int]:
        """Write segments with the changes, and a manifest. Return numbers of copies, memories, deletions and bytes."""
        writer = _SegmentWriter(self._folder, self._path, self._salt, self._state.applied)
        entries = {entry.number: entry for entry in (self.manifest.segments if self.manifest else ())}
        before = self._store.sync.sent("")
        sent, stale, counts = dict[str, Sent](), dict[str, Sent](), dict[str, int]()
        for change in (*changes, *memories):
            kind = change.key.partition(":")[0]
            numbers = writer.add(change)
            counts[kind] = counts.get(kind, 0) + bool(numbers)
            earlier = before.get(change.key)
            if change.replaces and earlier is not None:
                stale[change.key] = earlier
            kept = earlier.segments if earlier is not None and not change.replaces else ()
            sent[change.key] = change.sent._replace(segments=(*kept, *numbers))
        entries |= writer.finish()
        is_lost = False
        for number in sorted({number for earlier in stale.values() for number in earlier.segments} & entries.keys()):
            entry = entries.pop(number)
            records = self._folder.records(self._path, entry)
            is_lost = is_lost or records is None
            others = [record for record in records or () if key_of(record) not in stale]
            if others:
                entries[number] = writer.write(number, others)
        manifest = self._next_manifest(tuple(entries[number] for number in sorted(entries)), read)
        if manifest is not None:
            self._publish(manifest, writer.last, sent)
        if is_lost:
            with self._store.transaction():
                self._store.sync.reset()
        return counts.get("copy", 0), counts.get("memory", 0), counts.get("deletion", 0), writer.size

    def _next_manifest(self, entries: tuple[SegmentEntry, ...], read: dict[str, int]) -> Manifest | None:
        """Return the new manifest, or None if nothing changed."""
        before = self.manifest
        if before is not None and (before.segments, before.read) == (entries, read) and self._state.revision:
            return None
        return Manifest(self._state.revision + 1, self.name, self._public, entries, read)

    def _publish(self, manifest: Manifest, last: int, sent: dict[str, Sent]) -> None:
        """Store the manifest here, then in the database, then in the shared folder. A killed run can be repeated."""
        body = msgspec.msgpack.encode(manifest)
        sealed = self._folder.seal(self._key.sign(body) + body, self._salt, f"{self._path}/{MANIFEST}")
        following = self._copy.with_name(f"{MANIFEST}.next")
        with replacing(following) as file:
            file.write(sealed)
        self._state = SyncDevice(self.id, self.name, manifest.revision, sha256(body).digest(), last)
        with self._store.transaction():
            for key, state in sent.items():
                if state.size < 0:
                    self._store.sync.drop_sent([key])
                else:
                    self._store.sync.save_sent(key, state)
            self._store.sync.save_device(self._state)
        following.replace(self._copy)
        self._folder.transport.write(f"{self._path}/{MANIFEST}", sealed)
        self.manifest = manifest
        listed = {entry.name for entry in manifest.segments}
        for name in self._folder.segments(self._path):
            if name not in listed:
                self._folder.transport.delete(f"{self._path}/{name}")

    @cached_property
    def _salt(self) -> bytes:
        """Salt of this device: that of the first device in the folder, so that all share one key."""
        own = self._copy.read_bytes() if self._copy.exists() else b""
        salts = [salt_of(own)] if salt_of(own) else self._folder.salts()
        return salts[0] if salts else new_salt()

    def delete_files(self) -> None:
        """Delete the files of this device in the shared folder."""
        for name in (MANIFEST, *self._folder.segments(self._path)):
            self._folder.transport.delete(f"{self._path}/{name}")


class _SegmentWriter:
    """Writer of numbered segments of one device."""

    def __init__(self, folder: SharedFolder, path: str, salt: bytes, last: int) -> None:
        self._folder, self._path, self._salt, self.last = folder, path, salt, last
        self._records, self._waiting = list[Record](), 0
        self._entries = dict[int, SegmentEntry]()
        self.size = 0
        """Bytes written so far."""

    def add(self, change: Change) -> tuple[int, ...]:
        """Add the records of a change. Return the numbers of their segments."""
        numbers = dict[int, None]()
        for record in change.records:
            numbers[self.last + 1] = None
            self._records.append(record)
            self._waiting += len(getattr(record, "data", b"")) + 1_000
            if self._waiting >= _SEGMENT:
                self._flush()
        return tuple(numbers)

    def finish(self) -> dict[int, SegmentEntry]:
        """Write the last segment. Return all entries by number."""
        if self._records:
            self._flush()
        return self._entries

    def write(self, number: int, records: list[Record]) -> SegmentEntry:
        """Write a segment, and return its entry."""
        sealed = self._folder.seal(pack(records), self._salt, f"{self._path}/{number}")
        entry = SegmentEntry(number, sha256(sealed).digest(), len(sealed))
        self._folder.transport.write(f"{self._path}/{entry.name}", sealed)
        self.size += len(sealed)
        return entry

    def _flush(self) -> None:
        self.last += 1
        self._entries[self.last] = self.write(self.last, self._records)
        self._records, self._waiting = [], 0
