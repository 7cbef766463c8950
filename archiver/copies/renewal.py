"""Renewal: copies that are written anew, because nothing that they said is lost by it."""

import os
import shutil
import tempfile
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ...core.durability import sync, sync_path
from ..store import Source, Store
from . import checksums
from .forms import UNFINISHED, Copy


def renew(copy: Copy, path: Path) -> None:
    """Make a copy what a file is now, durably; raises `OSError`."""
    with path.open("rb") as source, rewritten(copy) as target:
        shutil.copyfileobj(source, target, 1 << 20)


def before_rewrite(store: Store, sources: Iterable[Source | None]) -> None:
    """Drop the stored checksums of copies that are about to change before their rows do.

    A process killed in between leaves a copy without checksums, not one with wrong ones.
    """
    numbers = [source.id for source in sources if source is not None and source.id is not None]
    if numbers:
        with store.transaction():
            for number in numbers:
                store.sources.keep_sums(number)


@contextmanager
def rewriting(store: Store, copy: Copy, source: Source | None, *, in_place: bool = False) -> Generator[None]:
    """Bring a source's checksums up to date after its copy is rewritten from its own bytes.

    Raises `CopyDamaged` before anything is rewritten where the copy is damaged: the damage would count as content.
    An uncompressed copy that is rewritten `in_place`, every other byte where it was, may be damaged: its damaged blocks
    stay so.
    """
    if source is None or not source.sums:
        yield
        return
    known: dict[int, int] = {}
    with copy.open() as file:
        if in_place and copy.plain.exists():
            known = checksums.damaged(file, source.sums)
        else:
            checksums.verify(file, source.sums, copy.plain)
    if not known:
        before_rewrite(store, (source,))  # else a crash leaves the old checksums, by which the damage stays known
    yield
    if known:
        with copy.open() as file:
            source.sums = checksums.rewritten(file, source.sums, known)
    else:
        source.sums = copy.sums()
    if source.id is not None:
        with store.transaction():
            store.sources.keep_sums(source.id, source.sums, compared=source.compared)


@contextmanager
def rewritten(copy: Copy) -> Generator[BinaryIO]:
    """A file that becomes the copy, at once and durably, when all was written to it."""
    folder = copy.root / UNFINISHED
    folder.mkdir(mode=0o700, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=folder)
    beside = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            sync(file)
        beside.replace(copy.plain)
    finally:
        beside.unlink(missing_ok=True)
    copy.sealed.unlink(missing_ok=True)
    sync_path(copy.plain.parent)
