"""Every line is ingested within one scan interval, even if events are lost."""

from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from palaver.archiver.copies.raw_copy import Copied, RawArchive
from palaver.archiver.store import ARCHIVER, Source, Store
from palaver.archiver.watch.file_events import Changes, FileEvents, TranscriptScan, WatchedFolder
from palaver.archiver.watch.watchers import SCAN, TranscriptWatcher
from palaver.core.errors import SourceUnreadable
from palaver.core.home import Home

from ..formats.claude_code.claude_lines import jsonl
from ..history import talk

NUMBER = "11111111-0000-4000-8000-00000000000"


class ScriptedEvents(FileEvents):
    """Source of events that a test sets. By default, no events arrive."""

    def __init__(self) -> None:
        super().__init__()
        self.misses = False
        self.followed: list[set[Path]] = []
        self.closed = 0
        self.next = Changes()

    @property
    def may_miss_changes(self) -> bool:
        return self.misses

    def follow(self, folders: Collection[WatchedFolder]) -> None:
        self.followed.append({folder.path for folder in folders})

    def wait(self) -> Changes:
        changes, self.next = self.next, Changes()
        return changes

    def close(self) -> None:
        self.closed += 1


class World:
    """User's transcripts, the watcher that archives them, and a clock that the test advances."""

    def __init__(self, root: Path, store: Store, home: Home) -> None:
        self.projects, self.store = root / ".claude" / "projects", store
        self.now, self.events = 1_000.0, ScriptedEvents()
        self.watch = TranscriptWatcher(store, RawArchive(home.archive), TranscriptScan(), self.events, self._clock)

    def _clock(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds

    def path(self, number: int, folder: str = "shop") -> Path:
        return self.projects / folder / f"{NUMBER}{number}.jsonl"

    def write(self, word: str, number: int = 1, folder: str = "shop") -> Path:
        """Add an exchange to a session."""
        path = self.path(number, folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(jsonl(talk(word, session=path.stem)))
        return path

    def prompts(self) -> list[str]:
        keys = self.store.items.all_keys()
        return [each.exchange.prompt for each in self.store.exchanges.load(keys).values()] if keys else []

    def settle(self) -> None:
        """Scan, listen, and scan again."""
        for _ in range(3):
            self.watch.step()

    def after(self, seconds: float) -> list[str]:
        """Advance the clock, run one step, and return the stored prompts."""
        self.advance(seconds)
        self.watch.step()
        return self.prompts()


@pytest.fixture
def world(home: Path, tmp_path: Path) -> Iterator[World]:
    place = Home(tmp_path / "palaver")
    place.make()
    (home / ".claude" / "projects").mkdir(parents=True)
    with Store.create(place.database) as store:
        yield World(home, store, place)


def test_the_first_step_scans_everything(world: World) -> None:
    """The first step ingests lines from before the start, and follows the transcript folders."""
    world.write("before")

    world.watch.step()

    assert world.prompts() == ["before?"]
    assert world.events.followed == [{world.projects}]


def test_a_second_scan_follows_when_listening_begins(world: World) -> None:
    """Lines that were written between the first scan and the start of listening are ingested by a second scan."""
    world.watch.step()
    world.write("between")

    world.watch.step()

    assert world.prompts() == ["between?"]


def test_an_event_causes_no_full_scan(world: World) -> None:
    """An event for a known file ingests that file and no other."""
    path = world.write("one")
    other = world.write("other", 2)
    world.settle()
    world.write("two")
    world.write("unseen", 2)
    world.events.next = Changes(frozenset({path}))

    assert world.after(0.1) == ["one?", "other?", "two?"]
    world.events.next = Changes(frozenset({other}))
    assert world.after(0.1) == ["one?", "other?", "two?", "unseen?"]


def test_a_new_folder_is_searched(world: World) -> None:
    """An event for a new folder ingests the files in the folder."""
    world.settle()
    path = world.write("new", folder="fresh")
    world.events.next = Changes(frozenset({path.parent}))

    assert world.after(0.1) == ["new?"]


def test_a_new_file_does_not_wait_for_a_full_scan(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file in a new folder is ingested immediately, even if a full scan takes seconds."""
    scan = TranscriptScan.all_changed

    def slow(self: TranscriptScan) -> object:
        world.advance(5.0)
        return scan(self)

    monkeypatch.setattr(TranscriptScan, "all_changed", slow)
    world.settle()
    fresh = world.projects / "fresh"
    fresh.mkdir()
    world.events.next = Changes(frozenset({fresh}))
    assert world.after(0.1) == []
    world.events.next = Changes(frozenset({world.write("new", folder="fresh")}))

    assert world.after(0.3) == ["new?"]


def test_lines_are_ingested_without_events(world: World) -> None:
    """If every event is lost, lines in known and new files are ingested within one scan interval."""
    world.write("one")
    world.settle()
    world.write("two")
    world.write("three", 2, "fresh")

    assert world.after(SCAN - 1) == ["one?"]
    assert sorted(world.after(1.1)) == ["one?", "three?", "two?"]


def test_unreliable_events_cause_a_scan_each_second(world: World) -> None:
    """While changes may be missed, all transcripts are scanned every second."""
    world.settle()
    world.events.misses = True
    world.after(SCAN)
    world.write("one")

    assert world.after(1.1) == ["one?"]


def test_lost_events_cause_a_full_scan(world: World) -> None:
    """If events were lost, all transcripts are scanned at once."""
    world.settle()
    world.write("one")
    world.events.next = Changes(lost=True)

    assert world.after(0.1) == ["one?"]


def test_a_recreated_folder_is_followed_again(world: World) -> None:
    """A recreated folder is scanned and followed within one scan interval."""
    world.write("one")
    world.settle()
    world.projects.rename(world.projects.with_name("moved"))
    assert world.after(SCAN) == ["one?"]
    world.write("two", 2)

    assert world.after(SCAN) == ["one?", "two?"]
    assert world.events.followed == [{world.projects}, set(), {world.projects}]
    world.write("three", 3)
    assert "three?" in world.after(1.0)


def test_the_folder_of_a_new_agent_is_followed(world: World, home: Path) -> None:
    """The folder of an agent that is installed later is followed within one scan interval."""
    world.settle()
    (home / ".codex" / "sessions").mkdir(parents=True)

    world.after(SCAN)

    assert world.events.followed[-1] == {world.projects, home / ".codex" / "sessions"}


def test_the_target_of_a_link_is_followed(world: World, tmp_path: Path) -> None:
    """The folder of a linked file is followed, and its events ingest the file."""
    away = tmp_path / "away"
    away.mkdir()
    path = away / f"{NUMBER}1.jsonl"
    (world.projects / path.name).symlink_to(path)
    path.write_bytes(jsonl(talk("one", session=path.stem)))
    world.settle()
    assert world.events.followed[-1] == {world.projects, away}
    path.write_bytes(jsonl(talk("one", "two", session=path.stem)))
    world.events.next = Changes(frozenset({path}))

    assert world.after(0.1) == ["one?", "two?"]


def test_a_line_waits_for_another_process(world: World) -> None:
    """A line that arrives while another process ingests is ingested a second later."""
    path = world.write("one")
    world.settle()
    world.write("two")
    world.events.next = Changes(frozenset({path}))
    with world.store.leases.hold(ARCHIVER):
        assert world.after(0.1) == ["one?"]

    assert world.after(1.1) == ["one?", "two?"]


def test_an_unreadable_file_is_tried_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unreadable file is reported, does not block other files, and is tried again after a minute."""
    path = world.write("one")
    world.write("other", 2)
    copy = RawArchive.copy

    def refuse(
        self: RawArchive, source: Path, archived: str, known: Source | None = None, *, rewrite: bool = False
    ) -> Copied:
        if source == path:
            raise SourceUnreadable(source, "permission denied")
        return copy(self, source, archived, known, rewrite=rewrite)

    with monkeypatch.context() as patch:
        patch.setattr(RawArchive, "copy", refuse)
        world.settle()
    assert world.prompts() == ["other?"]
    [state] = [each for each in world.store.stages.all() if each.name == "archive"]
    assert state.fails
    assert state.problem == f"{path}: permission denied"

    assert world.after(SCAN + 1) == ["other?"]
    assert sorted(world.after(61)) == ["one?", "other?"]


def test_unrelated_events_cause_few_scans(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a scan is slow, events for files that are not transcripts cause few full scans."""
    scans = 0
    scan = TranscriptScan.all_changed

    def counted(self: TranscriptScan) -> object:
        nonlocal scans
        scans += 1
        world.advance(1.0)  # as a scan of very many files
        return scan(self)

    monkeypatch.setattr(TranscriptScan, "all_changed", counted)
    world.settle()
    scans = 0
    for _ in range(100):
        world.events.next = Changes(frozenset({world.projects / "noise"}))
        world.after(0.1)

    assert scans <= 3
