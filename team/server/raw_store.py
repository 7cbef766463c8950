"""Store of full copies: a folder or a bucket with one encrypted object for each copy.

The key of a team is derived from the key file and the ID of the team. The name of an object begins with the ID of its
team and the time at which it was written, and is not derived from the content.
"""

import logging
import os
import re
import secrets
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeVar
from uuid import UUID

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from ...core.errors import ConfigInvalid, SyncRefused, TeamRefused
from ...observe.sync.keyring import SaltedKeys
from ...observe.sync.shared_folder import Transport, transport_of

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_CHECK: Final = "key"
"""Name of the object that shows whether a key is that of the store."""
_NO_TEAM: Final = UUID(int=0)
_NAME: Final = re.compile(r"([0-9a-f]{32})-([0-9a-f]{1,12})-[0-9a-f]{32}(?:\.new)?")
"""Name of an object, or of the temporary file with which a killed server began one."""
_KEY_BYTES: Final = 32
_MOST: Final = 1 << 28
"""Maximum bytes of a decompressed copy."""
_REQUESTS: Final = 8
"""Number of requests to a bucket at the same time."""
_SECONDS: Final = 10.0
"""Seconds after which a failed request to a bucket is not repeated."""
_WRITING_SECONDS: Final = 3600
"""Age in seconds at which an object without an item is no copy that is being written."""
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Unlisted(NamedTuple):
    """Names of objects without an item. The `recent` ones may be copies that are being written."""

    old: list[str]
    recent: list[str]


class TeamKeys(SaltedKeys):
    """Encryption with a key for each team."""

    def __init__(self, secret: bytes) -> None:
        """Derive the keys from a random secret."""
        super().__init__({})
        self._secret = secret

    def _derived(self, salt: bytes) -> bytes:
        return HKDF(algorithm=SHA256(), length=_KEY_BYTES, salt=salt, info=b"palaver full copies").derive(self._secret)


class ObjectFolder:
    """Objects of the store, which can be listed and deleted without the key."""

    def __init__(self, place: str) -> None:
        """Prepare access to a folder, or to a bucket such as `s3://bucket/prefix`.

        Raises:
            SyncRefused: The URL cannot be used, or the library for buckets is not installed.
        """
        self.place = place
        self.transport: Transport = transport_of(place, seconds=_SECONDS)

    def check(self) -> bytes | None:
        """Return the object that shows whether a key is that of the store, or None if there is no store."""
        return self.transport.read(_CHECK)

    def delete(self, names: Sequence[str]) -> None:
        """Delete objects. Missing ones are ignored. Raises `SyncRefused` or `OSError`."""
        _in_parallel(self.transport.delete, names)

    def unlisted(self, teams: Iterable[UUID], listed: Callable[[], set[str]]) -> Unlisted:
        """Return the names of objects of these teams that are not listed.

        `listed` is called after the store was read, so that it contains all that was written completely before.
        """
        own, stored = {team.hex for team in teams}, [*self.transport.sizes("")]
        used, limit = listed(), time.time() - _WRITING_SECONDS
        unlisted = Unlisted([], [])
        for match in filter(None, map(_NAME.fullmatch, stored)):
            if match[1] in own and match[0] not in used:
                (unlisted.old if int(match[2], 16) < limit else unlisted.recent).append(match[0])
        return unlisted


class RawStore:
    """Store of full copies with its key."""

    def __init__(self, folder: ObjectFolder, secret: bytes) -> None:
        self.folder, self._keys = folder, TeamKeys(secret)

    @classmethod
    def opened(cls, place: str, key_file: Path) -> "tuple[RawStore, bool]":
        """Return the store at a place, and whether its key was created.

        Raises:
            ConfigInvalid: The key is missing or is another one, or the place cannot be used, or the key exists and the
                store does not: its place may be mistyped, or not mounted.
        """
        try:
            folder = ObjectFolder(place)
            if "://" not in place:
                Path(place).mkdir(mode=0o700, parents=True, exist_ok=True)
            check = folder.check()
            is_new = check is None
            if is_new and key_file.exists():
                raise ConfigInvalid(
                    f"No full copies in {place}, but {key_file} is the key of a store",
                    hint="Check --raw-store. For a new store, give the path of a new key.",
                )
            secret = _new_secret(key_file) if is_new else _secret(key_file, place)
            store = cls(folder, secret)
            if check is None:
                sealed = store._keys.seal(b"", _NO_TEAM.bytes, _CHECK.encode())
                folder.transport.write(_CHECK, sealed)
        except OSError as error:
            raise ConfigInvalid(
                f"The store of full copies cannot be used: {error.filename or place}: {error.strerror or error}",
                hint="Give another --raw-store or --raw-key.",
            ) from None
        except SyncRefused as error:
            raise ConfigInvalid(f"The store of full copies cannot be used: {error}", hint=error.hint) from None
        try:
            if check is not None:
                store._keys.open(check, _CHECK.encode())
        except SyncRefused:
            raise ConfigInvalid(
                f"{key_file} is not the key of {place}", hint="Give the key file with which this store was created."
            ) from None
        return store, is_new

    def put(self, team: UUID, bodies: Sequence[bytes]) -> list[str]:
        """Encrypt and write copies, and return the names of their objects.

        Raises:
            TeamRefused: The store does not accept an object.
        """
        start = f"{team.hex}-{int(time.time()):x}"

        def write(body: bytes) -> str:
            name = f"{start}-{secrets.token_hex(16)}"
            self.folder.transport.write(name, self._keys.seal(zstd.compress(body), team.bytes, name.encode()))
            return name

        try:
            return _in_parallel(write, bodies)
        except (SyncRefused, OSError) as error:
            logging.getLogger(__name__).warning("A full copy cannot be stored: %s", error)
            raise TeamRefused("The store of full copies does not answer", hint="Try again later.", status=503) from None

    def get(self, name: str) -> bytes | None:
        """Return a copy, or None if it is missing or damaged. The reason is in the log.

        Raises:
            SyncRefused: The bucket does not answer.
            OSError: The folder cannot be read.
        """
        sealed = self.folder.transport.read(name)
        try:
            content = self._keys.open(sealed or b"", name.encode())
            return zstd.ZstdDecompressor().decompress(content, _MOST)
        except (SyncRefused, zstd.ZstdError) as error:
            logging.getLogger(__name__).warning("The full copy %s cannot be read: %s", name, error)
            return None


def _in_parallel(work: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
    """Return the results of a function for each item."""
    from concurrent.futures import ThreadPoolExecutor

    if len(items) <= 1:
        return [*map(work, items)]
    with ThreadPoolExecutor(min(_REQUESTS, len(items))) as threads:
        return [*threads.map(work, items)]


def _secret(path: Path, place: str) -> bytes:
    try:
        if os.name == "posix":
            _check_private(path)
        secret = bytes.fromhex(path.read_text("ascii").strip())
    except FileNotFoundError:
        raise ConfigInvalid(
            f"{path} is missing, and the full copies in {place} were encrypted with this key",
            hint="Restore the file from its backup, or give an empty --raw-store.",
        ) from None
    except (UnicodeDecodeError, ValueError):
        secret = b""
    if len(secret) != _KEY_BYTES:
        raise ConfigInvalid(f"{path} contains no key", hint="Give the key file, or the name of a new file.")
    return secret


def _check_private(path: Path) -> None:
    """Refuse an own key file that others can use, as ssh does. Whoever provides a file of another owner decides.

    Raises:
        ConfigInvalid: Other users have rights on the file.
        OSError: The file cannot be read.
    """
    status = path.stat()
    if status.st_uid == os.geteuid() and status.st_mode & 0o077:
        raise ConfigInvalid(f"Other users can use the key in {path}", hint=f"Run: chmod 600 {shlex.quote(str(path))}")


def _new_secret(path: Path) -> bytes:
    """Create a key file that only its owner can read, and return its content. Raises `OSError`."""
    secret = os.urandom(_KEY_BYTES)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{secret.hex()}\n")
        file.flush()
        os.fsync(file.fileno())
    return secret
