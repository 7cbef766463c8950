"""The shared folder: files of all devices, each verified before it is used.

A device's folder contains the file `manifest`, which is signed, and segments. Everything else is ignored, such as the
conflict copies and temporary files of sync tools.
"""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final, Protocol

import msgspec

from ...archiver.store.sync_table import SyncDevice
from ...core.errors import SyncRefused
from ...core.runtime import replacing
from .keyring import SIGNATURE, Keyring, device_id, is_signed, salt_of
from .records import Manifest, Record, SegmentEntry, unpack

MANIFEST: Final = "manifest"
_FOLDER: Final = re.compile(r"([\w-]{1,40})-([0-9a-f]{32})")
_SEGMENT: Final = re.compile(r"\d{12}-[0-9a-f]{16}\.seg")


class Transport(Protocol):
    """Place for files by relative path. Any sync tool, or none, can carry it to other machines."""

    def folders(self) -> list[str]:
        """Return the names of the folders. Raises `SyncRefused` if the place cannot be reached."""
        ...

    def sizes(self, folder: str) -> dict[str, int]:
        """Return the size of each file in a folder, in bytes."""
        ...

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, or None if it does not exist."""
        ...

    def write(self, name: str, data: bytes) -> None:
        """Create or replace a file, completely or not at all."""
        ...

    def delete(self, name: str) -> None:
        """Delete a file if it exists."""
        ...


class LocalFolder:
    """Folder of the file system, such as one that Syncthing or Dropbox carries, or a mounted bucket."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def folders(self) -> list[str]:
        """Return the names of the folders. Raises `SyncRefused` if the root is missing."""
        try:
            return sorted(entry.name for entry in os.scandir(self._root) if entry.is_dir(follow_symlinks=False))
        except OSError as error:
            hint = "Connect or create the folder, then try again."
            raise SyncRefused(f"{self._root}: {error.strerror or error}", hint=hint) from None

    def sizes(self, folder: str) -> dict[str, int]:
        """Return the size of each file in a folder, in bytes."""
        try:
            entries = [entry for entry in os.scandir(self._root / folder) if entry.is_file(follow_symlinks=False)]
        except FileNotFoundError:
            return {}
        return {entry.name: entry.stat(follow_symlinks=False).st_size for entry in entries}

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, or None if it does not exist."""
        try:
            return (self._root / name).read_bytes()
        except (FileNotFoundError, IsADirectoryError):
            return None

    def write(self, name: str, data: bytes) -> None:
        """Create or replace a file, completely or not at all."""
        path = self._root / name
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with replacing(path) as file:
            file.write(data)

    def delete(self, name: str) -> None:
        """Delete a file if it exists, and its folder with the last file."""
        path = self._root / name
        path.unlink(missing_ok=True)
        with suppress(OSError):
            path.parent.rmdir()


def transport_of(place: str, seconds: float | None = None) -> Transport:
    """Return the transport for a folder, or for a bucket such as `s3://bucket/prefix`.

    `seconds` limits the repetitions of a request to a bucket.

    Raises:
        SyncRefused: The library for buckets is not installed.
    """
    if "://" not in place:
        return LocalFolder(Path(place))
    from .bucket import Bucket

    return Bucket(place, seconds)


class SharedFolder:
    """Manifests and segments of all devices."""

    def __init__(self, transport: Transport, keyring: Keyring) -> None:
        self.transport, self._keyring = transport, keyring

    def device_folders(self) -> dict[str, str]:
        """Return the folder of each device by the ID of the device."""
        matches = (_FOLDER.fullmatch(name) for name in self.transport.folders())
        return {match[2]: match[0] for match in matches if match}

    def salts(self) -> list[bytes]:
        """Return the salts of the devices in the order of their folders. The first one is used for a new device.

        Only signed manifests count: somebody without the passphrase cannot choose the salt.
        """
        salts = list[bytes]()
        for folder in self.device_folders().values():
            sealed = self.transport.read(f"{folder}/{MANIFEST}") or b""
            with suppress(SyncRefused):
                self.decode(sealed, folder)
                salts.append(salt_of(sealed))
        return salts

    def seal(self, data: bytes, salt: bytes, path: str) -> bytes:
        """Encrypt the content of a file for its path."""
        return self._keyring.seal(data, salt, path.encode())

    def decode(self, sealed: bytes, folder: str) -> tuple[Manifest, bytes]:
        """Return a manifest, and the hash of its content.

        Raises:
            SyncRefused: The manifest is incomplete, or its device did not sign it.
        """
        content = self._keyring.open(sealed, f"{folder}/{MANIFEST}".encode())
        signature, body = content[:SIGNATURE], content[SIGNATURE:]
        try:
            manifest = msgspec.msgpack.decode(body, type=Manifest)
        except msgspec.DecodeError:
            raise SyncRefused("has an unknown format", hint="Update Palaver on this machine.") from None
        if device_id(manifest.public) != folder.rpartition("-")[2] or not is_signed(body, signature, manifest.public):
            raise SyncRefused("is not signed by its device", hint="Somebody else wrote it. Delete its folder.")
        return manifest, sha256(body).digest()

    def manifest(self, folder: str, before: SyncDevice | None = None) -> tuple[Manifest, bytes] | None:
        """Return the manifest of a device with the hash of its content, or None if it has not arrived yet.

        Raises:
            SyncRefused: The manifest is incomplete, forged, or older than the one that was accepted before.
        """
        sealed = self.transport.read(f"{folder}/{MANIFEST}")
        if sealed is None:
            return None
        manifest, digest = self.decode(sealed, folder)
        if before and manifest.revision < before.revision:
            raise SyncRefused("is older than what this machine has already read", hint="Wait for the sync tool.")
        if before and manifest.revision == before.revision and digest != before.digest:
            hint = "Two machines use one key. Run `palaver sync --leave` on one of them, then `palaver sync DIR`."
            raise SyncRefused("has two versions with the same number", hint=hint)
        return manifest, digest

    def records(self, folder: str, entry: SegmentEntry) -> list[Record] | None:
        """Return the records of a segment, or None if it has not arrived completely.

        Raises:
            SyncRefused: The segment has the listed hash, but its content cannot be used.
        """
        sealed = self.transport.read(f"{folder}/{entry.name}")
        if sealed is None or sha256(sealed).digest() != entry.digest:
            return None
        return unpack(self._keyring.open(sealed, f"{folder}/{entry.number}".encode()))

    def segments(self, folder: str) -> dict[str, int]:
        """Return the size of each segment that exists in a folder, by name."""
        return {name: size for name, size in self.transport.sizes(folder).items() if _SEGMENT.fullmatch(name)}


def behind(manifest: Manifest, applied: int) -> int:
    """Count the segments of a manifest that were not read yet."""
    return sum(entry.number > applied for entry in manifest.segments)


def unread_by(reads: Mapping[str, int], device: str, last: int) -> bool:
    """Return whether a device has yet to read the segment `last` of another device."""
    return reads.get(device, 0) < last
