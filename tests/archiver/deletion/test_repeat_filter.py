"""The filter of copies excludes no copy that repeats a deleted line."""

import json
from pathlib import Path
from typing import BinaryIO

import pytest

from palaver.archiver.copies.raw_copy import RawArchive
from palaver.archiver.deletion.deletions import DeletionPlan, Deletions
from palaver.archiver.deletion.suppression import RepeatFilter
from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.store import Store
from palaver.core.deletion import DeletionRequest
from palaver.core.home import Home
from palaver.observe.pipeline import Pipeline

from ... import demo

NOTICE = {"type": "summary", "summary": "Kiln notes", "leafUuid": "5b7f0c1e-2222-4444-8888-1c2d3e4f5a6b"}
"""Line without a session ID and without a time, which two sessions contain."""
CLOCK = {"type": "system", "timestamp": "2026-01-05T07:08:09.123Z", "content": "The clock was set"}
"""Line without a session ID and without a record ID, which two sessions contain."""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Archive the sample data, a fork of each session with another order of keys, and lines that two sessions share."""
    projects = demo.history(tmp_path / "projects")
    originals = sorted(projects.rglob("*.jsonl"))
    for number, path in enumerate(originals):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        forked = [dict(reversed(row.items())) for row in rows[: len(rows) // 2]]
        path.with_name(f"{number:08x}-0000-4000-8000-000000000000.jsonl").write_text(
            "".join(f"{json.dumps(row, indent=None, separators=(' ,', ' : '))}\n" for row in forked)
        )
    for path, shared in zip(originals, (NOTICE, NOTICE, CLOCK, CLOCK), strict=False):
        with path.open("a") as file:
            file.write(f"{json.dumps(shared)}\n")
    home = Home(tmp_path / "palaver")
    with Pipeline(home) as pipeline:
        pipeline.run(in_paths([projects]))
    return home


def plans(home: Home) -> list[tuple[str, DeletionPlan]]:
    """Return the plan for the deletion of each session."""
    with Store.open(home.database) as store:
        deletions = Deletions(store, RawArchive(home.archive))
        names = [session.native_id for session in store.sessions.all().values()]
        return [(name, deletions.plan(DeletionRequest(targets=(name,)))) for name in names]


def test_a_plan_is_the_same_without_the_filter(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The filter changes no plan, and it excludes many copies."""
    asked = list[bool]()
    may_match = RepeatFilter.may_match

    def record(self: RepeatFilter, path: Path, file: BinaryIO) -> bool:
        asked.append(may_match(self, path, file))
        return asked[-1]

    def pass_all(*_: object) -> bool:
        return True

    monkeypatch.setattr(RepeatFilter, "may_match", record)
    filtered = plans(home)
    monkeypatch.setattr(RepeatFilter, "may_match", pass_all)
    complete = plans(home)

    for (name, found), (_, expected) in zip(filtered, complete, strict=True):
        assert (found.repeats, found.hashes) == (expected.repeats, expected.hashes), name
    assert sum(bool(plan.repeats) for _, plan in complete) >= 4
    assert asked.count(True) < 0.6 * len(asked)
