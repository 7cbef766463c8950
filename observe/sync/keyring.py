"""Keys of a device: its signature, and the encryption with the passphrase of the shared folder."""

import os
from abc import ABC, abstractmethod
from hashlib import sha256
from pathlib import Path
from typing import Final

import orjson
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from ...core.errors import SyncRefused
from ...core.runtime import replacing

_MAGIC: Final = b"palaver1"
_SALT: Final = 16
_NONCE: Final = 12
_HEADER: Final = len(_MAGIC) + _SALT + _NONCE
COST: Final = 1 << 17
"""Cost of deriving a key with scrypt: about half a second, and 128 MB of memory."""
SIGNATURE: Final = 64
"""Bytes of a signature."""


def device_id(public: bytes) -> str:
    """Return the ID of the device with this public key. Nobody else can sign under this ID."""
    return sha256(public).hexdigest()[:32]


def is_signed(data: bytes, signature: bytes, public: bytes) -> bool:
    """Return whether the holder of a public key signed the data."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, data)
    except (InvalidSignature, ValueError):
        return False
    return True


class DeviceKey:
    """Private key of this device, in a file that only its owner can read.

    The file records its own inode. In a copy of the home, the inode differs, so two machines never write as one device.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> Ed25519PrivateKey | None:
        """Return the key, or None if the file is missing, damaged, or a copy of another machine's file."""
        try:
            content = orjson.loads(self._path.read_bytes())
            if content["inode"] != self._path.stat().st_ino:
                return None
            return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(content["key"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def create(self) -> Ed25519PrivateKey:
        """Replace the file with a new key, and return the key. Raises `OSError`."""
        key = Ed25519PrivateKey.generate()
        self.store(key)
        return key

    def store(self, key: Ed25519PrivateKey) -> None:
        """Replace the file with a key. Raises `OSError`."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            content = {"inode": os.fstat(file.fileno()).st_ino, "key": key.private_bytes_raw().hex()}
            file.write(orjson.dumps(content))
            file.flush()
            os.fsync(file.fileno())


class SaltedKeys(ABC):
    """Encryption with keys that belong to salts. Subclasses derive the key of a salt."""

    def __init__(self, keys: dict[bytes, bytes]) -> None:
        """Encrypt with these keys by salt, and with those that are derived later."""
        self._keys = keys

    def seal(self, data: bytes, salt: bytes, context: bytes) -> bytes:
        """Encrypt data. Only the same `context`, such as the name of the file, decrypts it."""
        nonce = os.urandom(_NONCE)
        return _MAGIC + salt + nonce + ChaCha20Poly1305(self._key(salt)).encrypt(nonce, data, context)

    def open(self, sealed: bytes, context: bytes) -> bytes:
        """Decrypt data.

        Raises:
            SyncRefused: The data is incomplete, was changed, or was encrypted with another key.
        """
        salt, nonce = sealed[len(_MAGIC) : len(_MAGIC) + _SALT], sealed[_HEADER - _NONCE : _HEADER]
        if not sealed.startswith(_MAGIC) or len(sealed) < _HEADER:
            raise SyncRefused("is incomplete")
        was_known = salt in self._keys
        try:
            return ChaCha20Poly1305(self._key(salt)).decrypt(nonce, sealed[_HEADER:], context)
        except InvalidTag:
            if not was_known:
                self._keys.pop(salt, None)
            raise SyncRefused("has another passphrase, or is incomplete") from None

    def _key(self, salt: bytes) -> bytes:
        key = self._keys.get(salt)
        if key is None:
            key = self._keys[salt] = self._derived(salt)
        return key

    @abstractmethod
    def _derived(self, salt: bytes) -> bytes:
        """Return the key of 32 bytes that belongs to a salt."""


class Keyring(SaltedKeys):
    """Encryption keys of a shared folder, one for each salt. They are derived from the passphrase and kept in the home.

    The passphrase itself is not stored.
    """

    def __init__(self, path: Path, passphrase: str = "") -> None:
        """Read the known keys. Without `passphrase`, no other key can be derived."""
        self._path, self._passphrase = path, passphrase
        try:
            keys: dict[str, str] = orjson.loads(path.read_bytes())
            super().__init__({bytes.fromhex(salt): bytes.fromhex(key) for salt, key in keys.items()})
        except (OSError, ValueError, AttributeError):
            super().__init__({})

        self.is_new = not self._keys
        """True if no key was known at the start."""

    @property
    def is_empty(self) -> bool:
        """True if there is neither a key nor a passphrase."""
        return not self._keys and not self._passphrase

    def save(self) -> None:
        """Store the keys that were used. Raises `OSError`."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with replacing(self._path) as file:
            file.write(orjson.dumps({salt.hex(): key.hex() for salt, key in self._keys.items()}))

    def _derived(self, salt: bytes) -> bytes:
        if not self._passphrase:
            raise SyncRefused("needs the passphrase", hint="Run `palaver sync DIR` to enter the passphrase.")
        derived = Scrypt(salt=salt, length=32, n=COST, r=8, p=1)
        return derived.derive(self._passphrase.encode("utf-8", "surrogatepass"))


def salt_of(sealed: bytes) -> bytes:
    """Return the salt with which a file was encrypted, or an empty value for a file of another kind."""
    return sealed[len(_MAGIC) : len(_MAGIC) + _SALT] if sealed.startswith(_MAGIC) and len(sealed) >= _HEADER else b""


def new_salt() -> bytes:
    """Return a random salt."""
    return os.urandom(_SALT)
