"""A process that changes the forms of copies, for tests that kill it.

sealing_worker.py seal|unseal ROOT NAME N      one copy
sealing_worker.py pass FOLDER HOME N           a pass that takes transcripts up and seals what is quiet

Each is killed before its N-th change of the disk, and prints how many there were when it is not.
"""

import sys
from pathlib import Path

from palaver.archiver.copies.forms import Copy

from ...fuse import fused

CHANGES = {"fsync", "link", "mkdir", "open", "remove", "rename", "replace", "rmdir", "unlink", "write"}


def change(event: str, called: object) -> bool:
    """Whether this is a call that changes the disk, and not the namesake of one that a text has."""
    name = getattr(called, "__name__", "")
    return event == "c_call" and name in CHANGES and not isinstance(getattr(called, "__self__", None), str)


def take_up_and_seal(folder: Path, root: Path) -> None:
    from palaver.archiver.copies.raw import RawArchive
    from palaver.archiver.copies.sealing import Sealer
    from palaver.archiver.ingest.ingest import Ingest
    from palaver.archiver.ingest.transcripts import in_paths
    from palaver.archiver.store import Store
    from palaver.core.home import Home

    home = Home(root)
    with Store.create(home.database) as store:
        raw = RawArchive(home.archive)
        Ingest(store, raw).run(in_paths([folder]))
        Sealer(store, raw).run()


if __name__ == "__main__":
    work, first, second, at = sys.argv[1:]
    if work == "pass":
        print(fused(lambda: take_up_and_seal(Path(first), Path(second)), int(at), change))
    else:
        copy = Copy(Path(first), second)
        print(fused(copy.seal if work == "seal" else copy.unseal, int(at), change))
