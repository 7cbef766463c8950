"""Rewriting of raw copies: erasing lines, replacing content and deleting copies, with updated checksums.

New content is written to a temporary file, which then replaces the copy atomically. If the process
is killed, the copy contains either the old or the new content.
"""

import shutil
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import BinaryIO, Final

from ...core.durability import sync, sync_path
from ...core.errors import CopyDamaged
from ..files.compression import DOCUMENT, SUFFIX, as_lines
from ..files.json_document import without_records
from ..files.lines import blanked
from ..files.zstd_file import compress_lines
from ..store import Source, Store
from .checksums import damaged_blocks, updated, verify
from .raw_copy import UNFINISHED, Copy

_PIECE: Final = 1 << 20


@contextmanager
def new_content(copy: Copy) -> Generator[BinaryIO]:
    """Yield a file that replaces the copy, atomically and durably, if the block succeeds."""
    with copy.temporary() as made:
        with made.open("wb") as file:
            yield file
            sync(file)
        made.replace(copy.path)
    copy.compressed_path.unlink(missing_ok=True)
    sync_path(copy.path.parent)


def drop_checksums(store: Store, sources: Iterable[Source | None]) -> None:
    """Delete the stored checksums of copies whose content is about to change.

    If the process is killed during the change, the copies have no checksums, which is better than wrong checksums.
    """
    numbers = [source.id for source in sources if source is not None and source.id is not None]
    if numbers:
        with store.transaction():
            for number in numbers:
                store.sources.save_checksums(number)


@contextmanager
def updating_checksums(store: Store, copy: Copy, source: Source | None, *, in_place: bool) -> Generator[None]:
    """Update a source's checksums after the `with` block has rewritten the source's copy.

    The block must derive the new content from the old copy. A damaged copy raises `CopyDamaged` before the block runs,
    because new checksums would hide the damage. With `in_place`, a damaged uncompressed copy is accepted: the block
    overwrites only some bytes, and the checksums still show the damage.
    """
    if source is None or not source.sums:
        yield
        return
    damaged: dict[int, int] = {}
    with copy.open() as file:
        if in_place and copy.path.exists():
            damaged = damaged_blocks(file, source.sums)
        else:
            verify(file, source.sums, copy.path)
    if not damaged:  # After a crash, the old checksums must still show the damage.
        drop_checksums(store, (source,))
    yield
    if damaged:
        with copy.open() as file:
            source.sums = updated(file, source.sums, damaged)
    else:
        source.sums = copy.checksums()
    if source.id is not None:
        with store.transaction():
            store.sources.save_checksums(source.id, source.sums)


def erase_lines(copy: Copy, lines: Collection[int], exchange_starts: Collection[int]) -> None:
    """Overwrite lines (1-based) of a copy with spaces. All other lines keep their numbers.

    In a JSON lines file, the other lines also keep their offsets. A JSON document, or a file that the agent compressed,
    is encoded again and padded to at least its previous size. `exchange_starts` are the lines on which exchanges begin.
    Raises `OSError` and `CopyDamaged`.
    """
    if not lines:
        return
    gone, suffix = {line: line in exchange_starts for line in lines}, copy.path.suffix
    size = copy.size()
    with copy.open() as source, new_content(copy) as target:
        if suffix == DOCUMENT:
            target.write(without_records(source.read(), gone).ljust(size))
        elif suffix == SUFFIX:
            compress_lines(_without(as_lines(source, copy.path), gone), target, size)
        else:
            target.writelines(_without(source, gone))


def remove(copy: Copy) -> None:
    """Delete a copy in every storage format, its damaged files, and folders that become empty."""
    for path in (copy.path, copy.compressed_path, *copy.damaged_files()):
        path.unlink(missing_ok=True)
    for folder in copy.path.parents:
        if folder == copy.root or not folder.is_dir() or any(folder.iterdir()):
            break
        folder.rmdir()


def remove_leftovers(copy: Copy) -> None:
    """Delete temporary files and the damaged files of a copy.

    Raises `CopyDamaged` if only a damaged file remains of the copy.
    """
    damaged = copy.damaged_files()
    if damaged and not copy.exists():
        raise CopyDamaged(damaged[0], "the other files of this copy are missing")
    for path in damaged:
        path.unlink(missing_ok=True)
    if copy.path.exists():
        copy.compressed_path.unlink(missing_ok=True)
    shutil.rmtree(copy.root / UNFINISHED, ignore_errors=True)


def _without(source: BinaryIO, gone: Mapping[int, bool]) -> Iterator[bytes]:
    number, begun = 1, False
    while piece := source.readline(_PIECE):
        ended = piece.endswith(b"\n")
        if number in gone and piece.strip(b" \t\n"):
            piece = blanked(len(piece) - ended, opens=gone[number] and not begun) + b"\n" * ended
        yield piece
        number, begun = number + ended, not ended
