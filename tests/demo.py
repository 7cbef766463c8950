"""The packaged demo, archived: a small real home for tests of whole commands."""

import os
import shutil
from pathlib import Path

from palaver.archiver.ingest.transcripts import in_paths
from palaver.core.home import DEMO, Home
from palaver.observe.pipeline import Pipeline

HOUR = 1_772_000_000


def history(root: Path) -> Path:
    """A copy of the demo's transcripts in which none is newer than another, so that ids are always the same."""
    shutil.copytree(DEMO / "projects", root)
    for path in root.rglob("*.jsonl"):
        os.utime(path, (HOUR, HOUR))
    return root


def archived(root: Path) -> Home:
    """A home in which the demo is archived, observed, embedded and indexed."""
    home = Home(root / "palaver")
    with Pipeline(home) as pipeline:
        pipeline.run(in_paths([history(root / "projects")]))
    return home
