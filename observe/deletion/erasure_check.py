"""Scouring: looking for texts in every byte of a folder, from a process of its own, which knows nothing but them."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

from msgspec import Struct
from msgspec.structs import asdict

from ...archiver.copies.compressed_file import CompressedFile
from ...archiver.copies.raw_copy import COMPRESSED_SUFFIX
from ...archiver.files.compression import SUFFIX, shown
from ...core.errors import CopyDamaged

_PIECE: Final = 8 << 20


class Scoured(Struct, frozen=True):
    """How much was read, and the files in whose bytes or names a text stands, below the folder.

    The `unread` ones could not be read, so nobody knows what stands in them.
    """

    files: int
    size: int
    found: tuple[str, ...]
    unread: tuple[str, ...] = ()


def scour(root: Path, texts: Sequence[str]) -> Scoured:
    """Look for texts in every file below a folder, what is compressed included, in another process."""
    command = [sys.executable, "-P", "-m", __name__, str(root)]
    done = subprocess.run(command, input=json.dumps(list(texts)), capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    return Scoured(told["files"], told["size"], tuple(told["found"]), tuple(told["unread"]))


def forms(text: str) -> tuple[bytes, ...]:
    """A text as files hold it: in UTF-8, or escaped as in JSON."""
    return tuple({text.encode("utf-8", "replace"), json.dumps(text)[1:-1].encode()})


def _holds(file: BinaryIO, wanted: Sequence[bytes]) -> bool:
    overlap = max(map(len, wanted), default=1) - 1
    held = b""
    while piece := file.read(_PIECE):
        held += piece
        if any(form in held for form in wanted):
            return True
        held = held[-overlap:] if overlap else b""
    return False


def _opened(path: Path) -> Iterator[BinaryIO]:
    """A file as it is, and what it holds where it is compressed."""
    with path.open("rb") as file:
        yield file
    if path.name.endswith(COMPRESSED_SUFFIX):
        with CompressedFile(path) as compressed:
            yield compressed
    elif path.suffix == SUFFIX:
        with shown(path.open("rb"), path) as packed:
            yield packed


def _look(root: Path, texts: Sequence[str]) -> Scoured:
    wanted = [form for text in texts for form in forms(text)]
    files = size = 0
    found, unread = list[str](), list[str]()
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        told = any(form in name.encode("utf-8", "replace") for form in wanted)
        try:
            if path.is_file():
                files, size = files + 1, size + path.stat().st_size
                told = told or any(_holds(file, wanted) for file in _opened(path))
        except (FileNotFoundError, CopyDamaged):
            pass  # it went away meanwhile, or its bytes were read and cannot be unpacked by anybody
        except OSError:
            unread.append(name)
        if told:
            found.append(name)
    return Scoured(files, size, tuple(found), tuple(unread))


if __name__ == "__main__":
    result = _look(Path(sys.argv[1]), json.load(sys.stdin))
    print(json.dumps(asdict(result)))  # noqa: T201
