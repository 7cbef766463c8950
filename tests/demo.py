"""Archived sample data: a small real home for tests of whole commands."""

import os
import shutil
from pathlib import Path

from palaver.archiver.ingest.transcripts import in_paths
from palaver.core.conversation import Origin
from palaver.core.home import DEMO, Home
from palaver.core.memory import Memory
from palaver.observe.archive import Archive
from palaver.observe.pipeline import Pipeline

HOUR = 1_772_000_000


def history(root: Path) -> Path:
    """Copy the sample transcripts with equal modification times, so that IDs are stable."""
    shutil.copytree(DEMO / "projects", root)
    for path in root.rglob("*.jsonl"):
        os.utime(path, (HOUR, HOUR))
    return root


def archived(root: Path) -> Home:
    """Return a home in which the sample data is archived, observed, embedded and indexed."""
    home = Home(root / "palaver")
    with Pipeline(home) as pipeline:
        pipeline.run(in_paths([history(root / "projects")]))
    return home


def remembering(root: Path) -> Home:
    """Return a home with the sample data and a decision in each of two projects, to use SQLite."""
    home = archived(root)
    with Archive(home).memories as core:
        for project in ("tide-clock", "seed-library"):
            core.remember(Memory("Use SQLite", "decision", namespace=f"project:{project}", origin=Origin.HUMAN))
    return home
