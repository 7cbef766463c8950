"""Memory files in the user's projects. The preview lists the files, but only an erasure deletes them."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from ...archiver.store import Store
from ...core.errors import LeaseHeld, MnemonicsUnusable
from ...core.memory import StoredMemory
from ...core.project import MNEMONICS
from ..mnemonics import LEASE, PATIENCE, MnemonicsFolder, digest_of


def files_of(memories: Iterable[StoredMemory]) -> dict[str, str]:
    """Return the content digests of the readable files of these memories, by path."""
    found: dict[str, str] = {}
    for path in sorted({each.memory.path for each in memories} - {""}):
        folder, place = _folder_of(path)
        try:
            found[path] = digest_of(folder.read(place))
        except OSError:
            continue
    return found


def delete_files(store: Store, memories: Iterable[StoredMemory], files: Mapping[str, str]) -> tuple[str, ...]:
    """Delete files with unchanged digests. Return the remaining files, each with a reason.

    Also delete the record of a deleted file. Keep the record of a remaining file, so that it is not imported again.
    """
    gone = {path for path in {each.memory.path for each in memories} - {""} if _was_deleted(store, path)}
    if not files and not gone:
        return ()
    remaining: list[str] = []
    try:
        with store.leases.hold(LEASE, PATIENCE):
            for path, digest in files.items():
                try:
                    folder, place = _folder_of(path)
                    folder.remove(place, digest)
                    gone.add(path)
                except MnemonicsUnusable as error:
                    remaining.append(str(error))
            with store.transaction():
                for path in gone:
                    store.mnemonics.drop(path)
    except LeaseHeld as error:
        return tuple(f"{path}: {error}" for path in files)
    return tuple(remaining)


def _was_deleted(store: Store, path: str) -> bool:
    known = store.mnemonics.below(str(Path(path).parent)).get(path)
    return known is not None and known.gone


def _folder_of(path: str) -> tuple[MnemonicsFolder, str]:
    """Return a project's memory folder, and the relative path of a file in it."""
    project, _, place = path.rpartition(f"/{MNEMONICS}/")
    return MnemonicsFolder(Path(project)), place
