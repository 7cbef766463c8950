"""Every line of every real transcript is accounted for, in the store and on disk."""

import tarfile
from pathlib import Path

import pytest

from palaver.archiver.copies.raw_copy import RawArchive
from palaver.archiver.ingest.ingest import Ingest
from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.lines import split
from palaver.archiver.store import Store
from palaver.core.home import Home
from palaver.core.reports import IngestReport

from ..shared import SAMPLES, SHARED

SESSIONS = SHARED / "bench" / "coding-sessions" / "transcripts.tar.gz"


def archive(home: Home, folder: Path) -> tuple[IngestReport, int]:
    """Ingest a folder and check every source against its copy. Return the report and the number of sources."""
    home.make()
    raw = RawArchive(home.archive)
    with Store.create(home.database) as store:
        tally = Ingest(store, raw).run(in_paths([folder]))
        sources = store.sources.all()
        assert store.sources.unaccounted() == []
        for source in sources:
            with raw.open(source.archived) as file:
                lines = list(split(file))
            assert source.lines == len(lines) - bool(source.pending), source.archived
            assert sum(source.coverage.values()) == source.lines, source.archived
            assert source.pending in (0, lines[-1].end - lines[-1].start if lines else 0), source.archived
    return tally, len(sources)


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="no samples here")
def test_every_line_of_every_sample_is_accounted_for(tmp_path: Path) -> None:
    """Every line of every sample is parsed, repeated, skipped for a reason, or still being written."""
    tally, sources = archive(Home(tmp_path / "home"), SAMPLES)

    assert [(problem.path, problem.reason) for problem in tally.problems] == []
    assert sources > 130


@pytest.mark.skipif(not SESSIONS.is_file(), reason="no benchmark here")
def test_every_line_of_every_session_is_accounted_for(tmp_path: Path) -> None:
    """Every line of the sessions of the search benchmark, and of the sub-agents in them, is accounted for."""
    with tarfile.open(SESSIONS) as packed:
        packed.extractall(tmp_path / "sessions", filter="data")

    tally, sources = archive(Home(tmp_path / "home"), tmp_path / "sessions")

    assert (tally.problems, sources) == ([], 98 + 18)
