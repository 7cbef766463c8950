"""Files in which people keep memories: named before anything goes, and deleted with what is erased, never otherwise."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from ...archiver.store import Store
from ...core.deletion import DeletedFile
from ...core.errors import LeaseHeld, MnemonicsUnusable
from ...core.memory import StoredMemory
from ...core.project import MNEMONICS
from ..mnemonics.folder import Folder, digest_of
from ..mnemonics.mirror import LEASE, PATIENCE


def files_of(memories: Iterable[StoredMemory]) -> tuple[DeletedFile, ...]:
    """The files of these memories that are there and can be read, as they are now."""
    found: list[DeletedFile] = []
    for path in sorted({held.memory.path for held in memories} - {""}):
        folder, place = _place(path)
        try:
            found.append(DeletedFile(path, digest_of(folder.read(place))))
        except OSError:
            continue
    return tuple(found)


def delete(store: Store, memories: Iterable[StoredMemory], files: Sequence[DeletedFile]) -> tuple[str, ...]:
    """Delete these files where they are as they were shown; those that stay, each with the reason.

    What is known of a file goes with it. One that stays, or was moved meanwhile, is still known to say what was erased,
    so that it is not taken up again.
    """
    gone = {path for path in {held.memory.path for held in memories} - {""} if _is_gone(store, path)}
    if not files and not gone:
        return ()
    left: list[str] = []
    try:
        with store.leases.hold(LEASE, PATIENCE):
            for file in files:
                try:
                    folder, place = _place(file.path)
                    folder.remove(place, file.digest)
                    gone.add(file.path)
                except MnemonicsUnusable as error:
                    left.append(str(error))
            with store.transaction():
                for path in gone:
                    store.mnemonics.drop(path)
    except LeaseHeld as error:
        return tuple(f"{file.path}: {error}" for file in files)
    return tuple(left)


def _is_gone(store: Store, path: str) -> bool:
    """Whether a file is known to have been deleted before."""
    known = store.mnemonics.below(str(Path(path).parent)).get(path)
    return known is not None and known.gone


def _place(path: str) -> tuple[Folder, str]:
    """The folder of a project's memories, and the path of a file below it."""
    project, _, place = path.rpartition(f"/{MNEMONICS}/")
    return Folder(Path(project)), place
