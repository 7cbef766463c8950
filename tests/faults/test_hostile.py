"""Whatever stands in a transcript, a query, a memory, a name or a path: nothing breaks, nothing is given away."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from palaver.agents.conversation import CONVERSATION
from palaver.agents.desk import Desk
from palaver.archiver.copies.exporter import Exporter
from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.store import Store
from palaver.cli import main
from palaver.core.errors import InvalidInput, PathOutsideArchive, QueryTooShort
from palaver.core.home import Home
from palaver.core.memory import Memory
from palaver.core.query import Query
from palaver.observe import pipeline
from palaver.observe.memory import MemoryCore, memory_core
from palaver.search import archive_search
from palaver.search.archive_search import ArchiveSearch
from palaver.templates.render import Renderer

from ..archiver.formats.claude_code.claude_lines import replied, result, said, text, tool, written
from ..archiver.history import History, talk
from . import payloads
from .worker import fake

pytestmark = payloads.needed
SECRET = "canary-7f3a"
MODES = ("text", "vector", "both")


@pytest.fixture(autouse=True)
def _no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (pipeline, archive_search, memory_core):
        monkeypatch.setattr(module, "load", fake)


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with History(tmp_path) as found:
        yield found


@pytest.fixture(scope="module")
def spoken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A home in which every naughty string was said, answered, done and printed, once in each text field."""
    root = tmp_path_factory.mktemp("spoken")
    with History(root) as history, pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "load", fake)
        for number, string in enumerate(payloads.naughty()):
            history.write(spoken_everywhere(string, number), f"s{number}")
        with pipeline.Pipeline(history.home) as passes:
            report = passes.run(in_paths([history.folder]))
        assert not report.ingested.problems
        yield history.home


def spoken_everywhere(string: str, number: int) -> list[dict[str, Any]]:
    """A session that has a string in all its text fields, behind a word that is only in this one."""
    place = {"sessionId": f"s{number}", "cwd": string, "gitBranch": string, "version": string}
    call = tool("Bash", {"command": string, "description": string, string: string}, id=string)
    edit = tool("Edit", {"file_path": string, "old_string": string})
    return [
        {"type": "summary", "summary": string, "leafUuid": string},
        said(f"asked{number} {string}", uuid=f"{number}-1", **place),
        replied(text(string), call, edit, uuid=f"{number}-2", **place),
        {**result(string, {"stdout": string, "filePath": string}, id=string), "uuid": f"{number}-3", **place},
        replied(text(f"answered{number} {string}"), id="msg_2", uuid=f"{number}-4", **place),
        {"type": string, "content": string, string: [string], "timestamp": string},
    ]


def test_every_json_is_accounted_for(history: History) -> None:
    """Each file of JSONTestSuite as a line of a transcript is counted, and what stands around it is read."""
    lines = [data.replace(b"\n", b" ") for data in payloads.json_files().values()]
    records = [part for number, line in enumerate(lines) for part in (written(talk(f"word{number}")), line + b"\n")]
    history.write(b"".join(records))
    done = history.ingest()

    source = history.source()
    assert not done.problems
    assert len(lines) > 300
    assert sum(source.coverage.values()) == source.lines == 3 * len(lines)
    assert set(history.prompts()) >= {f"word{number}?" for number in range(len(lines))}


def test_every_json_as_a_whole_transcript(history: History) -> None:
    """A file that is nothing but one of these, as a transcript or as a document, stops nobody."""
    for number, data in enumerate(payloads.json_files().values()):
        history.write(data, f"s{number}")
        path = history.path(f"s{number}")
        (path.parent / f"d{number}.json").write_bytes(data)
    history.write(talk("after"))
    done = history.ingest()

    assert not done.problems
    assert history.prompts() == ["after?"]
    for source in history.store.sources.all():
        assert sum(source.coverage.values()) == source.lines


def test_every_string_in_every_field(spoken: Home) -> None:
    """What was said is there as it was said, can be shown in all layers, and no line is unaccounted for."""
    with Store.open(spoken.database) as store:
        assert len(store.sources.all()) == len(payloads.naughty())
        for source in store.sources.all():
            assert sum(source.coverage.values()) == source.lines == 6
        exchanges = [each.exchange for each in store.exchanges.load(store.items.all_keys()).values()]
    first_words = {exchange.prompt.split()[0] for exchange in exchanges}
    assert first_words >= {f"asked{number}" for number in range(len(payloads.naughty()))}
    page = Renderer(spoken.templates)
    with ArchiveSearch(spoken) as asked_layers:
        for number in range(0, len(payloads.naughty()), 5):
            [hit, *_] = asked_layers.search(Query.parse(f"asked{number}", mode="text")).hits
            page.observations(asked_layers.get_observations([hit.id]))
            page.read(asked_layers.read(hit.path))
            assert b"".join(asked_layers.read_raw(hit.path)).count(b"\n") == 6


@pytest.mark.parametrize("mode", MODES)
def test_every_string_as_a_query(spoken: Home, mode: str) -> None:
    """Each is answered, as the one query and as a concept among others, or refused as too short."""
    page = Renderer(spoken.templates)
    with ArchiveSearch(spoken) as asked:
        for number, string in enumerate(payloads.naughty()):
            try:
                page.search(asked.search(Query.parse(string, mode=mode)))
            except QueryTooShort:
                assert len(string.strip()) < 2, string
                continue
            if number % 8 == MODES.index(mode):
                asked.search(Query.parse([string, "answered1"], mode=mode))
                asked.search(Query.parse("answered1", mode=mode, projects=[string], files=[string], concepts=[string]))


def test_every_string_as_a_memory(tmp_path: Path) -> None:
    """Each is held as it is, byte for byte, or refused as empty, and is found by its first word."""
    with MemoryCore.open(Home(tmp_path / "home")) as core:
        for string in payloads.naughty():
            try:
                done = core.remember(Memory(string, "fact", string[:80], tags=(string,)))
            except InvalidInput:
                assert not string.strip(), string
                continue
            assert done.duplicate or core.get(done.stored.id).memory.content == string
            core.recall(string)


def test_every_string_as_a_file_name(history: History) -> None:
    """A transcript of any name is archived below the archive, read, and given back byte for byte."""
    allowed = (string.replace("/", "_").replace("\0", "_") for string in payloads.naughty())
    names = {string.encode()[:200].decode(errors="ignore") for string in allowed}
    paths = [history.write(talk(f"word{number}", session=name), name) for number, name in enumerate(sorted(names))]
    odd = Path(os.fsdecode(os.fsencode(history.folder / "shop") + b"/caf\xe9.jsonl"))
    odd.write_bytes(written(talk("odd", session="odd")))
    done = history.ingest()

    assert not done.problems
    originals = Exporter(history.store, history.raw)
    for path in [*paths, odd]:
        [source] = originals.find(str(path))
        assert history.copy(source) == path.read_bytes()
        assert history.raw.resolve(source.archived).is_relative_to(history.home.archive)


@pytest.fixture
def guarded(history: History) -> History:
    """A home beside which lies a secret, and in whose archive are links to it."""
    history.write(talk("one"))
    history.ingest()
    outside = history.home.root.parent / "secret.jsonl"
    outside.write_text(SECRET)
    (history.home.archive / "link.jsonl").symlink_to(outside)
    (history.home.archive / "folder").symlink_to(outside.parent)
    return history


def escapes(history: History) -> list[str]:
    """Every way out of the archive that the lists know, to the secret and to the system's files."""
    secret = str(history.home.root.parent / "secret.jsonl").lstrip("/")
    own = ["link.jsonl", "folder/secret.jsonl", "../../secret.jsonl", "../palaver.db", "claude-code/../../palaver.db"]
    known = [each.replace("{FILE}", target) for each in payloads.traversals() for target in (secret, "etc/passwd")]
    return own + known + [f"claude-code/{each}" for each in known[::5]]


def test_no_path_leads_out_of_the_archive(guarded: History) -> None:
    """`read`, its raw form and the agent's tool refuse each in the same words; export knows none of them."""
    originals = Exporter(guarded.store, guarded.raw)
    read = next(tool for tool in CONVERSATION.tools if tool.name == "read")
    with ArchiveSearch(guarded.home) as asked:
        desk = Desk(asked, Renderer(guarded.home.templates))
        for path in escapes(guarded):
            with pytest.raises(PathOutsideArchive):
                asked.read(path)
            with pytest.raises(PathOutsideArchive):
                list(asked.read_raw(path))
            with pytest.raises(PathOutsideArchive):
                read.call(desk, {"path": path})
            with pytest.raises(InvalidInput):
                originals.find(path)


def test_no_command_gives_the_secret_away(guarded: History, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every command that takes a path or an id refuses them in words, with a status of its own and no stack."""
    monkeypatch.setenv("PALAVER_HOME", str(guarded.home.root))
    monkeypatch.chdir(tmp_path)
    wanted = [*escapes(guarded)[:5], *escapes(guarded)[5::97], *payloads.naughty()[::23]]
    for path in (each for each in wanted if "\0" not in each):
        for command in (["read"], ["show"], ["export"], ["memories", "show"]):
            done = CliRunner().invoke(main, [*command, "--", path])
            assert done.exit_code in {1, 2}, (command, done.output)
            assert isinstance(done.exception, SystemExit), (command, done.exception)
            assert SECRET not in done.output
            assert "root:" not in done.output


def test_a_session_named_like_a_way_out(history: History, tmp_path: Path) -> None:
    """What a transcript says of itself never becomes a path: not when it is archived, not when it is exported."""
    for number, path in enumerate(payloads.traversals()[::17]):
        place = {"sessionId": path.replace("{FILE}", "etc/cron.d/x"), "cwd": path}
        history.write([said("one", uuid=f"{number}", **place)], f"s{number}")
    before = {each for each in tmp_path.rglob("*") if not each.is_relative_to(history.home.root)}
    assert not history.ingest().problems

    originals = Exporter(history.store, history.raw)
    done = originals.export(history.store.sources.all(), tmp_path / "out")
    assert not done.problems
    made = {each for each in tmp_path.rglob("*") if not each.is_relative_to(history.home.root)} - before
    assert all(each.is_relative_to(tmp_path / "out") for each in made)
    assert made
