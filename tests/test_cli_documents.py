"""`palaver index` and `palaver documents`: arguments, output and exit status."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from palaver.cli import main
from palaver.search.document_library import DocumentLibrary

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    before = [signal.getsignal(number) for number in SIGNALS]
    yield
    for number, handler in zip(SIGNALS, before, strict=True):
        signal.signal(number, handler)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder with two documents and a damaged one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "guide.md").write_text("# Kiln\nHeat the kiln slowly.\n")
    (tmp_path / "docs" / "kiln.py").write_text("def heat(kiln):\n    return kiln\n")
    (tmp_path / "docs" / "bad.pdf").write_bytes(b"%PDF-1.4")
    return tmp_path / "docs"


def palaver(*arguments: str, code: int = 0) -> Result:
    """Run a command in this process."""
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == code, result.output
    return result


def answer(*arguments: str, code: int = 0) -> dict[str, Any]:
    """Return the JSON output of a command."""
    reply: dict[str, Any] = json.loads(palaver(*arguments, "--json", code=code).stdout)
    return reply


def test_a_folder_is_indexed_listed_and_deleted(folder: Path) -> None:
    """Each command reports its result. An unreadable file sets exit status 1 and does not stop the run."""
    output = palaver("index", "docs", "--namespace", "pots", code=1).stdout
    assert output.splitlines() == [
        "Indexed 2 files as 2 chunks in namespace pots.",
        f"Not indexed: {folder / 'bad.pdf'}: the file is damaged or not a PDF. Open it in a viewer and save it again.",
        f"`palaver watch` keeps {folder.resolve()} current.",
    ]
    (folder / "bad.pdf").unlink()
    assert palaver("index", "docs", "--namespace", "pots", "--once").stdout == (
        "Indexed 0 files as 0 chunks in namespace pots; 2 unchanged.\n"
    )

    [first, *_] = answer("search", "heat the kiln slowly", "--project", "pots")["results"]
    assert (first["kind"], first["path"]) == ("document", str(folder / "guide.md"))
    assert "Heat the kiln slowly." in palaver("show", first["id"]).stdout

    listed = palaver("documents", "list").stdout
    assert listed.startswith(f"Watched: {folder} in namespace pots\n2 files as 2 chunks:\n\n[pots] 2 chunks\n")
    assert str(folder / "guide.md") in listed

    assert "is in the watched folder" in palaver("documents", "remove", "docs/guide.md", code=2).stderr
    assert palaver("documents", "remove", "--namespace", "pots").stdout == (
        "Removed 2 chunks from the index. 1 folder no longer watched. The files on disk are unchanged.\n"
    )
    assert palaver("documents", "list").stdout == "No documents indexed. Run `palaver index PATH`.\n"
    assert (folder / "guide.md").exists()


def test_json_output_contains_all_counts(folder: Path) -> None:
    """Each command with `--json` prints its counts and lists."""
    assert answer("index", str(folder), code=1) == {
        "namespace": "project:docs",
        "indexed": 2,
        "chunks": 2,
        "units": 1,
        "moved": 0,
        "unchanged": 0,
        "unparsed": 0,
        "queued": 0,
        "gone": 0,
        "skipped": {},
        "unembedded": 0,
        "truncated": [],
        "failed": [
            {
                "file": str(folder / "bad.pdf"),
                "error": "the file is damaged or not a PDF",
                "hint": "Open it in a viewer and save it again.",
            }
        ],
    }
    listed = answer("documents", "list")
    assert [file["language"] for file in listed["files"]] == ["markdown", "python"]
    assert listed["kinds"] == {"code": 1, "document": 1}
    assert answer("documents", "remove", str(folder)) == {"deleted_chunks": 2}


def test_each_path_is_reported(folder: Path) -> None:
    """A path that cannot be indexed is reported with a remedy, and the other paths are indexed."""
    (folder / "image.png").touch()
    names = ("docs/guide.md", "docs/image.png", "nowhere.md", "/proc/self", "nodocs")
    rows = palaver("index", *names, code=1).stdout.splitlines()

    assert rows[0] == "Indexed 1 file as 1 chunk in namespace project:docs."
    assert [row.partition(": ")[2].partition(": ")[0] for row in rows[1:]] == [
        "docs/image.png",
        "nowhere.md",
        "/proc/self",
        "nodocs",
    ]
    assert "Unsupported file type: .png. Use .md, .markdown, .rst, .org, " in rows[1]
    assert rows[2].startswith("Not indexed: nowhere.md: it does not exist. Check the path")
    assert rows[4].startswith("Not indexed: nodocs: it does not exist. Check the path")
    assert palaver("index", *names[2:], code=2).stdout.splitlines()[-3:] == rows[2:]
    assert "File not found: nodocs" in palaver("index", "nodocs", code=2).stderr


def test_flat_ignores_subfolders(folder: Path) -> None:
    """With `--flat` only files directly in the folder are indexed."""
    (folder / "bad.pdf").unlink()

    assert answer("index", ".", "--flat")["indexed"] == 0
    assert palaver("index", ".", "--flat").stdout.startswith("No documents found")


def test_missing_documents_are_reported(folder: Path) -> None:
    """A missing archive and a name without indexed documents are reported."""
    assert "No archive at" in palaver("documents", "list", code=1).stderr
    palaver("index", str(folder / "guide.md"))

    assert palaver("documents", "remove", "elsewhere", code=2).stderr == (
        "palaver: No indexed document matches\nRun `palaver documents list` to see indexed documents.\n"
    )
    reply = json.loads(palaver("documents", "remove", "elsewhere", "--json", code=2).stdout)
    assert reply["error"]["message"] == "No indexed document matches"
    palaver("index", "--once", str(folder), code=1)
    assert palaver("documents", "remove", "docs/bad.pdf").stdout.startswith("Removed 0 chunks")  # It was not readable.
    assert answer("documents", "list")["failed"] == []
    assert "Give files or folders" in palaver("documents", "remove", code=2).stderr


def test_documents_add_is_index(folder: Path) -> None:
    """`documents add` is another name of `index`. With `--once`, the folder is not watched."""
    palaver("documents", "add", "--once", str(folder), code=1)
    assert answer("documents", "list")["watched"] == []
    assert palaver("documents", "remove", "docs/guide.md").stdout.startswith(
        "Removed 1 chunk from the index. The files"
    )

    palaver("documents", "add", "--flat", str(folder), code=1)
    assert answer("documents", "list")["watched"] == [
        {"path": str(folder), "namespace": "project:docs", "recursive": False}
    ]


def test_files_of_a_repository_belong_to_its_project(folder: Path) -> None:
    """Without --namespace, files in a repository get the namespace of its project, which --project . selects."""
    repository = folder.parent
    (repository / ".git").mkdir()

    assert answer("index", str(folder), code=1)["namespace"] == f"project:{repository.name}"
    found = answer("search", "heat", "--kind", "code", "--project", ".")["results"]

    assert [Path(hit["path"]).name for hit in found] == ["kiln.py"]


def test_a_folder_without_a_repository_is_a_project(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--project . in an indexed folder finds its files, as it finds its memories, and `projects` lists them."""
    palaver("index", "docs", code=1)
    monkeypatch.chdir(folder)
    palaver("remember", "Heat the kiln for six hours", "--project", ".")

    for kind in ("code", "memory"):
        assert answer("search", "heat", "--kind", kind, "--project", ".")["results"]
    assert palaver("projects").stdout.splitlines()[2] == "docs: 0 sessions, 1 memory, 2 indexed files"


@pytest.mark.usefixtures("folder")
def test_documents_of_earlier_versions_move_to_the_project() -> None:
    """A folder that is watched in `default` is indexed once, in the namespace of its project, with the same IDs."""
    palaver("index", "docs", "--namespace", "default", code=1)
    before = [hit["id"] for hit in answer("search", "heat", "--kind", "code")["results"]]
    again = answer("index", "docs", code=1)

    assert (again["namespace"], again["indexed"], again["unchanged"]) == ("project:docs", 0, 2)
    listed = answer("documents", "list")
    assert [each["namespace"] for each in (*listed["files"], *listed["watched"])] == ["project:docs"] * 3
    assert [hit["id"] for hit in answer("search", "heat", "--kind", "code", "--project", "docs")["results"]] == before


@pytest.mark.usefixtures("folder")
def test_a_file_in_two_namespaces_is_shown_once() -> None:
    """Words, names and lines of a file that is indexed in two namespaces are one hit each, on all pages."""
    for namespace in ("one", "two"):
        palaver("index", "docs", "--namespace", namespace, code=1)

    everything = answer("search", "heat the kiln")
    assert sorted(Path(hit["path"]).name for hit in everything["results"]) == ["guide.md", "kiln.py"]
    page = answer("search", "heat the kiln", "-n", "1")
    rest = answer("search", "heat the kiln", "-n", "1", "--cursor", page["next"])
    assert [each["results"][0]["id"] for each in (page, rest)] == [hit["id"] for hit in everything["results"]]
    assert len(answer("search", "--symbol", "heat")["symbols"]) == 1
    assert len(answer("search", "return kiln", "--in", "code")["lines"]) == 1
    assert len(answer("search", "heat", "--kind", "code", "--project", "two")["results"]) == 1


@pytest.mark.usefixtures("folder")
def test_a_path_that_is_not_indexed_is_not_removed() -> None:
    """The error for a file of a watched folder that is not indexed does not suggest to remove the folder."""
    palaver("index", "docs", code=1)

    assert "No indexed document matches" in palaver("documents", "remove", "docs/nope.md", code=2).stderr
    assert "is in the watched folder" in palaver("documents", "remove", "docs/guide.md", code=2).stderr


@pytest.mark.usefixtures("folder")
def test_the_languages_of_the_index_are_named() -> None:
    """For a language without files, the languages of the index are named."""
    palaver("index", "docs", code=1)

    page = palaver("search", "heat", "--language", "go").stdout
    assert "`go`. The index has `markdown`, `python`." in page
    assert "Did you mean" not in page


@pytest.mark.parametrize("number", SIGNALS)
def test_an_interrupted_folder_is_watched(
    folder: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """After Ctrl-C or SIGTERM the folder is watched, so the watcher indexes the remaining files."""

    def interrupted(*_: object, **__: object) -> None:
        os.kill(os.getpid(), number)

    with monkeypatch.context() as patch:
        patch.setattr(DocumentLibrary, "index_directory", interrupted)
        palaver("index", str(folder), code=130)

    assert [each["path"] for each in answer("documents", "list")["watched"]] == [str(folder)]


def test_each_path_gets_the_namespace_of_its_project(folder: Path) -> None:
    """The namespace is computed for each path. The JSON value is null if there are several."""
    for name in ("one", "two"):
        (folder.parent / name / ".git").mkdir(parents=True)
        (folder.parent / name / f"{name}.md").write_text(f"# {name}\n")

    output = palaver("index", "one", "two/two.md").stdout
    assert output.startswith("Indexed 2 files as 2 chunks in namespaces project:one, project:two.\n")
    assert answer("index", "one", "two/two.md")["namespace"] is None
    files = answer("documents", "list")["files"]
    assert [(Path(each["source_file"]).name, each["namespace"]) for each in files] == [
        ("one.md", "project:one"),
        ("two.md", "project:two"),
    ]


@pytest.mark.parametrize("path", ["/", "//", "/.."])
def test_the_root_of_the_file_system_is_refused(path: str) -> None:
    """The root of the file system is refused, because it contains the files of all users and programs."""
    assert "The root of the file system cannot be indexed" in palaver("index", path, code=2).stderr
