"""A folder in which Tantivy can make its lock, wherever the index is."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

_LOCK = ".tantivy-meta.lock"
"""What Tantivy locks while it opens an index."""


@contextmanager
def lockable(folder: Path) -> Generator[Path]:
    """A folder with the files of an index in which Tantivy can make its lock, as it does to read. They are open then,
    and need no folder any more. Links, not hard ones: those to somebody else's files are refused.

    Tantivy looks again once, in a thread of its own: a lock that it makes while the folder is removed is removed, too.
    """
    lock = folder / _LOCK
    if os.access(lock if lock.exists() else folder, os.W_OK) or not folder.is_dir():
        yield folder
        return
    from shutil import rmtree  # hardly any index is somebody else's
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="palaver-", ignore_cleanup_errors=True) as name:
        for file in folder.iterdir():
            if file.suffix != ".lock":
                (Path(name) / file.name).symlink_to(file.absolute())
        yield Path(name)
    rmtree(name, ignore_errors=True)
