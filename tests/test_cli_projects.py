"""Unknown projects are one error in every command, and `palaver projects` lists the known ones."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from palaver.archiver.store import Store
from palaver.cli import main
from palaver.core.conversation import Session
from palaver.core.errors import UnknownProject
from palaver.core.home import Home
from palaver.core.memory import Memory
from palaver.search.query.tokenizer import check_projects, unknown_project

from .cases import for_each

COMMANDS = (
    ("search", "sqlite"),
    ("search", "sqlite", "--by", "session"),
    ("search", "sqlite", "--in", "output"),
    ("search", "sqlite", "--fix"),
    ("fix", "error"),
    ("how", "test"),
    ("recall", "sqlite"),
    ("memories", "list"),
    ("context",),
    ("forget",),
)


@pytest.fixture
def archived(built: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("PALAVER_HOME", str(built.root))
    return built


@pytest.fixture
def store(home: Path) -> Store:
    """Return a store with four projects."""
    (home / "palaver").mkdir(exist_ok=True)
    made = Store.create(home / "palaver" / "palaver.db")
    with made.transaction():
        for number, name in enumerate(("tide-clock", "Seed-Library", "shop", "shop-api")):
            made.sessions.save(Session("codex", str(number), project=name, cwd=f"/code/{name}"))
    return made


def palaver(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == code, result.output
    return result


def answer(*arguments: str, code: int = 0) -> Any:
    return json.loads(palaver(*arguments, "--json", code=code).stdout)


@for_each("command", COMMANDS)
@pytest.mark.usefixtures("archived")
def test_an_unknown_project_is_the_same_error_in_every_command(command: tuple[str, ...]) -> None:
    """The error names the project, similar projects and the command that lists all."""
    error = answer(*command, "--project", "tide-clokc", code=2)["error"]

    assert error["kind"] == "unknown_project"
    assert error["message"] == "Unknown project: tide-clokc"
    assert error["hint"] == "Did you mean tide-clock or seed-library? `palaver projects` lists all projects."


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("project", ["tide-clock", "TIDE-CLOCK"])
@pytest.mark.usefixtures("archived")
def test_an_archived_project_is_known_to_every_command(command: tuple[str, ...], project: str) -> None:
    """A name is known in any case, except for `forget`, which deletes only what is named exactly."""
    exact = command == ("forget",) and project != "tide-clock"
    palaver(*command, "--project", project, code=2 if exact else 0)


@pytest.mark.usefixtures("archived")
def test_all_projects_are_listed() -> None:
    """Each project has a line with its sessions and the date of the latest one, the latest project first."""
    page = palaver("projects").stdout

    assert "tide-clock: 3 sessions, last on 2026-04-18\n" in page
    assert [each["name"] for each in answer("projects")["projects"]] == ["seed-library", "tide-clock"]


def test_a_new_project_is_announced() -> None:
    """`remember` creates projects. If a similar one exists, it is named with the command that undoes the typo."""
    palaver("remember", "Prefer tabs", "--project", "tide-clock")
    assert palaver("remember", "Ask first", "--project", "kitchen").stderr == ""
    typo = palaver("remember", "Prefer spaces", "--project", "tide-clokc").stderr

    assert typo == "tide-clokc is a new project. Did you mean tide-clock? To undo: palaver forget mem_3\n"
    assert "tide-clokc: 0 sessions, 1 memory\n" in palaver("projects").stdout


@pytest.mark.parametrize("command", [("recall", "tabs commits"), ("memories", "list"), ("context",)])
def test_a_name_includes_the_memories_of_all_folders_with_this_name(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder includes only its own memories."""
    for owner, text in (("ann", "Prefer tabs"), ("bob", "Never squash commits")):
        (tmp_path / owner / "shop" / ".git").mkdir(parents=True)
        monkeypatch.chdir(tmp_path / owner / "shop")
        palaver("remember", text, "--project", ".")
    named = palaver(*command, "--project", "shop").stdout
    folder = palaver(*command, "--project", str(tmp_path / "bob" / "shop")).stdout

    assert ["Prefer tabs" in named, "Never squash commits" in named] == [True, True]
    assert ["Prefer tabs" in folder, "Never squash commits" in folder] == [False, True]


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("seed-libary", ("Seed-Library",)),
        ("tide", ("tide-clock",)),
        ("sho", ("shop", "shop-api")),
        ("/home/me/tide-clokc/", ("tide-clock",)),
        ("project:shopp", ("shop",)),
        ("zzz", ()),
        ("", ()),
    ],
)
def test_similar_names_are_suggested(store: Store, name: str, near: tuple[str, ...]) -> None:
    """The most similar names come first. A part of a name suggests the whole name."""
    with store:
        assert unknown_project(store, name).near[: len(near) or None] == near
        with pytest.raises(UnknownProject):
            check_projects(store, [name])


def test_names_folders_and_namespaces_are_known(store: Store) -> None:
    """A project is known by its name, its folder or a folder above, and by the namespace of a memory."""
    with store:
        with store.transaction():
            store.memories.insert(Memory("Prefer tabs", "preference", namespace="project:kitchen"), at=1)

        check_projects(store, ["tide-clock", "seed-library", "/code/shop", "/code", "kitchen", "project:kitchen"])
