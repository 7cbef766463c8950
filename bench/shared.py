"""Where the development sets lie: `PALAVER_SHARED`, or the folder `shared` beside the project."""

import os
import tarfile
from pathlib import Path

PROJECT = Path(__file__).parents[1]


class SetMissing(Exception):
    """A development set that is not on this machine."""


def find(*parts: str) -> Path:
    """The path of a set's file, such as `find("locomo", "locomo-dev5.json")`; raises `SetMissing`."""
    root = Path(os.environ.get("PALAVER_SHARED") or PROJECT.parent / "shared")
    path = root.joinpath("bench", *parts)
    if not path.exists():
        raise SetMissing(f"{'/'.join(parts)} is not in {root / 'bench'}; set PALAVER_SHARED to the folder that has it")
    return path


def transcripts() -> Path:
    """The archive of the 98 real coding sessions; raises `SetMissing`."""
    return find("coding-sessions", "transcripts.tar.gz")


def samples() -> Path:
    """The folder of samples in many agents' formats; raises `SetMissing`."""
    path = find().parent / "samples"
    if not path.is_dir():
        raise SetMissing(f"samples is not in {path.parent}; set PALAVER_SHARED to the folder that has it")
    return path


def unpack(archive: Path, folder: Path) -> list[Path]:
    """Unpack an archive of transcripts and return their paths, sorted."""
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    return sorted(folder.rglob("*.jsonl"))
