"""The status counts archived content, and content that a stage has not processed yet."""

import shutil
from pathlib import Path

import pytest

from palaver.archiver.copies.raw_copy import RawArchive
from palaver.archiver.ingest.ingest import Ingest
from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.store import LEARNER, Store
from palaver.core.conversation import Session, SessionKind
from palaver.core.errors import StoreMissing
from palaver.core.home import Home
from palaver.core.observation import ObservationType
from palaver.observe.archive import Archive
from palaver.observe.upkeep import archive_status
from palaver.observe.upkeep.archive_status import projects_of, status_of
from palaver.templates.render import Renderer

from ...archiver.formats.claude_code.claude_lines import assistant, jsonl, text, user
from ...search.fake_embedder import FakeEmbedder
from ...search.history import History, Said, learned


@pytest.fixture(autouse=True)
def _model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_status, "load", FakeEmbedder().load)


@pytest.fixture
def history(tmp_path: Path) -> History:
    """Return an archive of two exchanges, one of them with observations."""
    made = History(tmp_path)
    first, _ = made.say("one", Said("brass kettle"), Said("copper pan"))
    made.learn(first, learned("kettle", ObservationType.DECISION), learned("steam"))
    return made


def test_no_archive(tmp_path: Path) -> None:
    """A home without an archive has no status, and no archive is created."""
    with pytest.raises(StoreMissing):
        status_of(Home(tmp_path / "nothing"))

    assert not (tmp_path / "nothing").exists()


def test_sessions_without_exchanges_are_counted_apart(history: History) -> None:
    """The status counts the sessions that lists contain. Sessions without an exchange have a count of their own."""
    with history.store.transaction():
        history.store.sessions.save(Session("test", "empty", project="one"))
        history.store.sessions.save(Session("test", "agent-1", SessionKind.SUBAGENT, project="one"))
    home = Home(history.folder)
    state = status_of(home)

    assert (state.sessions, state.empty_sessions) == (1, 2)
    with Archive(home) as archive:
        assert state.sessions == sum(each.sessions for each in projects_of(archive.store))
    page = Renderer().render("status", status=state)
    assert " 1 session, 2 exchanges (a prompt and all that follows it); 2 sessions without an exchange" in page


def test_progress_of_each_stage(history: History) -> None:
    """The status counts exchanges and entries that wait for a stage, and the counts decrease as they are processed."""
    state = status_of(Home(history.folder))
    assert (state.sessions, state.exchanges, state.observations) == (1, 2, {"decision": 1, "general": 1})
    assert (state.unobserved, state.unembedded) == (2, 4)
    assert state.index == "not built yet; search reads the archive until it is rebuilt"
    assert (state.index_usable, state.index_lag) == (False, history.store.changes.last())

    history.embed()
    history.publish()
    state = status_of(Home(history.folder))
    assert (state.unembedded, state.index_lag) == (0, 0)
    assert state.index == "5 texts, 4 vectors for semantic search, in index/gen-1"

    history.say("two", Said("silver spoon"))
    assert status_of(Home(history.folder)).index_lag == 1


def test_a_damaged_index(history: History) -> None:
    """A damaged index is reported as damaged, and every change counts as missing from it."""
    history.publish()
    (history.folder / "index" / "CURRENT").write_text("gen-7")
    state = status_of(Home(history.folder))

    assert state.index.startswith("damaged (")
    assert state.index_lag == history.store.changes.last()


def test_an_index_of_another_archive(history: History, tmp_path: Path) -> None:
    """An index that belongs to another archive, for example after a backup is restored, is reported with this cause."""
    history.publish()
    place = Home(tmp_path / "restored")
    place.make()
    Store.create(place.database).close()
    shutil.copytree(history.folder / "index", place.index)

    state = status_of(place)

    assert state.index == "built from another archive; search reads the archive until it is rebuilt"
    assert state.index_lag == 0


def test_every_line_is_accounted_for(tmp_path: Path) -> None:
    """Lines are parsed, repeated or skipped for a reason. Unreadable files are listed with the reason."""
    source, place = tmp_path / "source" / "-work-app", Home(tmp_path / "home")
    source.mkdir(parents=True)
    lines = jsonl([user("a question", uuid="1"), assistant(text("an answer"), uuid="2"), b"not json", b""])
    (source / "33333333-0000-4000-8000-000000000003.jsonl").write_bytes(lines + b'{"type":"us')
    (source / "44444444-0000-4000-8000-000000000004.jsonl").write_bytes(lines)
    transcripts = in_paths([tmp_path / "source"])
    unreadable = source / "44444444-0000-4000-8000-000000000004.jsonl"
    unreadable.unlink()
    unreadable.mkdir()
    place.make()
    with Store.create(place.database) as store:
        Ingest(store, RawArchive(place.archive)).run(transcripts)

    state = status_of(place)

    assert (state.files, state.lines, state.parsed, state.pending_bytes) == (1, 4, 2, len(b'{"type":"us'))
    assert state.lines == state.parsed + state.repeated + sum(state.skipped.values())
    assert sum(state.skipped.values()) == 2
    assert state.unaccounted == []
    [(path, reason)] = state.problems
    assert path == unreadable
    assert reason


def test_a_copy_whose_lines_do_not_add_up_is_listed(history: History) -> None:
    """A copy is listed if its categories of lines do not add up to its lines, even if the totals of all agree."""
    history.say("two", Said("silver spoon"))
    good, bad = history.store.sources.all()
    with history.store.transaction():
        bad.lines += 1
        good.lines -= 1
        history.store.sources.save(bad)
        history.store.sources.save(good)

    state = status_of(Home(history.folder))

    expected = [(source.archived, source.lines, sum(source.coverage.values())) for source in (good, bad)]
    assert state.unaccounted == expected


def test_the_status_shows_the_progress_of_a_running_process(history: History) -> None:
    """While a process embeds, the status shows its stage and its steps, and does not advise another run."""
    idle = status_of(Home(history.folder))
    assert idle.running == []
    assert "Run `palaver archive`" in Renderer(at_shell=True).render("status", status=idle)

    with history.store.leases.hold(LEARNER):
        history.store.leases.reporter(LEARNER)("Embedding", 352, 1_439)
        busy = Renderer(at_shell=True).render("status", status=status_of(Home(history.folder)))
    assert "Now: Embedding, 352 of 1,439 (process " in busy
    assert "Run `palaver archive`" not in busy
