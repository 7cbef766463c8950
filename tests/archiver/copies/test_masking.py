"""The masked archive: no file of the home holds a secret, and everything else is as it would be without masking."""

# pyright: reportPrivateUsage=false

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from palaver.archiver.copies import masking
from palaver.archiver.copies.forms import Copy
from palaver.archiver.copies.originals import Originals
from palaver.archiver.copies.raw import RawArchive
from palaver.archiver.copies.sealing import Sealer
from palaver.archiver.formats import FORMATS, Format
from palaver.archiver.intake.ingest import Ingest
from palaver.archiver.intake.transcripts import in_paths
from palaver.archiver.redaction import VERSION
from palaver.archiver.store import Store
from palaver.core.home import Home
from palaver.core.report import Pass

from ... import fuse
from ..formats.examples import records
from ..formats.test_opencode import SCHEMA, put
from ..formats.unrolled import database
from ..history import History, talk
from ..test_canaries import CANARY, planted, within, write
from ..test_crash import run, started

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

SEARCH = """
import sys; from pathlib import Path
try:
    from compression import zstd
except ImportError:
    from backports import zstd
needles = [needle.encode() for needle in sys.argv[2:]]
def contents(path):
    data = path.read_bytes()
    yield data
    if data[:4] == bytes.fromhex("28b52ffd"):
        yield zstd.decompress(data)
for path in Path(sys.argv[1]).rglob("*"):
    if path.is_file() and any(needle in data for data in contents(path) for needle in needles):
        print(path)
"""
HALF = CANARY[4:24]
KILLS = 4


class Masked(History):
    """A history whose copies are masked, or not, as a pass is told."""

    mask = True

    def ingest(self) -> Pass:
        return Ingest(self.store, self.raw, mask=self.mask).run(in_paths([self.folder]))


def holding(root: Path, *needles: str) -> list[str]:
    """The files below a folder that hold any of these, also in what they compress, as another process sees them."""
    command = [sys.executable, "-c", SEARCH, str(root), *needles]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def without_checksums(history: History) -> dict[str, list[tuple[object, ...]]]:
    """Return all rows without the checksums: those of a rewrite that was killed are computed anew, not compared."""
    rows = history.dump()
    return {**rows, "source": [row[:-2] for row in rows["source"]]}


def said(history: History) -> list[object]:
    return [stored.exchange for stored in history.stored()]


@pytest.fixture
def history(tmp_path: Path) -> Iterator[Masked]:
    with Masked(tmp_path) as made:
        yield made


@pytest.mark.parametrize("known", FORMATS, ids=lambda known: known.agent)
def test_no_file_of_the_home_holds_a_secret(known: Format, tmp_path: Path) -> None:
    """Whatever agent wrote it, a secret is in no byte of the home, and what is known is what is known without masks."""
    made = [planted(record, within, lambda _, text: " " in text) for record in records(known)]
    transcript, homes = write(tmp_path, 1, known, made), [Home(tmp_path / name) for name in ("plain", "masked")]
    dumped: list[object] = []
    for home in homes:
        home.make()
        (home.root / "redaction.key").write_bytes(bytes(32))
        with Store.create(home.database) as store:
            raw = RawArchive(home.archive)
            Ingest(store, raw, mask=home is homes[1]).run([transcript])
            stored = store.exchanges.load(store.items.all_keys()).values()
            dumped.append([(turn.line, turn.kind, turn.text) for each in stored for turn in each.exchange.turns])
            (source,) = store.sources.all()
            if home is homes[1]:
                assert holding(home.root, CANARY, HALF) == []
                assert Copy(home.archive, source.archived).size() == transcript.path.stat().st_size
            Copy(home.archive, source.archived).seal()

    assert dumped[0] == dumped[1]
    assert holding(homes[0].root, CANARY) != []
    assert holding(homes[1].root, CANARY, HALF) == []


def test_what_is_archived_already_is_masked_by_the_next_pass(history: Masked, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain, sealed, left by a killed pass or set aside as damaged: a pass that is told to masks all, in its time."""
    history.mask = False
    history.write(talk("a", f"use {CANARY}", "b"), "s1")
    history.write(talk("c", f"use {CANARY}", "d", session="s2"), "s2")
    history.write(talk("e", session="s3"), "s3")
    history.ingest()
    before = said(history)
    root = history.home.archive
    Copy(root, history.source("s2").archived).seal()
    lost, aside = root / "claude-code/shop/lost.jsonl", root / "claude-code/shop/x.jsonl.sealed.zst.damaged"
    lost.write_bytes(orjson.dumps({"a": CANARY}))
    shutil.copyfile(Copy(root, history.source("s2").archived).sealed, aside)
    monkeypatch.setattr(masking, "BUDGET", 0.0)
    assert len(holding(root, CANARY)) == 4

    history.mask = True
    ingest = Ingest(history.store, history.raw, mask=True)
    ingest._masking.run(first := Pass(), budget=0.0)
    assert (first.masked, first.unmasked) == (0, 3)
    tally = history.ingest()

    assert (tally.masked, tally.unmasked, tally.changed) == (3, 0, 0)
    assert holding(history.home.root, CANARY, HALF) == []
    assert Copy(root, history.source("s2").archived).sealed.exists()
    assert said(history) == before
    assert {source.masked for source in history.store.sources.all()} == {VERSION}
    assert history.ingest().masked == 0


def test_a_masked_copy_grows_like_any_other(history: Masked, tmp_path: Path) -> None:
    """Lines that come later, in pieces, after sealing: read from where reading stopped, masked, and in their place."""
    with History(tmp_path, "plain") as plain:
        (plain.home.root / "redaction.key").write_bytes(history.home.key())
        path = history.write(talk("a", f"my key {CANARY} is"), at=1)
        more = b"".join(orjson.dumps(line) + b"\n" for line in talk("b", f"and {CANARY}", "c"))
        cut = more.index(CANARY.encode()) + 9
        for step, piece in enumerate((b"", more[:cut], more[cut:-4], more[-4:])):
            history.append(piece, at=2 + step)
            history.ingest()
            plain.ingest()
            assert holding(history.home.root, CANARY, CANARY[:9], HALF) == []
            assert Copy(history.home.archive, history.source().archived).size() == path.stat().st_size
            if step == 1:
                Copy(history.home.archive, history.source().archived).seal()

        assert said(history) == said(plain)
        assert history.prompts() == plain.prompts() != []
        assert history.source().coverage == plain.source().coverage
        assert len(history.archive_files()) == 1


def test_turning_it_off_leaves_masked_copies_masked(history: Masked) -> None:
    """Off means that copies made from then on are what the agents wrote; one that is masked goes on so."""
    history.write(talk(f"use {CANARY}"), "s1")
    history.ingest()
    history.mask = False
    history.append(talk(f"use {CANARY} again"), "s1", at=9)
    history.write(talk(f"use {CANARY}", session="s2"), "s2")
    history.ingest()

    assert [Path(path).stem for path in holding(history.home.archive, CANARY)] == ["s2"]
    assert len(history.archive_files()) == 2


def test_a_masked_document_is_renewed(tmp_path: Path) -> None:
    """A document that its agent writes anew is masked whole, and says in one copy all that it says."""
    path = tmp_path / "session-2026-01-01T00-00-aaaaaaaa.json"
    home = Home(tmp_path / "home")
    home.make()
    with Store.create(home.database) as store:
        for count in (1, 2, 3):
            messages = [
                {"id": f"m{n}", "timestamp": f"2026-01-01T00:0{n}:00Z", "type": "user", "content": f"{n} {CANARY} said"}
                for n in range(count)
            ]
            head = {"sessionId": "s1", "projectHash": "p", "startTime": "2026-01-01T00:00:00Z", "lastUpdated": "x"}
            path.write_text(orjson.dumps(head | {"messages": messages}, option=orjson.OPT_INDENT_2).decode())
            Ingest(store, RawArchive(home.archive), mask=True).run(in_paths([path]))
        (source,) = store.sources.all()

        assert len(store.exchanges.load(store.items.all_keys())) == 3
        assert Copy(home.archive, source.archived).size() == path.stat().st_size
    assert holding(home.root, CANARY, HALF) == []


@pytest.mark.parametrize("secret", [CANARY, "nothing"])
def test_a_compressed_file_is_masked_within(secret: str, tmp_path: Path) -> None:
    """A compressed copy is compressed anew when there is a secret in it, and otherwise what the agent wrote."""
    path = tmp_path / "sessions/2026/01/01/rollout-2026-01-01T00-00-00-11111111-0000-4000-8000-000000000001.jsonl.zst"
    path.parent.mkdir(parents=True)
    known = next(known for known in FORMATS if known.agent == "codex")
    lines = [planted(record, lambda text: f"{text} {secret}", lambda _, text: " " in text) for record in records(known)]
    path.write_bytes(zstd.compress(b"".join(orjson.dumps(line) + b"\n" for line in lines)))
    home = Home(tmp_path / "home")
    home.make()
    with Store.create(home.database) as store:
        raw = RawArchive(home.archive)
        Ingest(store, raw, mask=True).run(in_paths([path]))
        (source,) = store.sources.all()
        assert source.lines == len(lines)
        os.utime(path)
        assert Ingest(store, raw, mask=True).run(in_paths([path])).changed == 1
        assert len(store.sources.all()) == 1
        with raw.original(source.archived) as copy:
            data = copy.read()

    assert holding(home.root, CANARY, HALF) == []
    assert (data == path.read_bytes()) == (secret != CANARY)
    assert len(data) >= path.stat().st_size


def test_conversations_of_a_container_are_masked(tmp_path: Path) -> None:
    """A message that grows while it is written stands once in a masked copy, whichever setting it was begun under."""
    path, home = tmp_path / "opencode.db", Home(tmp_path / "home")
    home.make()
    program = database(path, SCHEMA)
    put(program)
    with Store.create(home.database) as store:
        raw = RawArchive(home.archive)
        for mask, text in (
            (False, f"it is {CANARY}"),
            (True, f"it is {CANARY} and"),
            (False, f"it is {CANARY} and on"),
        ):
            part = orjson.dumps({"type": "text", "text": text}).decode()
            program.execute("UPDATE part SET data = ?, time_updated = ? WHERE id = 'prt_msg_2_3'", (part, len(text)))
            Ingest(store, raw, mask=mask).run(in_paths([path]))
            assert (holding(home.archive, CANARY) == []) == (mask or text.endswith("on"))
        (source,) = store.sources.all()
        with raw.open(source.archived) as file:
            assert sum(b"it is" in line for line in file) == 1
    program.close()


def test_a_killed_pass_leaves_no_secret(tmp_path: Path) -> None:
    """Killed at any moment of copying, no file holds a secret, and the next pass ends with what it would have been."""
    with Masked(tmp_path, "before") as before:
        before.write(talk("a", f"use {CANARY}"), "s1")
        before.mask = False
        before.ingest()
        before.append(talk("b", f"use {CANARY} once more"), "s1", at=8)
        before.write(talk("c", f"use {CANARY}", session="s2"), "s2", at=9)
    steps = fuse.steps(run("masked", tmp_path, started(tmp_path, "calm"), 0))
    with Masked(tmp_path, "calm") as calm:
        rows, copies = without_checksums(calm), calm.archive_files()
    assert holding(tmp_path / "calm", CANARY, HALF) == []

    for point in random.Random(2027).sample(range(1, steps + 1), KILLS):
        fuse.kill(lambda at: run("masked", tmp_path, started(tmp_path, "killed"), at), point)
        left = holding(tmp_path / "killed" / "archive", CANARY, HALF)
        assert {Path(name).stem for name in left} <= {"s1"}
        with Masked(tmp_path, "killed") as history:
            history.ingest()
            assert without_checksums(history) == rows, point
            assert history.archive_files() == copies, point


def test_a_masked_copy_is_given_back_as_it_is(history: Masked, tmp_path: Path) -> None:
    """Export gives what the copy holds, and says that it is masked."""
    history.write(talk(f"use {CANARY}"), "s1")
    history.ingest()
    Sealer(history.store, history.raw).run()
    given = Originals(history.store, history.raw).export(history.store.sources.all(), tmp_path / "out")

    assert given.problems == []
    assert given.masked == 1
    assert holding(tmp_path / "out", CANARY) == []
