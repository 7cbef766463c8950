"""Every changed transcript is copied, parsed and stored, without duplicates or losses."""

import copy
import json
import math
import os
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from palaver.archiver.copies.raw_copy import Copied, RawArchive
from palaver.archiver.formats.claude_code import ClaudeCode
from palaver.archiver.formats.json_values import listing, mapping
from palaver.archiver.ingest import ingest
from palaver.archiver.ingest import transcripts as places_of
from palaver.archiver.ingest.ingest import Ingest
from palaver.archiver.ingest.transcripts import Transcript, in_paths
from palaver.archiver.lines import PARSED, REPEATED
from palaver.archiver.store import Source, Store, database
from palaver.archiver.store.change_log import CONTEXT_EXCHANGES
from palaver.core.conversation import Exchange, show_day
from palaver.core.errors import StoreError, ValueRefused
from palaver.core.home import Home

from ..formats.claude_code.claude_lines import assistant, jsonl, queue, text, user
from ..formats.opencode.test_opencode import in_database
from ..history import FORK, ORIGINAL, History, named, talk
from ..redaction.planted import TOKENS

few = settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])


def assert_accounted(history: History) -> None:
    """Assert that every parsed line of every source has exactly one outcome."""
    for source in history.store.sources.by_path().values():
        assert source.lines == sum(source.coverage.values())
        assert source.lines == history.copy(source)[: source.parsed].count(b"\n") + (
            not history.copy(source)[: source.parsed].endswith(b"\n") and source.parsed > 0
        )


def test_a_transcript_becomes_a_session(history: History) -> None:
    """A transcript becomes a session with exchanges, and the report counts them."""
    history.write(talk("one", "two"))
    tally = history.ingest()

    assert (tally.seen, tally.changed, tally.lines, tally.exchanges, tally.problems) == (1, 1, 4, 2, [])
    assert history.prompts() == ["one?", "two?"]
    assert [exchange.answer for exchange in history.exchanges(ORIGINAL)] == ["one!", "two!"]
    session = history.session()
    assert (session.project, session.cwd, session.branch, session.title) == ("shop", "/home/demo/shop", "main", "one?")


def test_the_name_of_a_copy_contains_no_secret(history: History) -> None:
    """A secret in the name of a project folder is redacted in the copy's name, and the next run finds the copy."""
    secret = TOKENS["github-pat"](random.Random(1))
    history.write(talk("one"), project=f"-home-demo-shop-{secret}")
    history.ingest()
    [source] = history.store.sources.by_path().values()

    assert secret not in source.archived
    assert "[secret:github-pat:" in source.archived
    assert history.ingest().changed == 0


def test_a_second_run_writes_nothing(history: History) -> None:
    """A second run over the same files changes no row and reads no line."""
    history.write(talk("one"))
    history.ingest()
    before = history.dump()
    tally = history.ingest()

    assert (tally.seen, tally.changed, tally.lines) == (1, 0, 0)
    assert history.dump() == before


def test_progress_counts_the_changed_files(history: History) -> None:
    """Progress is reported at the start and after each changed file."""
    for number in range(3):
        history.write(talk(f"w{number}"), f"s{number}")
    reported: list[tuple[int, int]] = []
    Ingest(history.store, history.raw).run(
        in_paths([history.folder]), lambda done, total: reported.append((done, total))
    )

    assert reported == [(0, 3), (1, 3), (2, 3), (3, 3)]


@few
@given(st.lists(st.binary(max_size=300), max_size=3))
def test_the_copy_has_every_byte(pieces: list[bytes]) -> None:
    """For any content and any growth, the copy equals the file, and every line has an outcome."""
    with TemporaryDirectory() as root, History(Path(root)) as history:
        history.write(b"")
        history.ingest()
        for at, piece in enumerate(pieces):
            history.append(piece, at=at + 2)
            history.ingest()

            assert history.copy(history.source()) == history.path().read_bytes()
            assert_accounted(history)


words = st.sampled_from(["one", "two", "three"])
places = st.fixed_dictionaries(
    {}, optional={"cwd": st.sampled_from(["/a", "/b"]), "gitBranch": st.sampled_from(["main", "fix"])}
)


@st.composite
def transcript(draw: st.DrawFn, queued: Sequence[str] = ("enqueue", "dequeue")) -> list[dict[str, Any]]:
    """Generate records that follow the last or an earlier record. Some records are repeated."""
    lines: list[dict[str, Any]] = []
    known = [""]
    for number in range(draw(st.integers(0, 14))):
        kind = draw(st.integers(0, 8))
        parent = known[-1] if draw(st.booleans()) else draw(st.sampled_from(known))
        tree = {"uuid": f"u{number}", "parentUuid": parent, **draw(places)}
        if kind < 3:
            lines.append(user(draw(words), **tree))
        elif kind < 6:
            lines.append(assistant(text(draw(words)), **tree))
        elif kind == 6:
            lines.append({"type": "ai-title", "aiTitle": draw(words), "sessionId": ORIGINAL})
        elif kind == 7:
            lines.append(queue(draw(st.sampled_from(queued)), draw(words)) | {"sessionId": ORIGINAL})
        elif lines:
            lines.append(draw(st.sampled_from(lines)))
        known.append(str(lines[-1].get("uuid", "")) if lines else "")
    return lines


QUEUED_TWICE = [queue("enqueue", "one") | {"sessionId": ORIGINAL}] * 2 + [user("one", uuid="u1")]
SENT_LATER = [
    *(queue("enqueue", word) | {"sessionId": ORIGINAL} for word in ("three", "one")),
    user("three", uuid="u1"),
]
"""Transcript whose first queued prompt is sent on the last line. Until then, it seems to begin the session."""


@few
@example(QUEUED_TWICE, [len(jsonl(QUEUED_TWICE[:1]))], True)
@example(SENT_LATER, [len(jsonl(SENT_LATER[:1]))], True)
@given(transcript(), st.lists(st.integers(0, 10**6), max_size=4), st.booleans())
def test_a_growing_file_gives_the_same_exchanges(records: list[dict[str, Any]], cuts: list[int], ended: bool) -> None:
    """A file ingested in parts gives the same exchanges as a file ingested at once.

    Unchanged exchanges keep their keys.
    """
    data = jsonl(records)
    data = data if ended else data.removesuffix(b"\n")
    with TemporaryDirectory() as root, History(Path(root, "grown")) as grown, History(Path(root, "whole")) as whole:
        known: dict[int, Any] = {}
        place: tuple[str, str, str] | None = None
        for at, cut in enumerate([*sorted(cut % (len(data) + 1) for cut in cuts), len(data)]):
            seq = grown.store.changes.last()
            grown.write(data[:cut], at=at)
            grown.ingest()
            now = {stored.key: stored.exchange for stored in grown.stored()}
            changed = set(grown.store.changes.since(seq))
            session = grown.session()
            before, place = place, (session.project, session.cwd, session.branch)
            moved = place != before
            own = {key for key in now if moved or key not in known or now[key].turns != known[key].turns}
            affected = {now[key].ordinal + step for key in own for step in range(CONTEXT_EXCHANGES + 1)}
            assert own <= changed <= {key for key in now if now[key].ordinal in affected}
            assert known.keys() <= now.keys()
            assert_accounted(grown)
            known = now
        whole.write(data)
        whole.ingest()

        assert grown.exchanges(ORIGINAL) == whole.exchanges(ORIGINAL)
        assert grown.session() == whole.session()
        assert grown.source().lines == whole.source().lines


def timed(*records: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the records with times one second apart, starting at noon."""
    return [
        {**each, "sessionId": ORIGINAL, "timestamp": f"2026-03-01T12:00:{at:02}Z"} for at, each in enumerate(records)
    ]


WITHDRAWN = timed(user("one", uuid="u1"), queue("enqueue", "two"), queue("popAll"))
"""Transcript in which a queued prompt is withdrawn."""
ALL_WITHDRAWN = timed(queue("enqueue", "two"), queue("popAll"))
FIRST_WITHDRAWN = timed({"type": "ai-title", "aiTitle": "a title"}, *ALL_WITHDRAWN, user("one", uuid="u1"))


@few
@example(SENT_LATER, [len(jsonl(SENT_LATER[:1])), len(jsonl(SENT_LATER[:2]))])
@example(WITHDRAWN, [len(jsonl(WITHDRAWN[:2]))])
@example(ALL_WITHDRAWN, [len(jsonl(ALL_WITHDRAWN[:1]))])
@example(FIRST_WITHDRAWN, [len(jsonl(FIRST_WITHDRAWN[:2]))])
@given(transcript(("enqueue", "enqueue", "dequeue", "popAll")), st.lists(st.integers(0, 10**6), max_size=4))
def test_a_withdrawn_prompt_does_not_change_its_session(records: list[dict[str, Any]], cuts: list[int]) -> None:
    """Dates and title of a session do not depend on whether a prompt was ingested before it was withdrawn."""
    data = jsonl(timed(*records))
    with TemporaryDirectory() as root, History(Path(root, "grown")) as grown, History(Path(root, "whole")) as whole:
        for at, cut in enumerate([*sorted(cut % (len(data) + 1) for cut in cuts), len(data)]):
            grown.write(data[:cut], at=at)
            grown.ingest()
        whole.write(data)
        whole.ingest()

        assert grown.exchanges(ORIGINAL) == whole.exchanges(ORIGINAL)
        assert grown.session() == whole.session()


def test_a_session_is_dated_by_its_own_exchanges(history: History) -> None:
    """A session begins with its first exchange in any file and ends with its last. Repeated lines do not count."""
    days = [
        [{**each, "timestamp": f"2026-03-0{day}T10:00:00Z"} for each in talk(word)]
        for day, word in enumerate(("one", "two", "three", "four"), 1)
    ]
    history.write(days[0], at=1)
    history.write([*days[0], *days[1], *days[2]], FORK, at=2)
    history.write(days[3], project="moved", at=3)
    history.ingest()
    sessions = history.session(), history.session(FORK)
    times = [show_day(at) for session in sessions for at in (session.started, session.ended)]

    assert times == ["2026-03-01", "2026-03-04", "2026-03-02", "2026-03-03"]


def test_an_incomplete_last_line_is_not_parsed(history: History) -> None:
    """An incomplete last line is copied but not parsed. When complete, it is parsed once."""
    one, two = jsonl(talk("one")), jsonl(talk("two"))
    history.write(one + two[:40])
    history.ingest()
    source = history.source()

    assert history.prompts() == ["one?"]
    assert (source.size, source.parsed, source.lines) == (len(one) + 40, len(one), 2)
    assert history.store.sources.totals() == (1, len(one) + 40, 2, 40)

    history.append(two[40:])
    history.ingest()

    assert history.prompts() == ["one?", "two?"]
    assert history.store.sources.totals() == (1, len(one + two), 4, 0)


def test_a_complete_last_line_needs_no_line_end(history: History) -> None:
    """A complete last record without a line end is parsed, and reading continues after it."""
    lines = jsonl(talk("one", "two"))
    history.write(jsonl(talk("one")).removesuffix(b"\n"))
    history.ingest()

    assert history.source().coverage == {PARSED: 2}
    assert history.exchanges(ORIGINAL)[0].answer == "one!"

    history.append(lines[history.source().size :])
    history.ingest()

    assert history.prompts() == ["one?", "two?"]
    assert history.source().coverage == {PARSED: 4}


def test_only_the_last_exchange_is_read_again(history: History) -> None:
    """After an append, only the lines from the last exchange on are read."""
    history.write(talk(*(f"w{number}" for number in range(50))))
    history.ingest()
    history.append(talk("new"))
    tally = history.ingest()

    assert (tally.changed, tally.lines, tally.exchanges) == (1, 4, 2)
    assert len(history.prompts()) == 51


def test_a_truncated_file_loses_nothing(history: History) -> None:
    """Content that a file lost stays archived and searchable. New content is added once."""
    data = jsonl(talk("one", "two"))
    history.write(data)
    history.ingest()
    before = history.source()
    history.write([*talk("one"), *talk("three")], at=2)
    history.ingest()
    after = history.source()

    assert history.prompts() == ["one?", "two?", "three?"]
    assert history.copy(before) == data
    assert after.archived == f"claude-code/shop/{ORIGINAL}~2.jsonl"
    assert after.coverage == {REPEATED: 2, PARSED: 2}
    assert [source.archived for source in history.store.sources.by_path().values()] == [after.archived]


def test_a_rewrite_of_the_same_length_is_noticed(history: History) -> None:
    """A rewrite is recognised by content, not by length."""
    history.write(talk("one"))
    history.ingest()
    history.write(talk("six"), at=2)
    history.ingest()

    assert history.prompts() == ["one?", "six?"]
    assert len(history.archive_files()) == 2


def test_a_replaced_file_with_the_same_beginning_continues(history: History) -> None:
    """A new inode that begins with the same bytes continues the same session and copy."""
    path = history.write(talk("one"))
    history.ingest()
    other = path.with_suffix(".new")
    other.write_bytes(path.read_bytes() + jsonl(talk("two")))
    other.replace(path)
    history.ingest()

    assert history.prompts() == ["one?", "two?"]
    assert len(history.archive_files()) == 1


def test_a_deleted_file_stays_archived(history: History) -> None:
    """Deleting the agent's file deletes nothing from the archive."""
    history.write(talk("one"))
    history.write(talk("two"), FORK)
    history.ingest()
    before = history.dump()
    history.path().unlink()
    history.ingest()

    assert history.dump() == before
    assert history.copy(history.source()) == jsonl(talk("one"))


def test_a_file_deleted_before_the_scan_reaches_it_stops_nothing(history: History) -> None:
    """A file that is deleted after it was listed is reported, and the other files are ingested."""
    history.write(talk("one"))
    gone = history.write(talk("two"), FORK)
    transcripts = in_paths([history.folder])
    gone.unlink()
    tally = Ingest(history.store, history.raw).run(transcripts)

    assert [problem.path for problem in tally.problems] == [gone]
    assert (tally.changed, history.prompts()) == (1, ["one?"])
    assert history.store.sources.problems() == []


class ArchiveWithHook(RawArchive):
    """Raw archive that calls a function just before it copies a file."""

    def __init__(self, root: Path, act: Callable[[Path], object]) -> None:
        super().__init__(root)
        self._act = act

    def copy(self, path: Path, archived: str, continued: Source | None = None, *, rewrite: bool = False) -> Copied:
        self._act(path)
        return super().copy(path, archived, continued, rewrite=rewrite)


def test_a_file_deleted_before_it_is_copied_stops_nothing(history: History) -> None:
    """A file that is deleted before it is copied is reported, and the other files are ingested."""
    history.write(talk("one"))
    gone = history.write(talk("two"), FORK, at=0)
    raw = ArchiveWithHook(history.home.archive, lambda path: path.unlink() if path == gone else None)
    tally = Ingest(history.store, raw).run(in_paths([history.folder]))

    assert [str(problem) for problem in tally.problems] == [f"{gone}: the file was deleted before it could be copied"]
    assert (tally.changed, history.prompts()) == (1, ["one?"])


def test_a_file_deleted_while_it_is_read_is_read_to_the_end(history: History) -> None:
    """A file may be deleted once it is copied, because only the copy is parsed."""
    path = history.write(talk("one"))

    class Deleting(RawArchive):
        def copy(self, path: Path, archived: str, continued: Source | None = None, *, rewrite: bool = False) -> Copied:
            copied = super().copy(path, archived, continued, rewrite=rewrite)
            path.unlink()
            return copied

    tally = Ingest(history.store, Deleting(history.home.archive)).run(in_paths([history.folder]))

    assert not path.exists()
    assert (tally.problems, history.prompts()) == ([], ["one?"])


def test_a_rewrite_during_the_copy_is_corrected(history: History) -> None:
    """If a file is rewritten between scan and copy, the next run ingests its content, and nothing is lost."""
    path = history.write(talk("one"))
    history.ingest()
    history.append(talk("two"))
    raw = ArchiveWithHook(history.home.archive, lambda _: history.write(talk("x1", "x2", "x3"), at=3))
    Ingest(history.store, raw).run(in_paths([history.folder]))
    history.touch(path, 4)
    history.ingest()

    assert {"one?", "x1?", "x2?", "x3?"} <= set(history.prompts())
    assert history.copy(history.source()) == path.read_bytes()
    assert_accounted(history)


def without_permission(closed: Path) -> Callable[..., Any]:
    """Return a `Path.open` that denies access to one file. Real permissions would not stop a test run by root."""
    opened: Callable[..., Any] = Path.open

    def refuse(path: Path, *arguments: Any, **options: Any) -> Any:
        if path == closed:
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *arguments, **options)

    return refuse


def test_an_unreadable_file_is_reported_until_it_can_be_read(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unreadable file does not stop the run, is stored as a problem, and is ingested once it is readable."""
    closed = history.write(talk("one"))
    history.write(talk("two"), FORK)
    transcripts = in_paths([history.folder])
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", without_permission(closed))
        tally = Ingest(history.store, history.raw).run(transcripts)

    assert [problem.reason for problem in tally.problems] == ["permission denied"]
    assert history.store.sources.problems() == [(closed, "permission denied")]
    assert (tally.changed, history.prompts(FORK)) == (1, ["two?"])

    history.ingest()

    assert history.store.sources.problems() == []
    assert history.prompts() == ["one?"]


def test_an_unreadable_known_file_keeps_its_state(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that becomes unreadable does not count as rewritten. Later, reading continues at the resume point."""
    closed = history.write(talk("one"))
    history.ingest()
    history.append(talk("two"))
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", without_permission(closed))
        assert history.ingest().changed == 0
    history.ingest()

    assert history.prompts() == ["one?", "two?"]
    assert len(history.archive_files()) == 1


def test_a_fork_duplicates_nothing(history: History) -> None:
    """A file that repeats lines of another session under a new session ID adds only its own lines."""
    history.write(talk("one", "two"), at=1)
    history.write([*talk("one", "two", session=FORK), *talk("three", session=FORK)], FORK, at=2)
    report = history.ingest()

    assert (report.lines, report.repeated) == (10, 4)
    assert history.prompts() == ["one?", "two?"]
    assert history.prompts(FORK) == ["three?"]
    assert history.source(FORK).coverage == {REPEATED: 4, PARSED: 2}


def test_the_older_file_owns_shared_lines(history: History) -> None:
    """The file with the older modification time is the original, regardless of its name."""
    history.write(talk("one", session=FORK), FORK, at=1)
    history.write([*talk("one"), *talk("two")], ORIGINAL, at=2)
    history.ingest()

    assert (history.prompts(FORK), history.prompts()) == (["one?"], ["two?"])


def test_a_fork_and_its_original_grow_apart(history: History) -> None:
    """Both files grow after a fork. Each adds only its own lines."""
    history.write(talk("one"))
    history.write(talk("one", session=FORK), FORK, at=2)
    history.ingest()
    assert history.prompts(FORK) == []

    history.append(talk("left"), at=3)
    history.append(talk("right", session=FORK), FORK, at=4)
    history.ingest()
    history.append(talk("further", session=FORK), FORK, at=5)
    history.ingest()

    assert history.prompts() == ["one?", "left?"]
    assert history.prompts(FORK) == ["right?", "further?"]
    assert_accounted(history)


def test_a_session_in_two_folders_is_one(history: History) -> None:
    """The same session ID in two folders is one session with two files."""
    history.write(talk("one"), project="shop", at=1)
    history.write([*talk("one"), *talk("two")], project="moved", at=2)
    history.ingest()

    assert history.store.sessions.count() == 1
    assert history.prompts() == ["one?", "two?"]
    assert history.session().project == "shop"


def test_a_queued_prompt_without_an_id_is_repeated(history: History) -> None:
    """A queued prompt without an ID is recognised as repeated in another file of the session."""
    queued = [*talk("one"), {**queue("enqueue", "and commit it"), "sessionId": ORIGINAL}, queue("remove")]
    history.write([*queued, *talk("two")], project="shop", at=1)
    history.ingest()
    before = history.prompts()
    history.write([*queued, *talk("two")], project="moved", at=2)
    history.ingest()

    assert any("and commit it" in turn.text for each in history.exchanges(ORIGINAL) for turn in each.turns)
    assert history.prompts() == before
    assert_accounted(history)


def test_a_file_named_twice_is_read_once(history: History, tmp_path: Path) -> None:
    """Overlapping folders and links yield each file once."""
    path = history.write(talk("one"))
    link = tmp_path / "link"
    link.symlink_to(history.folder)
    tally = Ingest(history.store, history.raw).run(in_paths([history.folder, path, link, path.parent / ".." / "shop"]))

    assert (tally.seen, tally.changed, tally.problems) == (1, 1, [])
    assert len(history.archive_files()) == 1


def test_lines_that_are_not_json_are_counted(history: History) -> None:
    """Lines that are not JSON are copied and counted, each under a reason."""
    history.write(b"not json\n[1]\n\n" + jsonl(talk("one")) + b'{"cut": \n')
    history.ingest()

    assert history.source().coverage == {"not-json": 1, "not-an-object": 1, "blank": 1, PARSED: 2, "cut-short": 1}
    assert history.prompts() == ["one?"]


def test_a_name_too_long_for_a_copy_is_reported(history: History) -> None:
    """A file with a name too long for a copy is reported, and other files are ingested."""
    history.write(talk("one"))
    history.ingest()
    path = history.write(talk("two"), FORK)
    long = Transcript(path, path.with_name(f"{'x' * 300}.jsonl"), history.folder, ClaudeCode())
    tally = Ingest(history.store, history.raw).run([*in_paths([history.path()]), long])

    assert [problem.path for problem in tally.problems] == [path]
    assert history.prompts() == ["one?"]


@pytest.mark.parametrize("name", [b"\xff\xfe.jsonl", b"agent-\xff.jsonl", "é~\u2028 .jsonl".encode()])
def test_a_file_name_of_any_bytes_is_ingested(history: History, name: bytes) -> None:
    """File names that are not UTF-8 are archived and recognised again."""
    path = Path(os.fsdecode(os.fsencode(history.folder) + b"/shop/" + name))
    path.parent.mkdir()
    path.write_bytes(jsonl([{"type": "summary", "summary": "T", "leafUuid": "x"}, user("hello", uuid="u")]))

    assert history.ingest().problems == []
    assert [stored.exchange.prompt for stored in history.stored()] == ["hello"]
    assert history.ingest().changed == 0


def test_copies_survive_a_lost_database(history: History, tmp_path: Path) -> None:
    """After the database is lost, the next run reuses the copies and does not create more copies."""
    history.write(talk("one", "two"))
    history.write(talk("three"), FORK, at=2)
    history.ingest()
    before, rows = history.archive_files(), history.dump()
    history.store.close()
    for path in history.home.root.glob("palaver.db*"):
        path.unlink()

    with History(tmp_path / "again") as again:
        again.folder, again.raw = history.folder, history.raw
        again.ingest()

        assert again.archive_files() == {}
        assert history.archive_files() == before
        assert again.dump() == rows


def test_a_different_copy_is_never_overwritten(history: History) -> None:
    """A copy without a database row is not overwritten if the file differs. The file gets another copy."""
    copy = history.home.archive / "claude-code" / "shop" / f"{ORIGINAL}.jsonl"
    copy.parent.mkdir(parents=True)
    copy.write_bytes(jsonl(talk("old")))
    history.write(talk("new"))
    history.ingest()

    assert copy.read_bytes() == jsonl(talk("old"))
    assert history.source().archived == f"claude-code/shop/{ORIGINAL}~2.jsonl"
    assert history.prompts() == ["new?"]


def test_bytes_of_a_killed_run_are_never_overwritten(history: History) -> None:
    """A copy that is ahead of the database is not overwritten if the file differs. The file gets another copy."""
    history.write(talk("one"))
    history.ingest()
    before = history.source()
    longer = jsonl(talk("one", "two"))
    (history.home.archive / before.archived).write_bytes(longer)
    history.append(talk("three"))
    history.ingest()

    assert history.copy(before) == longer
    assert history.source().archived != before.archived
    assert history.prompts() == ["one?", "three?"]


def test_bytes_of_a_killed_run_are_reused(history: History) -> None:
    """A copy that is ahead of the database is extended if the file begins with its content."""
    history.write(talk("one"))
    history.ingest()
    before = history.source()
    history.append(talk("two", "three"))
    (history.home.archive / before.archived).write_bytes(history.path().read_bytes()[:-100])
    history.ingest()

    assert history.prompts() == ["one?", "two?", "three?"]
    assert history.source().archived == before.archived
    assert history.copy(history.source()) == history.path().read_bytes()


def test_a_lost_copy_is_restored_from_its_file(history: History) -> None:
    """A deleted or truncated copy is completed from the agent's file."""
    history.write(talk("one", "two"))
    history.ingest()
    copy = history.home.archive / history.source().archived
    copy.write_bytes(copy.read_bytes()[:50])
    history.ingest()
    assert copy.read_bytes() == history.path().read_bytes()

    copy.unlink()
    history.ingest()
    assert copy.read_bytes() == history.path().read_bytes()
    assert history.prompts() == ["one?", "two?"]


def rewind(word: str, parent: str) -> list[dict[str, Any]]:
    """Return an exchange that follows an earlier record."""
    asked, answered = talk(word)
    return [{**asked, "parentUuid": parent}, answered]


def test_rewound_turns_are_inactive(history: History) -> None:
    """Turns of an abandoned branch are stored as inactive."""
    history.write([*talk("one"), *rewind("wrong", named("one-answered")), *rewind("right", named("one-answered"))])
    history.ingest()

    assert {exchange.prompt: {turn.active for turn in exchange.turns} for exchange in history.exchanges(ORIGINAL)} == {
        "one?": {True},
        "wrong?": {False},
        "right?": {True},
    }


def test_a_rewind_before_the_resume_point_is_applied(history: History) -> None:
    """A rewind to a line before the resume point marks the same turns as a full read."""
    left = [*talk("one"), *rewind("wrong", named("one-answered")), *rewind("worse", named("wrong-answered"))]
    history.write(left)
    history.ingest()
    seq = history.store.changes.last()
    history.append(rewind("right", named("one-answered")))
    tally = history.ingest()

    assert [all(turn.active for turn in found.turns) for found in history.exchanges(ORIGINAL)] == [
        True,
        False,
        False,
        True,
    ]
    assert (tally.lines, tally.exchanges) == (8, 4)
    assert len(history.store.changes.since(seq)) == 3
    assert_accounted(history)


def test_a_rewind_after_a_restart_is_applied(history: History) -> None:
    """A rewind is applied even if the last exchange has no parent record."""
    history.write([*talk("one"), *rewind("wrong", named("one-answered")), *talk("anew")])
    history.ingest()
    history.append(rewind("right", named("one-answered")))
    history.ingest()

    assert [all(turn.active for turn in found.turns) for found in history.exchanges(ORIGINAL)] == [
        True,
        False,
        False,
        True,
    ]


def test_a_repeated_prompt_is_no_rewind(history: History) -> None:
    """A repeated record does not count as a rewind, and the turns before the repetition stay active."""
    lines = [*talk("one"), *rewind("two", named("one-answered"))]
    history.write([*lines, *lines[2:], *rewind("three", named("two-answered"))])
    history.ingest()

    assert history.prompts() == ["one?", "two?", "three?"]
    assert all(turn.active for found in history.exchanges(ORIGINAL) for turn in found.turns)


def test_a_title_applies_to_the_session_of_its_record(history: History) -> None:
    """A summary that refers to a record of another session sets the title of that session."""
    summary = {"type": "summary", "summary": "The shop", "leafUuid": named("one-answered")}
    nowhere = {"type": "summary", "summary": "Nobody's", "leafUuid": "unknown"}
    history.write(talk("one"), at=1)
    history.write([summary, nowhere, *talk("two", session=FORK)], FORK, at=2)
    history.ingest()

    assert (history.session().title, history.session(FORK).title) == ("The shop", "two?")


def test_the_project_is_named_as_soon_as_it_is_known(history: History) -> None:
    """A session's project is named after the archive folder until the session's own folder is known."""
    history.write([{"type": "mode", "mode": "normal", "sessionId": ORIGINAL}])
    history.ingest()
    assert history.session().project == "shop"

    history.append(talk("one", project="/code/bakery/.claude/worktrees/fix"))
    history.ingest()
    assert history.session().project == "bakery"


def test_a_digest_is_shortened_as_the_name_of_a_project(history: History) -> None:
    """A folder that is named by a digest gives a project without a known folder a short name."""
    history.write([{"type": "mode", "mode": "normal", "sessionId": ORIGINAL}], project="0a1b2c3d" * 8)
    history.ingest()

    assert history.session().project == "0a1b2c3d"


def test_the_oldest_file_is_ingested_first(history: History) -> None:
    """Files are ingested in the order of their modification times."""
    order = list(range(8))
    random.Random(7).shuffle(order)
    for at in order:
        history.write(talk(f"w{at}"), f"s{at}", at=at)
    history.ingest()

    assert [stored.exchange.prompt for stored in history.stored()] == [f"w{at}?" for at in range(8)]


def test_an_interrupted_run_keeps_finished_files(history: History) -> None:
    """An interruption between two files loses no content. The next run ingests the rest."""
    for number in range(4):
        history.write(talk(f"w{number}"), f"s{number}", at=number)

    def stop(done: int, _: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Ingest(history.store, history.raw).run(in_paths([history.folder]), stop)

    assert len(history.stored()) == 2
    assert history.ingest().changed == 2


def test_a_file_is_stored_atomically(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure while a file is stored leaves no trace of it in the database."""
    history.write(talk("one"))
    before = history.dump()

    def fail(*_: object) -> None:
        raise StoreError("planted")

    monkeypatch.setattr(history.store.exchanges, "replace", fail)
    with pytest.raises(StoreError):
        history.ingest()

    assert history.dump() == before


def test_an_invalid_count_is_ignored(history: History) -> None:
    """A token count that is too large for the database is ignored, and the file is ingested."""
    huge = assistant(text("one!"), id="m1", uuid="a1")
    huge["message"]["usage"] = {"input_tokens": 2**64 - 1, "output_tokens": 7}
    history.write([user("one?", uuid="q1"), huge])
    tally = history.ingest()

    assert tally.problems == []
    [exchange] = history.exchanges(ORIGINAL)
    assert (exchange.tokens_in, exchange.tokens_out) == (0, 7)


def test_a_refused_value_is_a_problem_of_its_file(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the database refuses a value, the file is reported and the run continues."""
    history.write(talk("one"), at=1)
    history.write(talk("two", session=FORK), FORK, at=2)
    replace = history.store.exchanges.replace

    def refuse(session: int, source: int, first: int, exchanges: Sequence[Exchange], *others: Any) -> None:
        if exchanges[0].prompt == "one?":
            raise ValueRefused("too large")
        replace(session, source, first, exchanges, *others)

    with monkeypatch.context() as patch:
        patch.setattr(history.store.exchanges, "replace", refuse)
        tally = history.ingest()

    assert [(problem.path, problem.reason) for problem in tally.problems] == [(history.path(), "too large")]
    assert (tally.changed, history.prompts(FORK)) == (1, ["two?"])
    assert history.store.sessions.find("claude-code", ORIGINAL) is None
    assert history.store.sources.problems() == [(history.path(), "too large")]
    assert history.ingest().problems == []
    assert history.prompts() == ["one?"]


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=8)
    | st.sampled_from(["\0", "2026-03-01T10:00:00Z", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00", ORIGINAL]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["text", "type", "id"]), inner),
    max_leaves=3,
)
_PLAIN: list[dict[str, Any]] = [
    *talk("one"),
    {"type": "assistant", "message": {"id": "m9", "content": [], "usage": {"input_tokens": 1, "output_tokens": 1}}},
    {"type": "ai-title", "aiTitle": "t", "sessionId": ORIGINAL},
    {"type": "pr-link", "prUrl": "u", "prNumber": 1, "sessionId": ORIGINAL},
    queue("enqueue", "later"),
]


def positions(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the container and the key of every value in some records."""
    keys: list[Any] = [*mapping(value), *range(len(listing(value)))]
    for key in keys:
        yield value, key
        yield from positions(value[key])


@few
@given(st.data())
def test_no_value_in_any_field_stops_a_run(data: st.DataObject) -> None:
    """For any value in any field of a record, the run ends and every line has an outcome."""
    records = copy.deepcopy(_PLAIN)
    for _ in range(data.draw(st.integers(1, 3))):
        holder, key = data.draw(st.sampled_from(list(positions(records))))
        if holder is not records:
            holder[key] = data.draw(anything)
    lines = [json.dumps(record).encode() for record in records]
    with TemporaryDirectory() as root, History(Path(root)) as history:
        path = history.write(b"\n".join([*lines, b""]))
        whole = Transcript(path, path, history.folder, ClaudeCode())
        tally = Ingest(history.store, history.raw).run([whole])

        assert (tally.changed, tally.problems) == (1, [])
        assert_accounted(history)


def test_a_new_folder_of_a_session_is_logged(history: History) -> None:
    """If a later line contains the session's folder, all its exchanges are logged as changed."""
    history.write([user("one?", uuid="q1"), user("two?", uuid="q2"), user("three?", uuid="q3")])
    history.ingest()
    before, seq = history.session().project, history.store.changes.last()
    history.append([user("four?", uuid="q4", cwd="/code/market")])
    history.ingest()

    assert (before, history.session().project) == ("shop", "market")
    assert history.store.changes.since(seq) == history.store.items.all_keys()
    assert len(history.prompts()) == 4


def test_parsing_blocks_no_writer(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process can write while this one parses. Only storing takes the lock."""
    monkeypatch.setattr(database, "BUSY_MS", 0)
    history.write(talk("one"))

    class Watched(RawArchive):
        def open(self, archived: str) -> BinaryIO:
            with Store.open(history.home.database) as other, other.transaction():
                other.sources.report(Path("/other"), "written meanwhile")
            return super().open(archived)

    Ingest(history.store, Watched(history.home.archive)).run(in_paths([history.folder]))

    assert history.prompts() == ["one?"]


def test_unknown_files_are_counted_and_ignored(history: History) -> None:
    """A file of an unknown agent in a folder is counted, but is neither archived nor reported as a problem."""
    history.write(talk("one"))
    history.write([{"a": 1}], FORK)
    tally = history.ingest()

    assert (tally.seen, tally.foreign, tally.changed, tally.problems) == (2, 1, 1, [])
    assert [reason for _, reason in tally.omitted] == ["not a transcript of a supported agent"]
    assert len(history.archive_files()) == 1


def test_a_second_run_opens_no_known_file(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second run opens no known file and lists each folder once."""
    history.write(talk("one"))
    history.ingest()
    listed: list[Path] = []
    scandir = os.scandir

    def counted(folder: Path) -> Any:
        listed.append(folder)
        return scandir(folder)

    def never(path: Path) -> None:
        raise AssertionError(path)

    monkeypatch.setattr(os, "scandir", counted)
    monkeypatch.setattr(places_of, "opened", never)
    history.ingest()

    assert listed == [history.folder, history.folder / "shop"]


def test_a_run_pauses_after_each_transaction(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """During a run, `store` returns True each time more content has become visible."""
    monkeypatch.setattr(ingest, "_TRANSACTION", 2)
    monkeypatch.setattr(ingest, "_UNSTORED", math.inf)
    for number in range(5):
        history.write(talk(f"u{number}", session=f"s{number}"), f"s{number}", at=number)
    found = list[int]()

    run = Ingest(history.store, RawArchive(history.home.archive))
    for transcript in run.read(in_paths([history.folder])):
        if run.store(run.parse(transcript)):
            found.append(history.store.exchanges.count())

    assert found == sorted(set(found))
    assert 1 < len(found) <= 3


def test_two_exports_of_one_conversation_are_one_source(tmp_path: Path) -> None:
    """Two exports of a conversation are one source, even if the first is parsed but not yet stored."""
    turn = {"uuid": "m1", "sender": "human", "text": "How is VAT rounded?", "created_at": "2026-01-01T00:00:00Z"}
    conversations = [
        {"uuid": number, "name": number, "created_at": "2026-01-01T00:00:00Z", "chat_messages": [turn]}
        for number in ("c0", "c1")  # the first conversation of a run is stored at once
    ]
    for folder in ("one", "two"):
        (tmp_path / "exports" / folder).mkdir(parents=True)
        (tmp_path / "exports" / folder / "conversations.json").write_text(json.dumps(conversations))
    home = Home(tmp_path / "home")
    home.make()
    with Store.create(home.database) as store:
        tally = Ingest(store, RawArchive(home.archive)).run(in_paths([tmp_path / "exports"]))
        assert tally.problems == []
        assert [source.path.name for source in store.sources.all()] == ["c0.jsonl", "c1.jsonl"]


def test_databases_with_equal_names_have_separate_copies(tmp_path: Path) -> None:
    """Conversations from databases with equal file names get separate copies in one run."""
    folders = [tmp_path / name for name in ("one", "two", "three")]
    for folder in folders:
        folder.mkdir()
        in_database(folder / "opencode.db")
    home = Home(tmp_path / "home")
    home.make()
    with Store.create(home.database) as store:
        tally = Ingest(store, RawArchive(home.archive)).run(in_paths(folders))
        assert tally.problems == []
        names = [source.archived for source in store.sources.all()]
        assert len(names) == len(set(names)) == 3
