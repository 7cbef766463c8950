"""Measure the disk space of a home with the 98 sessions, relative to their transcripts: `python -m bench.disk`."""

# pyright: reportPrivateUsage=false

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.store import Store
from palaver.archiver.store.backups import KEPT, Backups
from palaver.core.home import Home
from palaver.observe.pipeline import Pipeline

from .shared import SetMissing, transcripts, unpack
from .table import table, write_section


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print the table. `--write` updates RESULTS.md."""
    parser = argparse.ArgumentParser(prog="python -m bench.disk", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the table to bench/RESULTS.md")
    chosen = parser.parse_args(arguments)
    try:
        with TemporaryDirectory(prefix="palaver-bench-") as folder:
            text = _measured(Path(folder))
    except SetMissing as missing:
        print(missing, file=sys.stderr)
        return 1
    print(text)
    if chosen.write:
        write_section("Disk", f"`python -m bench.disk --write`\n\n{text}")
    return 0


def _measured(folder: Path) -> str:
    home, files = Home(folder / "home"), unpack(transcripts(), folder / "history")
    whole = sum(file.stat().st_size for file in files)
    with Pipeline(home) as pipeline:
        pipeline.run(in_paths(files))
    parts = {"raw copies": _size(home.archive), "palaver.db": home.database.stat().st_size, "index": _size(home.index)}
    parts["one backup"] = _size(home.backups)
    first = _size(home.root)
    with Store.open(home.database) as store:
        for _ in range(KEPT - 1):
            Backups(home).make(store._database)  # noqa: SLF001 - a store makes one backup a day
    parts |= {"whole folder after the first run": first, f"whole folder with {KEPT} backups": _size(home.root)}
    rows = [
        (name, f"{size / 1e6:.1f}", f"{size / whole:.2f}") for name, size in {"transcripts": whole, **parts}.items()
    ]
    return table(["part", "MB", "of the transcripts"], rows)


def _size(folder: Path) -> int:
    """Return the bytes of all files in a folder. Generations of the index share files, which count once."""
    stats = [path.stat() for path in folder.rglob("*") if path.is_file()]
    return sum({stat.st_ino: stat.st_size for stat in stats}.values())


if __name__ == "__main__":
    sys.exit(main())
