"""Location of the development sets: the folder `PALAVER_SHARED`, or the folder `shared` beside the repository."""

import os
import tarfile
from pathlib import Path

from palaver.archiver.store import Store
from palaver.core.conversation import SessionKind
from palaver.core.home import Home

PROJECT = Path(__file__).parents[1]


class SetMissing(Exception):
    """Error for a development set that is not available on this machine."""


def find(*parts: str) -> Path:
    """Return the path of a file, such as `find("locomo", "locomo-dev5.json")`. Raises `SetMissing`."""
    root = Path(os.environ.get("PALAVER_SHARED") or PROJECT.parent / "shared")
    path = root.joinpath("bench", *parts)
    if not path.exists():
        raise SetMissing(
            f"{'/'.join(parts)} is not in {root / 'bench'}; set PALAVER_SHARED to the folder of the development sets"
        )
    return path


def transcripts() -> Path:
    """Return the archive of the 98 real coding sessions. Raises `SetMissing`."""
    return find("coding-sessions", "transcripts.tar.gz")


def samples() -> Path:
    """Return the folder of samples in many formats. Raises `SetMissing`."""
    path = find().parent / "samples"
    if not path.is_dir():
        raise SetMissing(f"samples is not in {path.parent}; set PALAVER_SHARED to the folder of the development sets")
    return path


def parents_of_subagents(home: Home) -> dict[str, str]:
    """Map the ID of each sub-agent in a home to the ID of its parent session. A hit in it counts as its parent's."""
    with Store.open(home.database) as store:
        sessions = store.sessions.all().values()
        return {each.native_id: each.parent_id for each in sessions if each.kind is SessionKind.SUBAGENT}


def unpack(archive: Path, folder: Path) -> list[Path]:
    """Unpack an archive of transcripts and return their paths, sorted."""
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    return sorted(folder.rglob("*.jsonl"))
