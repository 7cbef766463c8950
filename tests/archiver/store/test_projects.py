"""Each project has its own namespace."""

# pyright: reportPrivateUsage=false

import unicodedata
from pathlib import Path

import pytest

from palaver.archiver.store import Store
from palaver.core.conversation import Origin, Session
from palaver.core.memory import Memory


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    """Return a project with the name `repo`."""
    return repository(tmp_path / "ours" / "repo")


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """Return another project with the name `repo`."""
    return repository(tmp_path / "theirs" / "repo")


def repository(folder: Path, remote: str = "") -> Path:
    (folder / ".git").mkdir(parents=True)
    if remote:
        (folder / ".git" / "config").write_text(f'[remote "origin"]\n\turl = {remote}\n')
    return folder


def test_a_second_project_with_the_same_name_gets_a_number(store: Store, ours: Path, theirs: Path) -> None:
    """Each project keeps its namespace, and a query for the namespace does not reserve it."""
    assert store.projects.namespace(theirs) == "project:repo"
    assert store.projects.claim(ours / ".git") == "project:repo"
    assert [store.projects.claim(theirs), store.projects.claim(theirs)] == ["project:repo-2", "project:repo-2"]

    assert [store.projects.namespace(ours), store.projects.namespace(theirs)] == ["project:repo", "project:repo-2"]
    assert store.projects.namesakes("repo") == {"project:repo", "project:repo-2"}


def test_clones_of_a_remote_share_a_namespace(store: Store, tmp_path: Path) -> None:
    """Clones of a remote share a namespace, whatever their folders. Adding a remote later changes no namespace."""
    first = repository(tmp_path / "api")
    assert store.projects.claim(first) == "project:api"
    (first / ".git" / "config").write_text('[remote "origin"]\n\turl = git@x.org:me/api.git\n')
    assert store.projects.claim(first) == "project:api"

    assert store.projects.claim(repository(tmp_path / "copy", "https://x.org/me/api")) == "project:api"
    assert store.projects.claim(repository(tmp_path / "other" / "api", "https://x.org/you/api")) == "project:api-2"


def test_another_repository_at_the_same_path_is_another_project(store: Store, tmp_path: Path) -> None:
    """Different repositories at the same path, for example in containers, are different projects."""
    place = repository(tmp_path / "workspace", "https://x.org/a")
    assert store.projects.claim(place) == "project:workspace"
    (place / ".git" / "config").write_text('[remote "origin"]\n\turl = https://x.org/b\n')

    assert store.projects.claim(place) == "project:workspace-2"


def test_the_plain_name_belongs_to_the_first_project(store: Store, ours: Path, theirs: Path) -> None:
    """The project with the earliest session keeps the name without a number, whichever project is opened first."""
    with store.transaction():
        store.sessions.save(Session("codex", "2", cwd=str(theirs), started=2))
        store.sessions.save(Session("codex", "1", cwd=str(ours / "src"), started=1))
        store.memories.insert(Memory("x", namespace="project:repo"), 3)

    assert store.projects.claim(theirs) == "project:repo-2"
    assert store.projects.claim(ours) == "project:repo"


def test_a_memory_of_the_user_counts_as_work(store: Store, ours: Path, theirs: Path) -> None:
    """A project with a memory of the user keeps the name without a number, even without archived sessions."""
    with store.transaction():
        stored = Memory("x", namespace="project:repo", project=str(ours), origin=Origin.HUMAN)
        store.memories.insert(stored, 3)

    assert [store.projects.namespace(theirs), store.projects.namespace(ours)] == ["project:repo-2", "project:repo"]


def test_a_folder_that_is_gone_is_known_by_its_name(store: Store, ours: Path, theirs: Path) -> None:
    """Folders that no longer exist belong to the project with the plain namespace, and take it from no other project.

    A namespace that was reserved while the folder existed stays its own.
    """
    gone = theirs.parent / "gone" / "repo"
    worktrees = [Path("/home/demo/.codex/worktrees/7c1e/repo"), Path("/code/repo.worktrees/fix-1")]
    with store.transaction():
        for number, place in enumerate((gone, *worktrees, ours)):
            store.sessions.save(Session("codex", str(number), cwd=str(place), started=number))
    for place in (gone, *worktrees):
        assert store.projects.of_archived(place) == "project:repo"
    assert [store.projects.claim(ours), store.projects.claim(theirs)] == ["project:repo", "project:repo-2"]
    theirs.rename(theirs.with_name("moved"))

    assert [store.projects.of_archived(each) for each in (theirs, gone)] == ["project:repo-2", "project:repo"]


def test_both_unicode_forms_of_a_folder_are_one_project(store: Store) -> None:
    """A name in normalization form D has the namespace of the same name in form C."""
    forms = [Path(unicodedata.normalize(form, "/Users/demo/Größe")) for form in ("NFC", "NFD")]

    assert {store.projects.claim(each) for each in forms} == {"project:Größe"}


def test_a_folder_without_a_name_has_no_project(store: Store) -> None:
    """Memories from a folder without a name are global."""
    assert store.projects.claim(Path("/")) == "global"


def test_sessions_are_assigned_to_one_project(store: Store, ours: Path, theirs: Path, tmp_path: Path) -> None:
    """A session is contained in exactly the project of its folder, claimed or not, or of its project name."""
    places = [ours / "src", theirs, repository(tmp_path / "copy", "https://x.org/me/api"), tmp_path / "gone" / "repo"]
    sessions = [Session("test", "1", project="repo"), *(Session("test", "1", cwd=str(place)) for place in places)]
    namespaces = ["project:repo", "project:repo-2", "project:repo-3", "project:api", "project:copy", "global"]
    for claimed in ([], [theirs], [ours, repository(tmp_path / "api", "https://x.org/me/api")]):
        for place in claimed:
            store.projects.claim(place)
        for session in sessions:
            found = [each for each in namespaces if store.projects.contains(each, session)]
            assert found == [store.projects.of_session(session)]
