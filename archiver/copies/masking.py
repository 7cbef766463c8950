"""Masking: copies without secrets, because a person chose so. Each is as long as what its agent wrote.

Nothing is written that is not masked yet, so nobody who is killed leaves a secret behind.
"""

import io
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from ...core.durability import sync
from ...core.errors import CopyDamaged, SourceUnreadable
from ...core.progress import Progress, silent
from ...core.report import Pass
from ..forget.oblivion import Oblivion
from ..parse.document import LIMIT
from ..parse.lines import split
from ..privacy.masker import Masker
from ..redaction import VERSION
from ..store import Source, Store
from . import checksums
from .compression import DOCUMENT, SUFFIX, shown
from .forms import ASIDE, SEALED, UNFINISHED, Copy
from .packed import repack
from .renewal import rewriting, rewritten
from .seekable import Seekable, pack

BUDGET: Final = 20.0
"""Seconds that one pass spends on copies that were made before; what is left waits for the next."""
_BLOCK: Final = 1 << 16


class Masking:
    """Masks copies that were made before the setting, or by older rules. Runs under the archiver's lease."""

    def __init__(self, store: Store, root: Path, masker: Masker, oblivion: Oblivion, *, wanted: bool) -> None:
        """`wanted`: what the settings say. A copy that is masked goes on so whatever they say."""
        self._store, self._root, self._masker, self._wanted = store, root, masker, wanted
        self._oblivion = oblivion
        self._looked = not wanted

    def masker(self, known: Source | None) -> Masker | None:
        """What masks the copy of a source, or of a new one; None for a copy that is what its agent wrote."""
        return self._masker if self._wanted or (known is not None and known.masked) else None

    def complete(self, archived: str, source: Source | None) -> None:
        """Mask a copy before anything is compared with it. Raises `OSError` and `CopyDamaged`."""
        copy = Copy(self._root, archived)
        if source is not None and source.masked != VERSION and self._oblivion:
            with shown(copy.open(), copy.plain) as file, self._store.transaction():
                self._oblivion.carry_over(source.path, split(file))
        with rewriting(self._store, copy, source):
            mask(copy, self._masker)

    def run(self, tally: Pass, progress: Progress = silent, budget: float = BUDGET) -> None:
        """Mask the oldest first for `budget` seconds. A copy that cannot be masked stays as it is and is reported."""
        end, waiting = time.monotonic() + budget, self._store.sources.unmasked() if self._wanted else []
        for done, source in enumerate(waiting):
            if time.monotonic() > end:
                tally.unmasked = len(waiting) - done
                return
            progress(done, len(waiting))
            try:
                self.complete(source.archived, source)
                self._note(source)
            except SourceUnreadable as problem:
                tally.problems.append(problem)
            except OSError as error:
                tally.problems.append(SourceUnreadable(source.path, error.strerror or str(error)))
            else:
                tally.masked += 1
        if not self._looked:
            self._looked = True
            self._mask_strays()

    def _note(self, source: Source) -> None:
        source.masked = VERSION
        with self._store.transaction():
            self._store.sources.save(source)

    def _mask_strays(self) -> None:
        """What lies there without a row: of passes that were killed, and what was found damaged and kept."""
        shutil.rmtree(self._root / UNFINISHED, ignore_errors=True)
        known = self._store.sources.archived_names()
        for path in sorted(path for path in self._root.rglob("*") if path.is_file() and not path.is_symlink()):
            name = path.relative_to(self._root).as_posix().removesuffix(SEALED)
            if name.startswith("."):
                continue
            if ASIDE in path.name:
                _mask_aside(self._root, path, self._masker)
            elif name not in known:
                mask(Copy(self._root, name), self._masker)


def mask(copy: Copy, masker: Masker) -> None:
    """Mask a copy in the form it has. Raises `OSError`, and `CopyDamaged` for one that cannot be read."""
    sealed = not copy.plain.exists()
    if (sealed and not copy.sealed.exists()) or not _differs(copy, masker):
        return
    with copy.open() as source:
        write(source, copy, masker)
    if sealed:
        copy.seal()


def write(source: BinaryIO, copy: Copy, masker: Masker) -> int:
    """Make a copy, whole and at once, what a file says when it is masked; how many bytes of the file were read.

    What an agent compressed stays as it is when there is nothing to mask in it, and is compressed anew when there is.
    Raises `OSError`.
    """
    with rewritten(copy) as target:
        target.writelines(_pieces(source, copy.plain, masker))
    return source.tell()


def told(path: Path, masker: Masker | None) -> BinaryIO:
    """A file, masked if there is a masker. Raises `OSError`."""
    file = path.open("rb")
    if masker is None:
        return file
    with file:
        return io.BytesIO(b"".join(_pieces(file, path, masker)))


def append(source: BinaryIO, copy: Copy, masker: Masker, known: Source | None) -> tuple[int, bytes, bool]:
    """Bring a plain copy up to date, durably: its size, and its checksums as `Source` has them.

    Its last line is written anew, which may have been unfinished. Raises `OSError` and `CopyDamaged`.
    """
    descriptor = os.open(copy.plain, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "r+b") as target:
        start = _last_line(target)
        sums = checksums.continued(known, copy.plain, target.seek(0, os.SEEK_END))
        sums.cut(target, copy.plain, start)
        source.seek(start)
        target.seek(start)
        for piece in masker.lines(source):
            target.write(piece)
            sums.add(piece)
        size = target.tell()
        sync(target)
    return size, *sums.recorded()


def _last_line(file: BinaryIO) -> int:
    """Where the last line begins, which may be empty."""
    end = file.seek(0, os.SEEK_END)
    while end:
        start = max(0, end - _BLOCK)
        file.seek(start)
        found = file.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _differs(copy: Copy, masker: Masker) -> bool:
    with copy.open() as source, copy.open() as before:
        return any(before.read(len(piece)) != piece for piece in _pieces(source, copy.plain, masker))


def _pieces(source: BinaryIO, path: Path, masker: Masker) -> Iterator[bytes]:
    """The bytes of a file, masked."""
    if path.suffix == SUFFIX:
        yield _repacked(source.read(), path, masker)
    elif path.suffix == DOCUMENT:
        yield from _document(source, masker)
    else:
        yield from masker.lines(source)


def _document(source: BinaryIO, masker: Masker) -> Iterator[bytes]:
    data = source.read(LIMIT + 1)
    if len(data) <= LIMIT:
        yield masker.masked(data)
        return
    while data:  # too large to be read by anybody
        yield b"*" * len(data)
        data = source.read(LIMIT)


def _repacked(data: bytes, path: Path, masker: Masker) -> bytes:
    with shown(io.BytesIO(data), path) as told, shown(io.BytesIO(data), path) as before:
        if all(before.read(len(line)) == line for line in masker.lines(told)):
            return data
    made = io.BytesIO()
    with shown(io.BytesIO(data), path) as told:
        repack(masker.lines(told), made, len(data))
    return made.getvalue()


def _mask_aside(root: Path, path: Path, masker: Masker) -> None:
    """Mask what can still be read of a copy that was found damaged; what cannot is dropped."""
    made = io.BytesIO()
    try:
        if SEALED in path.name:
            with Seekable(path) as damaged:
                pack(io.BytesIO(b"".join(masker.lines(io.BytesIO(damaged.salvaged())))), made)
        else:
            with path.open("rb") as plain:
                made.writelines(masker.lines(plain))
    except CopyDamaged:
        path.unlink()
        return
    with rewritten(Copy(root, path.relative_to(root).as_posix())) as target:
        target.write(made.getbuffer())
