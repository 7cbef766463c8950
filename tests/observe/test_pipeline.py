"""Tests of the pipeline: one run makes everything searchable."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from palaver.archiver.ingest.transcripts import Transcript, in_paths
from palaver.archiver.store import ARCHIVER, LEARNER, Store
from palaver.core.errors import LeaseHeld
from palaver.core.home import Home
from palaver.core.query import Query
from palaver.core.reports import Report
from palaver.observe import pipeline
from palaver.observe.pipeline import Pipeline
from palaver.observe.upkeep import archive_status
from palaver.observe.upkeep.archive_status import status_of
from palaver.search import archive_search
from palaver.search.archive_search import ArchiveSearch

from ..archiver.formats.claude_code.claude_lines import assistant, jsonl, result, text, tool, user
from ..search.fake_embedder import FakeEmbedder

FIXED = "The parser dropped the last column because the reader stopped at the first empty cell; it now reads on."
Model = Callable[[FakeEmbedder], None]


@pytest.fixture
def place(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    """Transcript of a bug and its fix."""
    path = tmp_path / "source" / "-work-app" / "22222222-0000-4000-8000-000000000002.jsonl"
    path.parent.mkdir(parents=True)
    edit = {"file_path": "/code/app/reader.py", "old_string": "if not cell: break", "new_string": "continue"}
    path.write_bytes(
        jsonl(
            [
                user("Keep the last column of the report", uuid="1", cwd="/code/app"),
                assistant(tool("Edit", edit), id="m1", uuid="2"),
                result("done", id="toolu_1"),
                assistant(text(FIXED), id="m2", uuid="3"),
            ]
        )
    )
    return path


@pytest.fixture(autouse=True)
def model(monkeypatch: pytest.MonkeyPatch) -> Model:
    """Return a function that replaces the embedder of every stage."""

    def use(embedder: FakeEmbedder) -> None:
        for module in (pipeline, archive_search, archive_status):
            monkeypatch.setattr(module, "load", embedder.load)

    use(FakeEmbedder())
    return use


def found(place: Home, words: str) -> list[str]:
    with ArchiveSearch(place) as opened:
        return [hit.kind for hit in opened.find(Query.parse(words)).hits]


def run(place: Home, transcripts: list[Transcript]) -> Report:
    with Pipeline(place) as made:
        return made.run(transcripts)


def test_one_run_completes_every_stage(place: Home, transcript: Path) -> None:
    """One run archives, observes, embeds and publishes everything, and reports each stage."""
    progress: list[tuple[str, int, int]] = []
    with Pipeline(place) as made:
        report = made.run(in_paths([transcript]), lambda stage, done, total: progress.append((stage, done, total)))

    state = status_of(place)
    assert (report.ingested.changed, report.ingested.exchanges, report.observed, report.model) == (1, 1, 1, None)
    assert report.embedded == state.exchanges + sum(state.observations.values()) >= 2
    assert 0 < report.searchable <= report.complete
    assert (state.unobserved, state.unembedded, state.index_lag) == (0, 0, 0)
    assert found(place, "last column") == ["observation"]
    ends = {stage: (done, total) for stage, done, total in progress}
    assert list(ends) == ["Archiving", "Counting", "Observing", "Embedding", "Compressing"]
    assert ends.pop("Compressing") == (1, 1)  # the session ended more than a week ago
    assert all(done == total > 0 for done, total in ends.values())
    assert [(each.name, each.fails) for each in state.stages] == [
        (name, False) for name in ("archive", "backup", "compress", "embed", "observe", "publish", "verify-backups")
    ]


def test_the_second_run_has_no_work(place: Home, transcript: Path) -> None:
    """A run over the same files changes nothing and publishes nothing."""
    run(place, in_paths([transcript]))
    before = (place.index / "CURRENT").read_bytes()

    report = run(place, in_paths([transcript]))

    assert (report.ingested.seen, report.ingested.changed, report.observed, report.embedded) == (1, 0, 0, 0)
    assert (place.index / "CURRENT").read_bytes() == before


def test_the_second_run_finishes_the_first(place: Home, transcript: Path) -> None:
    """The next run completes the work of an interrupted run, even if the transcripts are gone."""

    class Interrupted(Exception):
        pass

    def stop(stage: str, _done: int, _total: int) -> None:
        if stage == "Observing":
            raise Interrupted

    with Pipeline(place) as made, pytest.raises(Interrupted):
        made.run(in_paths([transcript]), stop)
    assert found(place, "last column") == ["exchange"]
    shutil.rmtree(transcript.parent)

    report = run(place, [])

    assert (report.ingested.seen, report.observed) == (0, 1)
    assert found(place, "last column") == ["observation"]


def test_without_a_model_the_other_stages_complete(place: Home, transcript: Path, model: Model) -> None:
    """If the model is missing, the report has the reason, and a later run with a model embeds everything."""
    model(FakeEmbedder(missing=True))

    report = run(place, in_paths([transcript]))

    assert report.model is not None
    assert (report.observed, report.embedded) == (1, 0)
    assert found(place, "last column") == ["observation"]
    assert status_of(place).unembedded > 0
    model(FakeEmbedder())
    assert run(place, []).embedded > 0
    assert status_of(place).unembedded == 0


def test_work_of_another_process_is_left_to_it(place: Home, transcript: Path) -> None:
    """A run does not extract while another process extracts, and its report says so."""
    with Pipeline(place) as one, Store.open(place.database) as other, other.leases.hold(LEARNER):
        left = one.run(in_paths([transcript]))
        again = one.run(in_paths([transcript]))
    with Pipeline(place) as one:
        done = one.run(in_paths([transcript]))

    assert [each.elsewhere for each in (left, again, done)] == [True, True, False]
    assert (left.observed, done.observed) == (0, 1)


def test_only_one_run_at_a_time(place: Home, transcript: Path) -> None:
    """While another process runs a pipeline, a second run is refused at once."""
    place.make()
    with Store.create(place.database) as other, other.leases.hold(ARCHIVER), pytest.raises(LeaseHeld):
        run(place, in_paths([transcript]))
