"""Lines that several sessions share belong to the session that contained them first."""

# pyright: reportPrivateUsage=false

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import apsw
import pytest

from palaver.archiver.copies.raw_copy import RawArchive
from palaver.archiver.deletion.deletions import Deletions
from palaver.archiver.ingest.ingest import Ingest
from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.reading.lineage import Copies, Lineage
from palaver.archiver.store import Store
from palaver.core import ids
from palaver.core.deletion import DeletionRequest
from palaver.core.home import Home
from palaver.core.observation import Evidence, Observation, ObservationType

from ..formats.codex import codex_lines
from ..formats.container_files import database
from ..history import FORK, ORIGINAL, History, talk

THIRD = "33333333-0000-4000-8000-000000000003"


def fork_lines(*words: str, session: str, origin: str) -> list[dict[str, Any]]:
    """Return the lines that a fork repeats. Each line contains the ID of its original session."""
    return [{**line, "forkedFrom": {"sessionId": origin, "messageUuid": "m"}} for line in talk(*words, session=session)]


def repeating_sessions(history: History, session: str) -> list[tuple[str, ...]]:
    """Return, for each exchange of a session, the other sessions that repeat it."""
    number = history.store.sessions.find("claude-code", session)
    keys = [each.key for each in history.stored() if each.session == number]
    found = history.store.repetitions.of_exchanges(keys)
    return [found.get(key, ()) for key in keys]


@pytest.mark.parametrize("runs", [1, 2])
def test_lines_belong_to_the_origin_of_a_fork(history: History, runs: int) -> None:
    """Shared lines belong to the origin, even if it was modified or ingested last. Moved exchanges keep their IDs."""
    history.write([*fork_lines("one", "two", session=FORK, origin=ORIGINAL), *talk("apart", session=FORK)], FORK, at=1)
    known = dict[str, int]()
    if runs == 2:
        history.ingest()
        assert history.prompts(FORK) == ["one?", "two?", "apart?"]
        known = {each.exchange.prompt: each.key for each in history.stored()}
    history.write(talk("one", "two", "on"), at=2)
    history.ingest()

    assert history.prompts() == ["one?", "two?", "on?"]
    assert history.prompts(FORK) == ["apart?"]
    assert repeating_sessions(history, ORIGINAL) == [(FORK,), (FORK,), ()]
    assert history.session(FORK).title == "apart?"
    assert history.ingest().reread == 0
    now = {each.exchange.prompt: each.key for each in history.stored()}
    assert now.items() >= known.items()
    assert now["on?"] not in known.values()


def test_extracted_observations_move_to_the_origin(history: History) -> None:
    """Observations of a language model move from a fork to its origin. Rules observe moved exchanges again."""
    shared = fork_lines("one", "two", "three", session=FORK, origin=ORIGINAL)
    history.write([*shared, *talk("apart", session=FORK)], FORK, at=1)
    history.ingest()
    store, known_keys = history.store, dict[str, int]()
    with store.transaction():
        for stored in history.stored():
            by = "rules" if stored.exchange.prompt == "two?" else "llm:model:1"
            proof = (Evidence(stored.exchange.turns[0].line, stored.exchange.turns[-1].line, stored.exchange.prompt),)
            title = stored.exchange.prompt
            fact = Observation(ObservationType.DECISION, title, "", "", (), (), (), (), evidence=proof, extractor=by)
            store.observations.replace(stored.key, stored.session, [fact], by)
            [each] = store.observations.of_exchange(stored.key)
            known_keys[title] = each.key
    before = history.stored()

    own = [*talk("zero", "one", "two"), *talk("three")[:1], *talk("on")]
    history.write(own, at=2)
    history.ingest()

    now = {each.exchange.prompt: each for each in history.stored()}
    found = store.observations.of_exchanges([each.key for each in now.values()])
    locations = {name: [(each.key, each.session) for each in found.get(stored.key, ())] for name, stored in now.items()}
    session, fork = (store.sessions.find("claude-code", each) for each in (ORIGINAL, FORK))
    assert locations == {
        "zero?": [],
        "one?": [(known_keys["one?"], session)],
        "two?": [(known_keys["two?"], session)],
        "three?": [],
        "on?": [],
        "": [],
        "apart?": [(known_keys["apart?"], fork)],
    }
    [one] = found[now["one?"].key]
    assert one.observation.evidence == (Evidence(3, 4, "one?"),)
    assert (now["one?"].exchange.span.start_line, now["one?"].source) == (3, history.source().id)
    assert now["two?"].key in {each.key for each in store.exchanges.unobserved("rules", 9)}
    assert now["one?"].key not in {each.key for each in store.exchanges.unobserved("rules", 9)}
    assert {each.key for each in before} & {each.key for each in now.values()} == {
        now[name].key for name in ("one?", "two?", "apart?")
    }
    assert not store.integrity.without_evidence()


def test_an_archive_of_an_earlier_version_is_corrected(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines that an earlier version attributed to a fork move to its origin when the copies are read again."""

    def none(*_: object, **__: object) -> Copies:
        return Copies()

    history.write([*fork_lines("one", "two", session=FORK, origin=ORIGINAL), *talk("apart", session=FORK)], FORK, at=1)
    history.write(talk("one", "two", "on"), at=2)
    with monkeypatch.context() as earlier:
        earlier.setattr(Lineage, "copies", none)
        history.ingest()
    assert (history.prompts(), history.prompts(FORK)) == (["on?"], ["one?", "two?", "apart?"])
    keys = {each.exchange.prompt: each.key for each in history.stored()}
    with history.store.transaction():
        history.store._database.run("UPDATE source SET rules = '3'")

    tally = Ingest(history.store, history.raw).run([], budget=0)
    assert (tally.reread, tally.outdated, history.prompts()) == (0, 2, ["on?"])
    assert history.ingest().outdated == 0

    assert (sorted(history.prompts()), history.prompts(FORK)) == (["on?", "one?", "two?"], ["apart?"])
    assert {each.exchange.prompt: each.key for each in history.stored()} == keys
    assert history.ingest().reread == 0


def test_codex_forks_refer_to_their_origin(history: History) -> None:
    """The header of a Codex fork contains the ID of its origin, so shared lines belong to the origin."""
    shared = [*codex_lines.user_prompt("one?"), *codex_lines.agent_reply("one!")]
    fork = [
        codex_lines.meta(forked_from_id=codex_lines.PARENT),
        codex_lines.meta(id=codex_lines.PARENT),
        *shared,
        *codex_lines.user_prompt("apart?"),
    ]
    history.write(fork, codex_lines.SESSION, at=1)
    history.write(
        [codex_lines.meta(id=codex_lines.PARENT), *shared, *codex_lines.user_prompt("on?")], codex_lines.PARENT, at=2
    )
    history.ingest()
    prompts = [(history.store.sessions.load(each.session).native_id, each.exchange.prompt) for each in history.stored()]

    assert sorted(prompts) == [
        (codex_lines.SESSION, "apart?"),
        (codex_lines.PARENT, "on?"),
        (codex_lines.PARENT, "one?"),
    ]


def test_a_fork_without_its_origin_is_complete(history: History) -> None:
    """A fork keeps lines that it repeats until its origin contains them."""
    history.write(talk("one"), at=1)
    history.ingest()
    history.write(fork_lines("one", "two", session=FORK, origin=ORIGINAL), FORK, at=2)
    history.ingest()
    assert (history.prompts(), history.prompts(FORK)) == (["one?"], ["two?"])

    history.append(talk("two", "three"), at=3)
    history.ingest()

    assert (history.prompts(), history.prompts(FORK)) == (["one?", "two?", "three?"], [])
    assert repeating_sessions(history, ORIGINAL) == [(FORK,), (FORK,), ()]


@pytest.mark.parametrize("ages", [*permutations((1, 2, 3))], ids=lambda ages: "".join(map(str, ages)))
@pytest.mark.parametrize("runs", [1, 3])
def test_lines_of_nested_forks_belong_to_the_first(history: History, ages: tuple[int, ...], runs: int) -> None:
    """For any ages and ingest order of nested forks, each line belongs to the first session that contained it."""
    files = {
        ORIGINAL: talk("one"),
        FORK: [*fork_lines("one", session=FORK, origin=ORIGINAL), *talk("two", session=FORK)],
        THIRD: [*fork_lines("one", "two", session=THIRD, origin=FORK), *talk("three", session=THIRD)],
    }
    for at, (session, lines) in sorted(zip(ages, files.items(), strict=True)):
        history.write(lines, session, at=at)
        if runs == 3:
            history.ingest()
    for _ in range(3):
        history.ingest()

    assert [history.prompts(session) for session in files] == [["one?"], ["two?"], ["three?"]]
    assert [sorted(*repeating_sessions(history, session)) for session in files] == [[FORK, THIRD], [THIRD], []]
    assert history.ingest().reread == 0


@pytest.mark.parametrize("ages", [*permutations((1, 2, 3))], ids=lambda ages: "".join(map(str, ages)))
def test_a_cycle_of_forks_is_harmless(history: History, ages: tuple[int, ...]) -> None:
    """Sessions that claim to be forks of each other lose no line and are not read again in every run."""
    names = (ORIGINAL, FORK, THIRD)
    for at, session, origin in zip(ages, names, (FORK, THIRD, ORIGINAL), strict=True):
        history.write(fork_lines("one", session=session, origin=origin), session, at=at)
        history.ingest()
    for _ in range(4):
        history.ingest()

    assert sorted(prompt for session in names for prompt in history.prompts(session)) == ["one?"]
    assert history.ingest().reread == 0


# Conversations that an agent stored in a database and, with less detail, in a file.


NAME = "0b7d0000-0000-4000-8000-00000000000a"
TABLE = "CREATE TABLE ItemTable (key TEXT, value BLOB); CREATE TABLE cursorDiskKV (key TEXT UNIQUE, value BLOB);"
PUT = "INSERT OR REPLACE INTO cursorDiskKV VALUES (?, ?)"


class Twice:
    """An archive, and a conversation of Cursor in a database and in an agent transcript."""

    def __init__(self, root: Path) -> None:
        self.home = Home(root / "home")
        self.home.make()
        self.raw, self.store = RawArchive(self.home.archive), Store.create(self.home.database)
        self.file = root / "projects" / "home-demo-shop" / "agent-transcripts" / NAME / f"{NAME}.jsonl"
        self.file.parent.mkdir(parents=True)
        self.editor = root / "globalStorage" / "state.vscdb"
        self.program: apsw.Connection = database(self.editor, TABLE)

    def write_file(self, prompts: Sequence[str], reply: str = "Done") -> None:
        texts = [(role, text) for prompt in prompts for role, text in (("user", prompt), ("assistant", reply))]
        rows = [{"role": role, "message": {"content": [{"type": "text", "text": text}]}} for role, text in texts]
        self.file.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def write_database(self, prompts: Sequence[str], reply: str = "Done in full: ") -> None:
        self.program.execute(PUT, (f"composerData:{NAME}", json.dumps({"name": "Shop"})))
        for number, prompt in enumerate(prompts):
            for kind, text in ((1, prompt), (2, f"{reply}{prompt}")):
                bubble = {"type": kind, "text": text, "createdAt": f"2026-05-04T09:0{number}:0{kind}Z"}
                self.program.execute(PUT, (f"bubbleId:{NAME}:b{number}{kind}", json.dumps(bubble)))

    def ingest(self, *paths: Path) -> None:
        assert Ingest(self.store, self.raw).run(in_paths(paths)).problems == []

    def forget(self, prompt: str, *, erase: bool = False) -> int:
        deletions, key = Deletions(self.store, self.raw), self.exchanges()[prompt]
        return deletions.delete(deletions.plan(DeletionRequest((ids.show("exchange", key),), erase=erase)))

    def exchanges(self) -> dict[str, int]:
        """Return the key of each exchange by its prompt. Fail if two exchanges have the same prompt."""
        stored = self.store.exchanges.load(self.store.items.all_keys()).values()
        found = {each.exchange.prompt: each.key for each in stored}
        assert len(found) == len(stored)
        return found

    def replies(self) -> list[str]:
        stored = self.store.exchanges.load(self.store.items.all_keys()).values()
        return [each.exchange.answer for each in stored]


@pytest.fixture
def twice(tmp_path: Path) -> Iterator[Twice]:
    made = Twice(tmp_path)
    yield made
    made.program.close()
    made.store.close()


def test_the_database_is_preferred_whichever_is_archived_first(twice: Twice) -> None:
    """Each prompt is archived once, with the reply in the database. An exchange that only the file has is kept."""
    orders: list[tuple[Callable[[], None], ...]] = [
        (lambda: twice.ingest(twice.file), lambda: twice.ingest(twice.editor)),
        (lambda: twice.ingest(twice.editor), lambda: twice.ingest(twice.file)),
    ]
    twice.write_file(["One?", "Two?", "Two?", "Only here?"])
    twice.write_database(["One?", "Two?", "Two?"])
    for first, second in orders:
        first()
        second()
        stored = twice.store.exchanges.load(twice.store.items.all_keys()).values()

        assert sorted(each.exchange.answer for each in stored) == [
            *("Done", "Done in full: One?", "Done in full: Two?", "Done in full: Two?"),
        ]
        assert {each.session for each in stored} == {1}
        assert [each.exchange.started is None for each in stored].count(True) == 1
    twice.write_database(["One?", "Two?", "Two?", "Only here?"])
    twice.ingest(twice.editor)

    assert sorted(twice.replies()) == [
        *("Done in full: One?", "Done in full: Only here?", "Done in full: Two?", "Done in full: Two?"),
    ]
    assert twice.store.sources.unaccounted() == []


def test_the_database_is_preferred_if_the_file_has_the_same_replies(twice: Twice) -> None:
    """The file is never the original of the database, so the exchanges have the times of the database."""
    twice.write_file(["One?", "Two?"], reply="On it: One?")
    twice.write_database(["One?", "Two?"], reply="On it: ")
    for path in (twice.file, twice.editor, twice.file):
        twice.ingest(path)
        twice.store.sources.outdate()
    twice.ingest(twice.file, twice.editor)
    stored = twice.store.exchanges.load(twice.store.items.all_keys()).values()

    assert sorted(each.exchange.prompt for each in stored) == ["One?", "Two?"]
    assert None not in {each.exchange.started for each in stored}
    assert twice.store.sources.unaccounted() == []


def test_a_growing_file_adds_nothing_that_the_database_has(twice: Twice) -> None:
    """A file is compared with the database each time it has grown."""
    prompts = ["One?", "Two?", "Three?", "Four?"]
    for count in range(1, 5):
        twice.write_file(prompts[:count])
        twice.ingest(twice.file)
        twice.write_database(prompts[:count])
        twice.ingest(twice.editor)

    assert sorted(twice.exchanges()) == sorted(prompts)
    assert twice.store.sources.unaccounted() == []


def test_the_session_is_read_from_the_database(twice: Twice) -> None:
    """Reading the session shows the database's copy, even if the file has more lines."""
    twice.write_file(["One?", "Two?"])
    twice.write_database(["One?", "Two?"])
    twice.ingest(twice.file, twice.editor)
    twice.file.write_text(twice.file.read_text() + '{"type": "turn_ended"}\n' * 9)
    twice.ingest(twice.file)
    source = twice.store.sources.main(1)

    assert source is not None
    assert source.archived.startswith("cursor/globalStorage/")


@pytest.mark.parametrize("erase", [False, True])
def test_a_deleted_exchange_does_not_return_from_the_file(twice: Twice, erase: bool) -> None:
    """Deleting an exchange of the database also deletes its lines in the file, until the deletion is undone."""
    twice.write_file(["One?", "Two?"])
    twice.write_database(["One?", "Two?"])
    twice.ingest(twice.file, twice.editor)

    number = twice.forget("One?", erase=erase)
    twice.ingest(twice.file, twice.editor)
    twice.store.sources.outdate()
    twice.ingest(twice.file, twice.editor)

    assert list(twice.exchanges()) == ["Two?"]
    copies = b"".join(path.read_bytes() for path in twice.home.archive.rglob("*.jsonl"))
    assert (b"One?" in copies) is not erase
    twice.forget("Two?", erase=erase)
    twice.ingest(twice.file, twice.editor)
    assert twice.exchanges() == {}
    if not erase:
        Deletions(twice.store, twice.raw).undo(number)
        twice.ingest(twice.file, twice.editor)
        assert twice.exchanges().keys() == {"One?"}
        assert twice.replies() == ["Done in full: One?"]
