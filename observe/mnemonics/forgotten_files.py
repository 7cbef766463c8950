"""Deletion of the files of forgotten memories.

Undo restores a memory, and the next synchronization recreates its file.
"""

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.store import Store
from ...core.errors import LeaseHeld, MnemonicsUnusable
from ...core.memory import StoredMemory
from ...core.project import MNEMONICS
from ..memory import MemoryCore
from .file_sync import LEASE, PATIENCE
from .mnemonics_folder import MnemonicsFolder


class ForgottenFiles(Struct, frozen=True):
    """Forgotten and protected memories, paths of deleted files, and the reason for each file that was kept."""

    forgotten: tuple[StoredMemory, ...]
    protected: tuple[StoredMemory, ...]
    deleted: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


def forget_with_files(
    core: MemoryCore, memory_ids: Sequence[str], *, force: bool = False, reason: str
) -> ForgottenFiles:
    """Forget memories as `MemoryCore.forget` does, and delete their files.

    A file that was edited since the last synchronization is kept, because the next one stores its new content.
    """
    done = core.forget(memory_ids, force=force, reason=reason)
    paths = [stored.memory.path for stored in done.forgotten if stored.memory.path]
    deleted, kept = _deleted(core.store, paths)
    return ForgottenFiles(done.forgotten, done.protected, deleted, kept)


def _deleted(store: Store, paths: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Delete the files that were not edited. Return their paths, and the reason for each file that was kept."""
    if not paths:
        return (), ()
    deleted, kept = list[str](), list[str]()
    try:
        with store.leases.hold(LEASE, PATIENCE):
            for path in paths:
                try:
                    deleted += [path] if _delete(store, path) else []
                except MnemonicsUnusable as error:
                    kept.append(str(error))
    except LeaseHeld as error:
        return (), tuple(f"{path}: {error}" for path in paths)
    return tuple(deleted), tuple(kept)


def _delete(store: Store, path: str) -> bool:
    """Delete a file and record it, so that undo restores it. Return False if the file was already deleted."""
    folder, _, place = path.rpartition(f"/{MNEMONICS}/")
    row = store.mnemonics.below(str(Path(path).parent)).get(path)
    if row is None or not Path(path).exists():
        return False
    MnemonicsFolder(Path(folder)).remove(place, row.digest)
    store.mnemonics.put(replace(row, gone=True))
    return True
