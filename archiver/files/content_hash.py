"""Keyed hash of the content of a file, used to detect changes."""

import stat
from hashlib import blake2b
from pathlib import Path
from typing import Final

_BYTES_MAX: Final = 1 << 20
"""Maximum bytes of a file to hash. Hashing a file of this size takes about 1 ms."""


def content_hash(file: str, key: bytes) -> bytes | None:
    """Return the keyed hash of the content of `file`, or None if the file is too large or cannot be read.

    If the file does not exist, return empty bytes.
    """
    try:
        known = Path(file).stat()
        if not stat.S_ISREG(known.st_mode) or known.st_size > _BYTES_MAX:
            return None
        return blake2b(Path(file).read_bytes(), key=key, digest_size=16).digest()
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except (OSError, ValueError):
        return None
