"""Paths in the database. A part of a path that contains a secret is encrypted with the key of the archive.

The path of a file must be known exactly, to find the file again. Placeholders would not allow this. Equal parts are
encrypted equally, so that rows are found by path, and by the folder above.
"""

import base64
import hmac
import os
from collections.abc import Iterator
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Final

from ...core.home import Home
from ..redaction import VERSION, Redactor
from ..redaction.quick import name_may_contain_secret
from .database import Database

_MARK: Final = b"\x01sealed-"
"""Beginning of an encrypted part. File names begin with a control character only in attacks."""
_NONCE: Final = 16
_SEPARATOR: Final = os.sep.encode()
_COLUMNS: Final = (
    ("source", "path"),
    ("problem", "path"),
    ("container", "path"),
    ("document", "path"),
    ("former_path", "path"),
    ("waiting_file", "path"),
    ("waiting_file", "root"),
    ("watched_folder", "path"),
)
"""Columns with paths."""


class PathSeal:
    """Conversion of paths to and from the bytes in the database."""

    def __init__(self, database: Database) -> None:
        self._db, self._known_key = database, b""

    def stored(self, path: Path) -> bytes:
        """Return the bytes that stand for a path in the database."""
        value = os.fsencode(path)
        if not name_may_contain_secret(str(path)) or self._redacted(str(path)) == str(path) or not self._key:
            return value
        parts = value.split(_SEPARATOR)
        secret = [bool(part) and self._redacted(os.fsdecode(part)) != os.fsdecode(part) for part in parts]
        return _SEPARATOR.join(
            self._sealed(part) if hit or (not any(secret) and part) else part
            for part, hit in zip(parts, secret, strict=True)
        )

    def path(self, value: bytes) -> Path:
        """Return the path that these bytes stand for. Without the key, an encrypted part stays encrypted."""
        if _MARK in value and self._key:
            value = _SEPARATOR.join(
                self._opened(part) if part.startswith(_MARK) else part for part in value.split(_SEPARATOR)
            )
        return Path(os.fsdecode(value))

    def is_outdated(self) -> bool:
        """Return whether older rules were applied to the stored names."""
        return bool(self._key) and self._db.one("SELECT rules FROM checked_names") != (VERSION,)

    def renew(self) -> None:
        """Apply the current rules to stored names, inside a transaction."""
        for table, column in _COLUMNS:
            for (value,) in self._db.rows(f"SELECT DISTINCT {column} FROM {table}"):
                if (sealed := self.stored(self.path(value))) != value:
                    self._db.run(f"UPDATE OR IGNORE {table} SET {column} = ? WHERE {column} = ?", (sealed, value))
        for column in ("session_id", "project"):
            for (name,) in self._db.rows(f"SELECT DISTINCT {column} FROM injection"):
                if (clean := self.name(name)) != name:
                    self._db.run(f"UPDATE injection SET {column} = ? WHERE {column} = ?", (clean, name))
        self._db.run("DELETE FROM checked_names")
        self._db.run("INSERT INTO checked_names (rules) VALUES (?)", (VERSION,))

    def name(self, name: str) -> str:
        """Return a name with placeholders in place of secrets."""
        return self._redacted(name) if self._key and name_may_contain_secret(name) else name

    @property
    def _key(self) -> bytes:
        """The key of the archive. It is empty until the first content is archived."""
        if not self._known_key and (home := Home(self._db.path.parent)).key_file.is_file():
            self._known_key = home.key()
        return self._known_key

    @cached_property
    def _redactor(self) -> Redactor:
        return Redactor(self._key or os.urandom(32))

    def _redacted(self, name: str) -> str:
        return self._redactor.redact_name(name)

    def _sealed(self, part: bytes) -> bytes:
        nonce = self._digest(b"path", part)[:_NONCE]
        return _MARK + base64.urlsafe_b64encode(nonce + self._crypted(nonce, part))

    def _opened(self, part: bytes) -> bytes:
        try:
            data = base64.urlsafe_b64decode(part.removeprefix(_MARK))
        except ValueError:
            return part
        plain = self._crypted(data[:_NONCE], data[_NONCE:])
        return plain if self._digest(b"path", plain)[:_NONCE] == data[:_NONCE] else part

    def _crypted(self, nonce: bytes, data: bytes) -> bytes:
        """Combine data with a stream of pseudo-random bytes. Doing so twice returns the data."""
        return bytes(byte ^ other for byte, other in zip(data, self._stream(nonce), strict=False))

    def _stream(self, nonce: bytes) -> Iterator[int]:
        for number in count():
            yield from self._digest(b"stream", nonce + number.to_bytes(4, "big"))

    def _digest(self, purpose: bytes, data: bytes) -> bytes:
        return hmac.digest(self._key, purpose + b"\0" + data, "sha256")
