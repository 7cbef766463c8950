"""Hostile text in transcripts, queries, memories, names and paths breaks nothing and reveals nothing."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from palaver.agents.conversation_tools import CONVERSATION, ConversationContext
from palaver.archiver.copies.exporter import Exporter
from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.redaction.redactor import normal_form
from palaver.archiver.store import Store
from palaver.cli import main
from palaver.core.errors import InvalidInput, PathOutsideArchive, QueryTooShort, UnknownProject
from palaver.core.home import Home
from palaver.core.memory import Memory
from palaver.core.query import Query
from palaver.observe import pipeline
from palaver.observe.archive import Archive
from palaver.observe.memory import memory_core
from palaver.search import archive_search
from palaver.search.archive_search import ArchiveSearch
from palaver.templates.render import Renderer

from ..archiver.formats.claude_code.claude_lines import assistant, jsonl, result, text, tool, user
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
def hostile_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """Return a home with every hostile string in each text field."""
    root = tmp_path_factory.mktemp("spoken")
    with History(root) as history, pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "load", fake)
        for number, string in enumerate(payloads.naughty()):
            history.write(session_with(string, number), f"s{number}")
        with pipeline.Pipeline(history.home) as passes:
            report = passes.run(in_paths([history.folder]))
        assert not report.ingested.problems
        yield history.home


def session_with(string: str, number: int) -> list[dict[str, Any]]:
    """Return a session with a string in all its text fields, after a unique word."""
    place = {"sessionId": f"s{number}", "cwd": string, "gitBranch": string, "version": string}
    call = tool("Bash", {"command": string, "description": string, string: string}, id=string)
    edit = tool("Edit", {"file_path": string, "old_string": string})
    return [
        {"type": "summary", "summary": string, "leafUuid": string},
        user(f"asked{number} {string}", uuid=f"{number}-1", **place),
        assistant(text(string), call, edit, uuid=f"{number}-2", **place),
        {**result(string, {"stdout": string, "filePath": string}, id=string), "uuid": f"{number}-3", **place},
        assistant(text(f"answered{number} {string}"), id="msg_2", uuid=f"{number}-4", **place),
        {"type": string, "content": string, string: [string], "timestamp": string},
    ]


def test_every_json_is_accounted_for(history: History) -> None:
    """Each file of JSONTestSuite is counted as a line of a transcript, and the lines around it are parsed."""
    lines = [data.replace(b"\n", b" ") for data in payloads.json_files().values()]
    records = [part for number, line in enumerate(lines) for part in (jsonl(talk(f"word{number}")), line + b"\n")]
    history.write(b"".join(records))
    done = history.ingest()

    source = history.source()
    assert not done.problems
    assert len(lines) > 300
    assert sum(source.coverage.values()) == source.lines == 3 * len(lines)
    assert set(history.prompts()) >= {f"word{number}?" for number in range(len(lines))}


def test_every_json_as_a_whole_transcript(history: History) -> None:
    """A transcript or document that is a file of JSONTestSuite does not stop an ingest run."""
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


def test_every_string_in_every_field(hostile_home: Home) -> None:
    """Every string is stored verbatim and shown in all layers, and every line is accounted for."""
    with Store.open(hostile_home.database) as store:
        assert len(store.sources.all()) == len(payloads.naughty())
        for source in store.sources.all():
            assert sum(source.coverage.values()) == source.lines == 6
        exchanges = [each.exchange for each in store.exchanges.load(store.items.all_keys()).values()]
    first_words = {exchange.prompt.split()[0] for exchange in exchanges}
    assert first_words >= {f"asked{number}" for number in range(len(payloads.naughty()))}
    page = Renderer(hostile_home.templates)
    with ArchiveSearch(hostile_home) as asked_layers:
        for number in range(0, len(payloads.naughty()), 5):
            [hit, *_] = asked_layers.find(Query.parse(f"asked{number}", mode="text")).hits
            page.observations(asked_layers.details([hit.id]))
            page.read(asked_layers.read(hit.path))
            assert b"".join(asked_layers.read_raw(hit.path)).count(b"\n") == 6


@pytest.mark.parametrize("mode", MODES)
def test_every_string_as_a_query(hostile_home: Home, mode: str) -> None:
    """Every string works as a query and as a concept, or is rejected as too short."""
    page = Renderer(hostile_home.templates)
    with ArchiveSearch(hostile_home) as asked:
        for number, string in enumerate(payloads.naughty()):
            try:
                page.search(asked.find(Query.parse(string, mode=mode)))
            except QueryTooShort:
                assert len(string.strip()) < 2, string
                continue
            if number % 8 == MODES.index(mode):
                asked.find(Query.parse([string, "answered1"], mode=mode))
                with suppress(UnknownProject):
                    asked.find(Query.parse("answered1", mode=mode, projects=[string]))
                asked.find(Query.parse("answered1", mode=mode, files=[string], concepts=[string]))


def test_every_string_as_a_memory(tmp_path: Path) -> None:
    """Every string is stored byte for byte and found by its first word, or rejected as empty."""
    with Archive(Home(tmp_path / "home")).memories as core:
        for string in payloads.naughty():
            try:
                done = core.remember(Memory(string, "fact", string[:80], tags=(string,)))
            except InvalidInput:
                assert not normal_form(string).strip(), string
                continue
            assert done.duplicate or core.get(done.stored.id).memory.content == normal_form(string)
            core.recall(string)


def test_every_string_as_a_file_name(history: History) -> None:
    """A transcript with any file name is archived, parsed, and exported byte for byte."""
    allowed = (string.replace("/", "_").replace("\0", "_") for string in payloads.naughty())
    names = {string.encode()[:200].decode(errors="ignore") for string in allowed}
    paths = [history.write(talk(f"word{number}", session=name), name) for number, name in enumerate(sorted(names))]
    odd = Path(os.fsdecode(os.fsencode(history.folder / "shop") + b"/caf\xe9.jsonl"))
    odd.write_bytes(jsonl(talk("odd", session="odd")))
    done = history.ingest()

    assert not done.problems
    originals = Exporter(history.store, history.raw)
    for path in [*paths, odd]:
        [source] = originals.find(str(path))
        assert history.copy(source) == path.read_bytes()
        assert history.raw.resolve(source.archived).is_relative_to(history.home.archive)


@pytest.fixture
def guarded(history: History) -> History:
    """Return a home next to a secret file, with links to it in the archive."""
    history.write(talk("one"))
    history.ingest()
    outside = history.home.root.parent / "secret.jsonl"
    outside.write_text(SECRET)
    (history.home.archive / "link.jsonl").symlink_to(outside)
    (history.home.archive / "folder").symlink_to(outside.parent)
    return history


def escapes(history: History) -> list[str]:
    """Yield every listed path that leads out of the archive, to the secret and to system files."""
    secret = str(history.home.root.parent / "secret.jsonl").lstrip("/")
    own = ["link.jsonl", "folder/secret.jsonl", "../../secret.jsonl", "../palaver.db", "claude-code/../../palaver.db"]
    known = [each.replace("{FILE}", target) for each in payloads.traversals() for target in (secret, "etc/passwd")]
    return own + known + [f"claude-code/{each}" for each in known[::5]]


def test_no_path_leads_out_of_the_archive(guarded: History) -> None:
    """`read`, `read --raw` and the tool reject each path with the same message, and export rejects each path too."""
    originals = Exporter(guarded.store, guarded.raw)
    read = next(tool for tool in CONVERSATION.tools if tool.name == "read")
    with ArchiveSearch(guarded.home) as asked:
        context = ConversationContext(asked, Renderer(guarded.home.templates))
        for path in escapes(guarded):
            with pytest.raises(PathOutsideArchive):
                asked.read(path)
            with pytest.raises(PathOutsideArchive):
                list(asked.read_raw(path))
            with pytest.raises(PathOutsideArchive):
                read.call(context, {"path": path})
            with pytest.raises(InvalidInput):
                originals.find(path)


def test_no_command_reveals_the_secret(guarded: History, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every command with a path or an ID rejects them with a message, a status and no traceback."""
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


def test_a_session_name_never_becomes_a_path(history: History, tmp_path: Path) -> None:
    """A session name in a transcript is never used as a path, neither in the archive nor in an export."""
    for number, path in enumerate(payloads.traversals()[::17]):
        place = {"sessionId": path.replace("{FILE}", "etc/cron.d/x"), "cwd": path}
        history.write([user("one", uuid=f"{number}", **place)], f"s{number}")
    before = {each for each in tmp_path.rglob("*") if not each.is_relative_to(history.home.root)}
    assert not history.ingest().problems

    originals = Exporter(history.store, history.raw)
    done = originals.export(history.store.sources.all(), tmp_path / "out")
    assert not done.problems
    made = {each for each in tmp_path.rglob("*") if not each.is_relative_to(history.home.root)} - before
    assert all(each.is_relative_to(tmp_path / "out") for each in made)
    assert made
