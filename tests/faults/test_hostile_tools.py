"""No path, name or ID makes a tool read, write or reveal files elsewhere."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from palaver.agents.historian_tools import HISTORIAN, HistorianContext
from palaver.agents.theo import THEO
from palaver.agents.theo.theo_context import TheoContext
from palaver.agents.toolset import ServerConfig, Tool, ToolReply, Toolset
from palaver.archiver.deletion.suppression import Selector
from palaver.cli import main
from palaver.core.deletion import DeletionRequest
from palaver.core.errors import InvalidInput, PalaverError
from palaver.core.home import Home
from palaver.observe import pipeline
from palaver.observe.archive import Archive
from palaver.observe.memory import memory_core
from palaver.search import archive_search, document_library
from palaver.templates.render import Renderer

from ..archiver.history import History, talk
from . import payloads
from .worker import fake

pytestmark = payloads.needed
SECRET = "canary-7f3a"


@pytest.fixture(autouse=True)
def _no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (pipeline, archive_search, document_library, memory_core):
        monkeypatch.setattr(module, "load", fake)


@dataclass
class AgentFolder:
    """Working folder of an agent with links to a secret beside the folder."""

    root: Path

    def __post_init__(self) -> None:
        self.work = self.root / "work"
        self.home = Home(self.work / "home")
        self.home.make()
        self.secret = self.root / "secret.md"
        self.secret.write_text(SECRET)
        (self.root / "secrets").mkdir()
        (self.root / "secrets" / "more.md").write_text(SECRET)
        (self.work / "link.md").symlink_to(self.secret)
        (self.work / "folder").symlink_to(self.root / "secrets")
        self.place = ServerConfig(Archive(self.home), Renderer(), (self.work,), self.work)
        self.before = self.outside()

    def outside(self) -> dict[Path, bytes]:
        """Return every file next to the folder."""
        paths = (path for path in self.root.rglob("*") if not path.is_relative_to(self.work))
        return {path: path.read_bytes() for path in paths if path.is_file()}

    def escapes(self) -> list[str]:
        """Yield every listed path to files and folders outside, and to system files."""
        wanted = [str(self.secret).lstrip("/"), "secret.md", "secrets", "etc/passwd", "etc"]
        own = [
            "link.md",
            "folder",
            "folder/more.md",
            "../secret.md",
            "..",
            "../secrets",
            str(self.secret),
            "/",
            "~",
            "",
        ]
        known = [each.replace("{FILE}", target) for each in payloads.traversals() for target in wanted]
        return own + known + [f"{self.work}/{each}" for each in known[::5]]

    def holds(self) -> None:
        """Check that the home does not contain the secret and that nothing outside changed."""
        assert self.outside() == self.before
        for path in self.home.root.rglob("*"):
            assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path


@pytest.fixture
def guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AgentFolder]:
    found = AgentFolder(tmp_path)
    monkeypatch.chdir(found.work)
    yield found
    found.holds()


def tool(toolset: Toolset, name: str) -> Tool:
    return next(each for each in toolset.tools if each.name == name)


def answered(toolset: Toolset, name: str, context: object, given: Mapping[str, object]) -> ToolReply | None:
    """Return the reply of a call, or None if the call was rejected, and check that nothing was revealed."""
    answer = None
    try:
        reply = answer = tool(toolset, name).call(context, given)
    except PalaverError as error:
        reply = toolset.to_error_reply(error)
    assert SECRET not in reply.text
    assert "root:" not in reply.text
    return answer


def test_no_path_indexes_a_file_outside(guarded: AgentFolder) -> None:
    """Each path is rejected as a file and as a folder, reveals no content in traces, and deletes nothing."""
    context = TheoContext(guarded.place)
    for number, path in enumerate(guarded.escapes()):
        assert answered(THEO, "index_file", context, {"file_path": path}) is None, path
        if number % 40 == 0:
            if (
                found := answered(THEO, "index_directory", context, {"dir_path": path, "async_mode": False})
            ) is not None:
                assert found.data is not None
                assert found.data["data"]["files_indexed"] == 0, path
            answered(THEO, "trace_query", context, {"file": path})
            gone = answered(THEO, "delete_file", context, {"source_file": path})
            assert gone is None or (gone.data is not None and gone.data["data"]["deleted_count"] == 0), path
    assert context.documents.stats().chunks == 0


def test_no_memory_name_leads_outside(guarded: AgentFolder) -> None:
    """A title, type or tag that looks like a path is rejected or becomes a file in the project's memory folder."""
    context = HistorianContext(guarded.place)
    names = [*guarded.escapes()[:10], *guarded.escapes()[10::1499], *payloads.naughty()[::40]]
    written = 0
    for name in names:
        for given in ({"title": name}, {"memoryType": name}, {"tags": [name]}):
            wanted = {
                "title": "A heron",
                "memoryType": "learning",
                "content": f"Said of {name} {given.keys()}",
                **given,
            }
            written += answered(HISTORIAN, "memory_remember", context, wanted) is not None
    made = {path for path in guarded.work.rglob("*") if path.is_file() and not path.is_relative_to(guarded.home.root)}
    assert written > len(names)
    assert all(path.resolve().is_relative_to(guarded.work) for path in made - {guarded.work / "link.md"})


def test_document_tools_answer_every_string(guarded: AgentFolder) -> None:
    """Every string as a path, namespace or ID gets a reply or an error message."""
    (guarded.work / "notes.md").write_text("# Herons\n\nThey wait.\n")
    context = TheoContext(guarded.place)
    for string in payloads.naughty()[::3]:
        for name, given in (
            ("index_file", {"file_path": string}),
            ("index_file", {"file_path": "notes.md", "namespace": string}),
            ("index_directory", {"dir_path": string}),
            ("delete_file", {"source_file": string}),
            ("delete_chunks", {"ids": [string]}),
            ("trace_list", {"conversation_url": string}),
        ):
            answered(THEO, name, context, given)
    assert context.documents.stats().source_files == (guarded.work / "notes.md",)


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with History(tmp_path) as found:
        found.write(talk("one", "two"))
        found.ingest()
        outside = found.home.root.parent / "secret.jsonl"
        outside.write_text(SECRET)
        (found.home.archive / "link.jsonl").symlink_to(outside)
        (found.home.archive / "folder").symlink_to(outside.parent)
        yield found
        assert outside.read_text() == SECRET


def ways(history: History) -> list[str]:
    """Yield every listed path out of the archive."""
    secret = str(history.home.root.parent / "secret.jsonl").lstrip("/")
    own = ["link.jsonl", "folder/secret.jsonl", "../../secret.jsonl", "../palaver.db", "claude-code/../../palaver.db"]
    known = [each.replace("{FILE}", target) for each in payloads.traversals() for target in (secret, "etc/passwd")]
    return own + known + [f"claude-code/{each}" for each in known[::5]]


@pytest.mark.parametrize("erase", [False, True])
def test_no_path_selects_anything_to_delete(history: History, erase: bool) -> None:
    """A path outside the archive selects nothing, alone and with lines."""
    for number, path in enumerate(ways(history)[erase::2]):
        selector = Selector(
            history.store, history.raw, DeletionRequest((path if number % 3 else f"{path}:1-2",), erase=erase)
        )
        with pytest.raises(InvalidInput, match="No match in the archive for"):
            selector.select()


def test_deleting_by_a_hostile_name_changes_nothing(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each string as a name, project, agent or date is rejected without a traceback and without a change."""
    monkeypatch.setenv("PALAVER_HOME", str(history.home.root))
    before = history.dump(), history.archive_files()
    hostile = [*ways(history)[:5], *ways(history)[5::997], *payloads.naughty()[::50], *payloads.injections()[::20]]
    for string in (each for each in hostile if "\0" not in each):
        for command in (["--erase", "--", string], *([f"--{name}", string] for name in ("project", "agent", "since"))):
            done = CliRunner().invoke(main, ["forget", *command])
            assert isinstance(done.exception, SystemExit | None), (command, done.exception)
            assert SECRET not in done.output
            assert "root:" not in done.output
        done = CliRunner().invoke(main, ["forget", "--mentions", string, "--confirm", "0" * 12])
        assert "Traceback" not in done.output
    assert (history.dump(), history.archive_files()) == before
