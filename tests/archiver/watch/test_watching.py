"""Does every line arrive within one scan interval, whatever becomes of the events?"""

import os
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from palaver.archiver.copies.raw import Copied, RawArchive
from palaver.archiver.store import ARCHIVER, Source, Store
from palaver.archiver.watch.events import Heard
from palaver.archiver.watch.scanning import Folder, Scan
from palaver.archiver.watch.watching import SCAN, Watch
from palaver.core.errors import SourceUnreadable
from palaver.core.home import Home

from ..formats.claude_code.claude_lines import written
from ..history import talk

NUMBER = "11111111-0000-4000-8000-00000000000"


class Times:
    """Clocks that a test sets."""

    def __init__(self) -> None:
        self.now, self.day = 1_000.0, 1_700_000_000.0

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> float:
        return self.day

    def pass_by(self, seconds: float) -> None:
        self.now += seconds
        self.day += seconds


class Ears:
    """Events that a test makes; without any, all are lost without a word."""

    def __init__(self) -> None:
        self.deaf = ""
        self.followed: list[set[Path]] = []
        self.closed = 0
        self.next = Heard()

    def follow(self, folders: Collection[Folder]) -> None:
        self.followed.append({folder.path for folder in folders})

    def wait(self) -> Heard:
        heard, self.next = self.next, Heard()
        return heard

    def close(self) -> None:
        self.closed += 1


class World:
    """A user's folder, and the archive that follows it."""

    def __init__(self, root: Path, store: Store, home: Home) -> None:
        self.projects, self.store = root / ".claude" / "projects", store
        self.times, self.ears = Times(), Ears()
        self.watch = Watch(store, RawArchive(home.archive), Scan(), self.ears, self.times)

    def path(self, number: int, folder: str = "shop") -> Path:
        return self.projects / folder / f"{NUMBER}{number}.jsonl"

    def write(self, word: str, number: int = 1, folder: str = "shop") -> Path:
        """Add an exchange to a session."""
        path = self.path(number, folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(written(talk(word, session=path.stem)))
        return path

    def prompts(self) -> list[str]:
        keys = self.store.items.all_keys()
        return [each.exchange.prompt for each in self.store.exchanges.load(keys).values()] if keys else []

    def settle(self) -> None:
        """Start, look, listen, look again."""
        for _ in range(3):
            self.watch.round()

    def after(self, seconds: float) -> list[str]:
        """What is archived when so much time went by and nothing was heard."""
        self.times.pass_by(seconds)
        self.watch.round()
        return self.prompts()


@pytest.fixture
def world(home: Path, tmp_path: Path) -> Iterator[World]:
    place = Home(tmp_path / "palaver")
    place.make()
    (home / ".claude" / "projects").mkdir(parents=True)
    with Store.create(place.database) as store:
        yield World(home, store, place)


def test_at_the_start_everything_is_looked_at(world: World) -> None:
    """What was written while nobody watched is taken up at once, and then its folders are listened to."""
    world.write("before")

    world.watch.round()

    assert world.prompts() == ["before?"]
    assert world.ears.followed == [{world.projects}]


def test_what_is_written_before_listening_begins(world: World) -> None:
    """There is a second look once the folders are listened to: between the first and that nothing is heard."""
    world.watch.round()
    world.write("between")

    world.watch.round()

    assert world.prompts() == ["between?"]


def test_a_hint_is_followed_at_once(world: World) -> None:
    """A line in a known file is taken up when it is heard of, and nothing else is looked at."""
    path = world.write("one")
    other = world.write("other", 2)
    world.settle()
    world.write("two")
    world.write("unheard", 2)
    world.ears.next = Heard(frozenset({path}))

    assert world.after(0.1) == ["one?", "other?", "two?"]
    world.ears.next = Heard(frozenset({other}))
    assert world.after(0.1) == ["one?", "other?", "two?", "unheard?"]


def test_a_new_folder_is_looked_into(world: World) -> None:
    """The event of a folder says nothing of the files that are in it by then; they are found all the same."""
    world.settle()
    path = world.write("new", folder="fresh")
    world.ears.next = Heard(frozenset({path.parent}))

    assert world.after(0.1) == ["new?"]


def test_a_new_file_waits_for_no_look_at_everything(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a look at everything takes seconds, a file in a folder that was made just before is taken up at once."""
    look = Scan.look

    def slow(self: Scan) -> object:
        world.times.pass_by(5.0)
        return look(self)

    monkeypatch.setattr(Scan, "look", slow)
    world.settle()
    fresh = world.projects / "fresh"
    fresh.mkdir()
    world.ears.next = Heard(frozenset({fresh}))
    assert world.after(0.1) == []
    world.ears.next = Heard(frozenset({world.write("new", folder="fresh")}))

    assert world.after(0.3) == ["new?"]


def test_what_was_not_heard_of_makes_it_listen_anew(world: World) -> None:
    """A line that only a regular look found is a sign that not everything is heard: listening begins again."""
    path = world.write("one")
    world.settle()
    world.after(SCAN)
    assert world.ears.closed == 0
    world.write("two")
    os.utime(path, (world.times.day, world.times.day + SCAN - 1))  # its event is on its way
    assert world.after(SCAN) == ["one?", "two?"]
    assert world.ears.closed == 0

    world.write("three")
    os.utime(path, (world.times.day, world.times.day + 1))
    assert world.after(SCAN) == ["one?", "two?", "three?"]
    assert world.ears.closed == 1


def test_without_any_event(world: World) -> None:
    """With every event lost, each line arrives within one scan interval, in old files and new."""
    world.write("one")
    world.settle()
    world.write("two")
    world.write("three", 2, "fresh")

    assert world.after(SCAN - 1) == ["one?"]
    assert sorted(world.after(1.1)) == ["one?", "three?", "two?"]


@pytest.mark.parametrize("reason", ["watch limit reached", "a network"])
def test_where_nothing_can_be_heard(world: World, reason: str) -> None:
    """Folders that tell nothing are looked at every second."""
    world.settle()
    world.ears.deaf = reason
    world.after(SCAN)
    world.write("one")

    assert world.after(1.1) == ["one?"]


def test_after_events_were_lost(world: World) -> None:
    """When the watcher broke off, everything is looked at, at once."""
    world.settle()
    world.write("one")
    world.ears.next = Heard(lost=True)

    assert world.after(0.1) == ["one?"]


@pytest.mark.parametrize("jump", [8 * 3600.0, -10 * 365 * 86_400.0, 10 * 365 * 86_400.0])
def test_after_sleep(world: World, jump: float) -> None:
    """When the clocks part, as they do in sleep or when the date is set, everything is looked at, at once."""
    world.settle()
    world.write("one")
    world.times.day += jump

    assert world.after(0.1) == ["one?"]
    world.write("two")
    assert world.after(0.1) == ["one?"]
    assert world.after(SCAN) == ["one?", "two?"]


def test_a_folder_that_is_deleted_and_made_again(world: World) -> None:
    """Nothing is heard of a folder made again under its old name: it is noticed, looked at and listened to anew."""
    world.write("one")
    world.settle()
    world.projects.rename(world.projects.with_name("moved"))
    assert world.after(0.1) == ["one?"]
    world.write("two", 2)

    assert world.after(1.0) == ["one?", "two?"]
    assert world.ears.followed == [{world.projects}, set(), {world.projects}]
    world.write("three", 3)
    assert "three?" in world.after(1.0)


def test_an_agent_that_is_installed_later(world: World, home: Path) -> None:
    """The folder of another agent is noticed within a second of its appearing."""
    world.settle()
    (home / ".codex" / "sessions").mkdir(parents=True)

    world.after(1.0)

    assert world.ears.followed[-1] == {world.projects, home / ".codex" / "sessions"}


def test_what_a_link_leads_to(world: World, tmp_path: Path) -> None:
    """The folder of a linked file is watched, and a hint from there is followed."""
    away = tmp_path / "away"
    away.mkdir()
    path = away / f"{NUMBER}1.jsonl"
    (world.projects / path.name).symlink_to(path)
    path.write_bytes(written(talk("one", session=path.stem)))
    world.settle()
    assert world.ears.followed[-1] == {world.projects, away}
    path.write_bytes(written(talk("one", "two", session=path.stem)))
    world.ears.next = Heard(frozenset({path}))

    assert world.after(0.1) == ["one?", "two?"]


def test_while_another_process_archives(world: World) -> None:
    """A line that is heard of while another process archives is taken up as soon as that is done."""
    path = world.write("one")
    world.settle()
    world.write("two")
    world.ears.next = Heard(frozenset({path}))
    with world.store.leases.hold(ARCHIVER):
        assert world.after(0.1) == ["one?"]

    assert world.after(1.1) == ["one?", "two?"]


def test_a_file_that_cannot_be_read_is_tried_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that cannot be read is a problem of its own: the others go on, and it is tried again after a minute."""
    path = world.write("one")
    world.write("other", 2)
    copy = RawArchive.copy

    def refused(
        self: RawArchive, source: Path, archived: str, known: Source | None = None, *, rewrite: bool = False
    ) -> Copied:
        if source == path:
            raise SourceUnreadable(source, "permission denied")
        return copy(self, source, archived, known, rewrite=rewrite)

    with monkeypatch.context() as patch:
        patch.setattr(RawArchive, "copy", refused)
        world.settle()
    assert world.prompts() == ["other?"]
    [state] = [each for each in world.store.stages.all() if each.name == "archive"]
    assert state.fails
    assert state.problem == f"{path}: permission denied"

    assert world.after(SCAN + 1) == ["other?"]
    assert sorted(world.after(61)) == ["one?", "other?"]


def test_hints_that_lead_nowhere_cost_little(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events of files that are no transcripts make no more looks than their price allows."""
    looks = 0
    look = Scan.look

    def counted(self: Scan) -> object:
        nonlocal looks
        looks += 1
        world.times.pass_by(1.0)  # what a look at very many files takes
        return look(self)

    monkeypatch.setattr(Scan, "look", counted)
    world.settle()
    looks = 0
    for _ in range(100):
        world.ears.next = Heard(frozenset({world.projects / "noise"}))
        world.after(0.1)

    assert looks <= 3
