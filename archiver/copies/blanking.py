"""Blanking: lines of a copy become spaces, so that every other line keeps its number and its place in the file.

The copy is written anew beside and switched at once; who is killed meanwhile has lost nothing and erased nothing.
"""

import shutil
from collections.abc import Collection, Iterator, Mapping
from typing import BinaryIO, Final

from ...core.errors import CopyDamaged
from ..files.compression import DOCUMENT, SUFFIX, shown
from ..files.json_document import without_records
from ..files.lines import blanked
from ..files.packed import repack
from .forms import UNFINISHED, Copy
from .renewal import rewritten

_PIECE: Final = 1 << 20


def blank(copy: Copy, lines: Collection[int], opening: Collection[int] = ()) -> None:
    """Erase these lines (1-based) of a copy's content; exchanges begin on those that are `opening`.

    A copy that an agent wrote as a whole keeps its size at least. Raises `OSError` and `CopyDamaged`.
    """
    if not lines:
        return
    gone, suffix = {line: line in opening for line in lines}, copy.plain.suffix
    size = copy.size()
    with copy.open() as source, rewritten(copy) as target:
        if suffix == DOCUMENT:
            _pad(target, without_records(source.read(), gone), size)
        elif suffix == SUFFIX:
            repack(_without(shown(source, copy.plain), gone), target, size)
        else:
            target.writelines(_without(source, gone))


def remove(copy: Copy) -> None:
    """Delete a copy in every form, and what was set aside of it."""
    for path in (copy.plain, copy.sealed, *copy.set_asides()):
        path.unlink(missing_ok=True)
    for folder in copy.plain.parents:
        if folder == copy.root or not folder.is_dir() or any(folder.iterdir()):
            break
        folder.rmdir()


def remove_leftovers(copy: Copy) -> None:
    """Delete what is not the copy itself: forms that were never finished, and the damaged one.

    Raises `CopyDamaged` where the damaged one is all that is left: nothing is deleted that nothing else says.
    """
    if copy.set_asides() and not copy.exists():
        raise CopyDamaged(copy.set_asides()[0], "it is all that is left of a copy")
    for path in copy.set_asides():
        path.unlink(missing_ok=True)
    if copy.plain.exists():
        copy.sealed.unlink(missing_ok=True)
    shutil.rmtree(copy.root / UNFINISHED, ignore_errors=True)


def _without(source: BinaryIO, gone: Mapping[int, bool]) -> Iterator[bytes]:
    number, begun = 1, False
    while piece := source.readline(_PIECE):
        ended = piece.endswith(b"\n")
        if number in gone and piece.strip(b" \t\n"):
            piece = blanked(len(piece) - ended, opens=gone[number] and not begun) + b"\n" * ended
        yield piece
        number, begun = number + ended, not ended


def _pad(target: BinaryIO, data: bytes, size: int) -> None:
    target.write(data.ljust(size))
