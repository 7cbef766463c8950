"""A deletion is complete from preview to verification, even if the process is killed at any step."""

# pyright: reportPrivateUsage=false

import random
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.store import PlannedCall, Store
from palaver.core import ids
from palaver.core.conversation import Origin, now
from palaver.core.deletion import UNDO_PERIOD, DeletionRequest, DeletionResult, DeletionState
from palaver.core.home import Home
from palaver.core.hooks import HookEvent
from palaver.core.memory import Memory, MemoryState, Relation
from palaver.core.observation import Observation, ObservationType
from palaver.core.query import Query
from palaver.core.reports import Injection
from palaver.observe.archive import Archive
from palaver.observe.deletion import erasure
from palaver.observe.deletion.deleter import Deleter
from palaver.observe.deletion.erasure import scan
from palaver.observe.extraction.preferences import keep, preference_candidates
from palaver.observe.pipeline import Pipeline
from palaver.search.archive_search import ArchiveSearch
from palaver.search.model.embedder import DEFAULT_MODEL, load

from ... import crash_injection
from ...archiver.formats.claude_code.claude_lines import assistant, jsonl, result, text, tool, user

WORKER = "tests.observe.deletion.deletion_worker"
KEPT, GONE = "11111111-0000-4000-8000-00000000000a", "cafe0000-0000-4000-8000-00000000000b"
CANARIES = [
    f"{place}Canary"
    for place in ("Prompt", "Output", "Title", "Branch", "File", "Folder", "Memory", "Learned", "Letter", "Log")
]
KILLS = 3


def transcript(
    session: str, *lines: Mapping[str, object], folder: str = "/home/demo/shop", branch: str = "main"
) -> bytes:
    place = {"sessionId": session, "cwd": folder, "gitBranch": branch}
    return jsonl([{**line, **place} for line in lines])


def exchange_lines(word: str, number: int) -> list[Mapping[str, object]]:
    return [
        user(f"Why does the {word} of order {number} fail in the checkout?", uuid=f"{word}-{number}-asked"),
        assistant(
            text(f"The {word} fails because order {number} has no address; I decided to check it first."),
            id=f"msg-{word}-{number}",
            uuid=f"{word}-{number}-answered",
            parentUuid=f"{word}-{number}-asked",
        ),
    ]


@pytest.fixture(scope="module")
def canary_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a home with two sessions, one of them with a canary word in every field."""
    root = tmp_path_factory.mktemp("forgetting")
    folder = root / "projects" / "-home-demo-FolderCanary"
    folder.mkdir(parents=True)
    (root / "projects" / "shop").mkdir()
    calls = [
        user("Find the PromptCanary in the checkout, please.", uuid="canary-1"),
        assistant(
            tool("Bash", {"command": "cat /srv/FileCanary/notes.txt"}, "call-1"),
            id="msg-c1",
            uuid="canary-2",
            parentUuid="canary-1",
        ),
        {
            **result("the shop says OutputCanary 12345 is open", id="call-1"),
            "uuid": "canary-3",
            "parentUuid": "canary-2",
        },
        assistant(text("I found it: the order is open."), id="msg-c2", uuid="canary-4", parentUuid="canary-3"),
    ]
    data = transcript(GONE, *calls, folder="/home/demo/FolderCanary", branch="BranchCanary")
    data += jsonl([{"type": "ai-title", "aiTitle": "TitleCanary", "sessionId": GONE}])
    (folder / f"{GONE}.jsonl").write_bytes(data)
    lines = [line for number in range(3) for line in exchange_lines("payment", number)]
    (root / "projects" / "shop" / f"{KEPT}.jsonl").write_bytes(transcript(KEPT, *lines))
    home = Home(root / "before")
    with Pipeline(home) as pipeline:
        pipeline.run(in_paths([root / "projects"]))
    with Archive(home).memories as core:
        core.remember(Memory("The MemoryCanary is on the second shelf", session_id=GONE))
        core.remember(Memory("Payments need an address", pinned=True, origin=Origin.HUMAN))
    with Store.open(home.database) as store, store.transaction():
        [key] = [each.key for each in store.exchanges.outlines() if store.sessions.load(each.session).native_id == GONE]
        learned = Observation(ObservationType.GENERAL, "The LearnedCanary", "", "It was learned", (), (), (), ())
        store.observations.replace(key, store.items.load([key])[key].session, [learned], "llm:test")
        store.ledger.reserve("run", now(), PlannedCall("model", "first", key, "digest-of-canary", 1))
    home.log.write_text("failed problem=LogCanary\n")
    return root


@pytest.fixture
def root(canary_home: Path, tmp_path: Path) -> Iterator[Path]:
    """Return a folder with a copy of the home for one test."""
    shutil.copytree(canary_home / "before", tmp_path / "home")
    (tmp_path / "projects").symlink_to(canary_home / "projects")
    yield tmp_path
    shutil.rmtree(tmp_path / "home")


def deleted(home: Home, wanted: DeletionRequest) -> DeletionResult:
    with Deleter(home) as deleter:
        return deleter.delete(wanted, deleter.preview(wanted).token)


def archive(root: Path, home: Home) -> None:
    with Pipeline(home) as pipeline:
        pipeline.run(in_paths([(root / "projects").resolve()]))


def answers(home: Home) -> list[tuple[str, str, int]]:
    """Return the search results of the session that is not deleted."""
    with ArchiveSearch(home) as layers:
        hits = [
            hit
            for query in ("payment order fails", "address of an order")
            for hit in layers.find(Query.parse(query)).hits
        ]
    return sorted(
        {(hit.kind, hit.title, hit.start_line) for hit in hits if hit.session_id != GONE and hit.kind == "exchange"}
    )


def vectors_of(home: Home) -> list[bytes]:
    """Return the vectors and token embeddings of the exchange to delete."""
    with Store.open(home.database) as store:
        keys = [each.key for each in store.exchanges.outlines() if store.sessions.load(each.session).native_id == GONE]
        rows = store.vectors.of_items(load(DEFAULT_MODEL).name, keys)
        assert all(len(row.token_bits) > 16 for row in rows)
        return [part for row in rows for part in (row.data, row.token_bits)]


def files_with(home: Home, vectors: list[bytes]) -> list[Path]:
    """Return the index files that contain one of these vectors."""
    files = [path for path in home.index.rglob("*") if path.is_file()]
    return [path for path in files if any(vector in path.read_bytes() for vector in vectors)]


def test_an_erased_session_leaves_no_byte_anywhere(root: Path) -> None:
    """After an erasure, no file contains any text, path or vector of the session, nor anything derived from it."""
    home = Home(root / "home")
    with_all = scan(home.root, CANARIES)
    assert with_all.found
    with Store.open(home.database) as store, store.transaction():
        store.injections.add(Injection(1, HookEvent.TOOL, GONE, "project:shop", 10, ("obs-1",)))

    vectors = vectors_of(home)
    assert {path.name for path in files_with(home, vectors)} >= {"vectors.npy", "signs.npy"}

    outcome = deleted(home, DeletionRequest((GONE,), erase=True))

    assert not files_with(home, vectors)
    assert scan(home.root, [*CANARIES, GONE, "digest-of-canary"]).found == []
    assert outcome.check is not None
    assert outcome.check.passed
    assert outcome.check.samples >= 3
    assert outcome.check.searches > 0
    assert [Path(path).name for path in outcome.originals] == [f"{GONE}.jsonl"]
    assert outcome.preview.sent == 1
    with Store.open(home.database) as store:
        assert [each.state for each in store.tombstones.all()] == [DeletionState.ERASED]
        assert store.ledger.spent_in("run") == 1

    archive(root, home)

    assert scan(home.root, CANARIES).found == []


def test_search_results_of_other_content_are_unchanged(root: Path) -> None:
    """Search results of other content are the same after a deletion, an ingest and an erasure."""
    home = Home(root / "home")
    before = answers(home)
    assert before

    number = deleted(home, DeletionRequest((GONE,))).number
    assert answers(home) == before
    archive(root, home)
    assert answers(home) == before
    assert number is not None

    with Deleter(home) as deleter:
        assert deleter.erase(number)

    assert answers(home) == before
    assert scan(home.root, CANARIES).found == []


def test_undo_restores_the_memories_of_a_session(root: Path) -> None:
    """The memories of a session are deleted with the session, and undo makes them active again."""
    home = Home(root / "home")
    outcome = deleted(home, DeletionRequest((GONE,)))
    assert [each.title for each in outcome.preview.memories] == ["The MemoryCanary is on the second shelf"]
    with ArchiveSearch(home) as layers:
        assert not [hit for hit in layers.find(Query.parse("PromptCanary checkout")).hits if hit.session_id == GONE]

    with Deleter(home) as deleter:
        deleter.undo(outcome.number or 0)

    with Store.open(home.database) as store:
        assert [stored.state for stored in store.memories.all()] == [MemoryState.ACTIVE] * 2
    with ArchiveSearch(home) as layers:
        assert [hit for hit in layers.find(Query.parse("PromptCanary checkout")).hits if hit.session_id == GONE]


@pytest.mark.parametrize("erase", [False, True])
def test_a_deletion_reads_only_changed_copies_again(root: Path, erase: bool) -> None:
    """A deletion parses only affected copies again. Copies parsed under older rules wait for the next run."""
    home = Home(root / "home")
    with Store.open(home.database) as store, store.transaction():
        store._database.run("UPDATE source SET rules = 'older'")

    outcome = deleted(home, DeletionRequest((GONE,), erase=erase))
    if not erase:
        with Deleter(home) as deleter:
            deleter.undo(outcome.number or 0)

    with Store.open(home.database) as store:
        outdated = [Path(source.archived).stem for source in store.sources.outdated()]
    assert outdated == [KEPT]


def test_a_superseded_memory_is_restored_as_superseded(root: Path) -> None:
    """Undo restores a superseded memory with half its importance. Removing the edge makes it active."""
    home = Home(root / "home")
    with Archive(home).memories as core:
        [gone] = [stored for stored in core.page() if stored.memory.session_id == GONE]
        newer = core.remember(Memory("The canary was given away")).stored
        edge = core.graph.relate(newer.id, gone.id, Relation.SUPERSEDES)
    outcome = deleted(home, DeletionRequest((GONE,)))
    with Deleter(home) as deleter:
        deleter.undo(outcome.number or 0)

    with Archive(home).memories as core:
        restored = core.get(gone.id)
        core.graph.forget(core.graph.find(edge.id))
        assert (restored.state, restored.memory.importance) == (MemoryState.SUPERSEDED, gone.memory.importance / 2)
        assert core.get(gone.id).state is MemoryState.ACTIVE
        assert core.get(gone.id).memory.importance == gone.memory.importance


@pytest.mark.parametrize("erase", [False, True])
def test_deleting_a_memory_reinstates_the_one_it_superseded(root: Path, erase: bool) -> None:
    """Deleting a memory reactivates the memory that it superseded, and undo supersedes that memory again."""
    home = Home(root / "home")
    with Archive(home).memories as core:
        [gone] = [stored for stored in core.page() if stored.memory.session_id == GONE]
        older = core.remember(Memory("The canary is on the first shelf")).stored
        core.graph.relate(gone.id, older.id, Relation.SUPERSEDES)
        assert core.get(older.id).state is MemoryState.SUPERSEDED
    outcome = deleted(home, DeletionRequest((GONE,), erase=erase))

    with Archive(home).memories as core:
        assert core.get(older.id).memory.importance == older.memory.importance
        assert core.get(older.id).state is MemoryState.ACTIVE
    if erase:
        return
    with Deleter(home) as deleter:
        deleter.undo(outcome.number or 0)
    with Archive(home).memories as core:
        assert core.get(older.id).memory.importance == older.memory.importance / 2
        assert core.get(older.id).state is MemoryState.SUPERSEDED


def test_undo_does_not_duplicate_a_memory(root: Path) -> None:
    """If the content of a deleted memory was stored again, undo reports the old memory and leaves it archived."""
    home = Home(root / "home")
    outcome = deleted(home, DeletionRequest((GONE,)))
    [gone] = outcome.preview.memories
    with Archive(home).memories as core:
        core.remember(Memory(gone.title))

    with Deleter(home) as deleter:
        assert deleter.undo(outcome.number or 0).not_restored == (gone.id,)
        assert deleter.history() == []

    with Store.open(home.database) as store:
        assert [each.state for each in store.memories.all() if each.id == gone.id] == [MemoryState.ARCHIVED]
    with ArchiveSearch(home) as layers:
        assert [hit for hit in layers.find(Query.parse("PromptCanary checkout")).hits if hit.session_id == GONE]


def test_expiry_erases_memories_as_well(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thirty days after a deletion, an ingest run erases the deleted content and its memories."""
    home = Home(root / "home")
    deleted(home, DeletionRequest((GONE,)))
    monkeypatch.setattr(erasure, "now", lambda: now() + UNDO_PERIOD + 1)

    archive(root, home)

    with Store.open(home.database) as store:
        assert [stored.memory.content for stored in store.memories.all()] == ["Payments need an address"]
        assert [each.state for each in store.tombstones.all()] == [DeletionState.ERASED]
    assert scan(home.root, CANARIES).found == []


def test_a_token_of_another_extent_deletes_nothing(root: Path) -> None:
    """A confirmation token of another request deletes nothing. The result has a new preview and no deletion ID."""
    home = Home(root / "home")
    with Deleter(home) as deleter:
        token = deleter.preview(DeletionRequest((GONE,))).token
        outcome = deleter.delete(DeletionRequest((GONE,), erase=True), token)
        assert outcome.number is None
        assert outcome.preview.token != token
        assert deleter.delete(DeletionRequest((KEPT,)), token).number is None
        assert deleter.history() == []


def test_protected_memories_are_deleted_only_by_force(root: Path) -> None:
    """The preview lists a pinned memory as protected, and only `force` deletes it."""
    home = Home(root / "home")
    wanted = DeletionRequest(mentions="need an address")
    with Deleter(home) as deleter:
        kept = deleter.preview(wanted)
        assert (len(kept.protected), kept.memories) == (1, ())
        forced = deleter.preview(replace(wanted, force=True))

    assert [each.title for each in forced.memories] == ["Payments need an address"]
    assert deleted(home, replace(wanted, force=True, erase=True)).number
    assert scan(home.root, ["Payments need an address"]).found == []


def erased(root: Path, home: Home, at: int) -> subprocess.CompletedProcess[str]:
    """Erase the session in a separate home, in a process that is killed at a step unless the step is 0."""
    shutil.rmtree(home.root, ignore_errors=True)
    shutil.copytree((root / "projects").resolve().parent / "before", home.root)
    return crash_injection.run(WORKER, "kill", root, GONE, at, home.root.name)


def test_a_killed_erasure_is_finished_by_the_next_ingest(root: Path) -> None:
    """A killed erasure has deleted nothing, or the content is hidden and the next run erases it."""
    home = Home(root / "killed")
    steps = crash_injection.steps(erased(root, home, 0))
    began: list[bool] = []
    for point in random.Random(2026).sample(range(steps // 10, steps), KILLS):
        crash_injection.kill(partial(erased, root, home), point)
        with Store.open(home.database) as store:
            began.append(store.tombstones.has_deletions())
        with ArchiveSearch(home) as layers:
            seen = [hit for hit in layers.find(Query.parse("PromptCanary checkout")).hits if hit.session_id == GONE]
        assert bool(seen) is not began[-1]
        archive(root, home)
        assert bool(scan(home.root, CANARIES).found) is not began[-1], point
    assert any(began)


def test_a_concurrent_search_never_fails(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches in another process succeed during an erasure, and soon return no erased content."""
    monkeypatch.setattr(erasure, "_READERS", 200.0)  # a search on a busy machine takes long
    home = Home(root / "home")
    watcher = subprocess.Popen(
        crash_injection.command(WORKER, "search", root, GONE),
        cwd=crash_injection.ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert watcher.stdout is not None
    assert watcher.stdout.readline() == "seen\n"

    outcome = deleted(home, DeletionRequest((GONE,), erase=True))

    assert watcher.stdout.readline() == "gone\n"
    end = time.monotonic() + 20
    watcher.terminate()
    _, complaint = watcher.communicate(timeout=max(1.0, end - time.monotonic()))
    assert complaint == ""
    assert outcome.check is not None
    assert not outcome.check.found


def archived(root: Path, *lines: Mapping[str, object]) -> Home:
    """Return a home with one session of these lines."""
    folder = root / "projects" / "shop"
    folder.mkdir(parents=True)
    (folder / f"{KEPT}.jsonl").write_bytes(transcript(KEPT, *lines))
    home = Home(root / "home")
    archive(root, home)
    return home


def writing_lines(name: str) -> list[Mapping[str, object]]:
    """Return the lines of an exchange in which a file was written."""
    call = tool("Write", {"file_path": f"/home/demo/shop/{name}.py", "content": "x = 1\n"}, id=f"call-{name}")
    return [
        user(f"Add a {name} to the page, please.", uuid=f"{name}-1"),
        assistant(call, id=f"msg-{name}", uuid=f"{name}-2", parentUuid=f"{name}-1"),
        {**result("done", id=f"call-{name}"), "uuid": f"{name}-3", "parentUuid": f"{name}-2"},
    ]


def test_a_proposal_disappears_with_its_source(tmp_path: Path) -> None:
    """A preference is not proposed after the deletion of its exchange."""
    rule = user("From now on use tabs in all templates of the WalrusCanary.", uuid="a1")
    home = archived(tmp_path, rule, {**assistant(text("Done."), id="ma1"), "parentUuid": "a1"})
    with Store.open(home.database) as store:
        assert len(list(preference_candidates(store))) == 1

    deleted(home, DeletionRequest(mentions="WalrusCanary"))

    with Store.open(home.database) as store:
        assert list(preference_candidates(store)) == []


@pytest.mark.parametrize("whole", [True, False])
def test_a_preference_is_deleted_with_its_source(tmp_path: Path, *, whole: bool) -> None:
    """A memory that was made from a statement is deleted with the exchange of that statement. Other memories stay."""
    rules = [
        user("From now on use tabs in all templates of the WalrusCanary.", uuid="a1"),
        user("From now on always write tests in the folder of the parser.", uuid="b1"),
    ]
    replies = [{**assistant(text("Done."), id=f"m{each['uuid']}"), "parentUuid": each["uuid"]} for each in rules]
    home = archived(tmp_path, rules[0], replies[0], rules[1], replies[1])
    with Store.open(home.database) as store, Archive(home).memories as core:
        assert len([keep(core, each) for each in list(preference_candidates(store))]) == 2
        first = min(each.key for each in store.exchanges.outlines())

    deleted(home, DeletionRequest((KEPT if whole else ids.show("exchange", first),), erase=True))

    with Store.open(home.database) as store:
        left = [stored.memory.content for stored in store.memories.all()]
    assert left == ([] if whole else ["From now on always write tests in the folder of the parser."])
    assert scan(home.root, ["WalrusCanary"]).found == []


def test_a_summary_contains_nothing_deleted(tmp_path: Path) -> None:
    """A deletion immediately removes open tasks and titles of the deleted exchanges from the session summary."""
    left_open = assistant(
        text("Drawn. Next step: the WalrusCanary still needs a test of its own."), id="open", uuid="c2"
    )
    parts = [line for name in ("header", "footer", "cart") for line in writing_lines(name)]
    home = archived(tmp_path, *parts, user("Hm.", uuid="c1"), {**left_open, "parentUuid": "c1"})
    with Store.open(home.database) as store:
        [summary] = [store.summaries.of_session(number) for number in store.sessions.all()]
    assert summary is not None
    assert any("WalrusCanary" in fact for fact in summary.observation.facts)

    outcome = deleted(home, DeletionRequest(mentions="WalrusCanary", erase=True))

    assert outcome.check is not None
    assert outcome.check.found == []
    assert scan(home.root, ["WalrusCanary"]).found == []
    with Store.open(home.database) as store:
        [left] = [store.summaries.of_session(number) for number in store.sessions.all()]
    assert left is not None
    assert left.observation.facts[0] == "Asked: Add a header to the page, please."
