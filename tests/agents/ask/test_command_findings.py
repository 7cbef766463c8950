"""Questions that ask for commands, or for the fix of an error."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from palaver.agents.ask import evidence_search
from palaver.agents.ask.evidence_search import MeteredArchive, find_commands
from palaver.archiver.store import Store
from palaver.core.query import Filters
from palaver.core.reports import ProjectCommand
from palaver.core.results import FindingKind
from palaver.observe.commands.project_commands import project_commands
from palaver.search.archive_search import ArchiveSearch
from palaver.templates.render import Renderer

ERROR = "ValueError: max() arg is an empty sequence"


@pytest.mark.parametrize(
    ("question", "project", "kind"),
    [
        ("how do I run the tests", "", FindingKind.COMMAND),
        ("Which command do we use for the tests in tide-clock?", "", FindingKind.COMMAND),
        ("how to test the project", "tide-clock", FindingKind.COMMAND),
        ("how do we test the catalogue cursor", "", None),
        ("how do we deploy to mars", "", None),
        ("tests of the clock", "", None),
        (ERROR, "", FindingKind.FIX),
        (f"how did we fix the error `{ERROR}`", "", FindingKind.FIX),
        ("seen the error `arg is an empty sequence`", "", FindingKind.FIX),
        ("seen `arg is an empty sequence` in the clock", "", None),
        ("ValueError: the moon is full tonight", "", None),
        ("how did we fix it", "", None),
    ],
)
def test_words_decide_if_a_command_or_a_fix_is_asked_for(
    archive: ArchiveSearch, renderer: Renderer, question: str, project: str, kind: FindingKind | None
) -> None:
    """All words of the question must name a task, a project or the command, or occur in the output of a failure."""
    projects = (project,) if project else ()
    commands = find_commands(MeteredArchive(archive, renderer), question, Filters(projects=projects), "")

    found = commands.findings({detail.path: detail.short_session_id for detail in commands.details})
    assert {each.kind for each in found} == ({kind} if kind else set())
    assert commands.is_whole is (kind is FindingKind.COMMAND)


def test_current_project_comes_first(archive: ArchiveSearch, renderer: Renderer) -> None:
    """Only commands of the current project are shown, if it has any. A range of dates allows none."""
    metered = MeteredArchive(archive, renderer)
    question = "how do I run the tests"

    here = find_commands(metered, question, Filters(), "tide-clock")
    assert {detail.project for detail in here.details} == {"tide-clock"}
    assert find_commands(metered, question, Filters(), "elsewhere").found
    assert find_commands(metered, question, Filters(after=1), "").found == ()


def test_projects_keep_the_order_of_their_first_command(
    archive: ArchiveSearch, renderer: Renderer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several projects, each has its first command, in the order of these."""
    metered = MeteredArchive(archive, renderer)
    [known, *_] = find_commands(metered, "how do I run the tests", Filters(), "").found
    assert isinstance(known, ProjectCommand)
    listed = [replace(known, project=each[0], command=each) for each in ("a1", "b1", "a2")]

    def listing(*_: object) -> list[ProjectCommand]:
        return listed

    monkeypatch.setattr(evidence_search, "project_commands", listing)

    found = find_commands(metered, "how do I run the tests", Filters(), "").found
    assert [each.command for each in found] == ["a1", "b1"]


@pytest.mark.parametrize(
    ("projects", "here", "scans"),
    [
        (("elsewhere",), "", [("elsewhere",)]),
        (("elsewhere",), "tide-clock", [("elsewhere",)]),
        ((), "elsewhere", [("elsewhere",), ()]),
        ((), "tide-clock", [("tide-clock",)]),
        ((), "", [()]),
    ],
)
def test_only_the_current_project_is_searched_before_all_projects(
    archive: ArchiveSearch,
    renderer: Renderer,
    monkeypatch: pytest.MonkeyPatch,
    projects: tuple[str, ...],
    here: str,
    scans: list[tuple[str, ...]],
) -> None:
    """The commands are read a second time only if the current project has none, and no project was given."""
    read = list[tuple[str, ...]]()

    def reading(store: Store, task: str, wanted: Sequence[str] = ()) -> list[ProjectCommand]:
        read.append(tuple(wanted))
        return project_commands(store, task, wanted)

    monkeypatch.setattr(evidence_search, "project_commands", reading)
    find_commands(MeteredArchive(archive, renderer), "how do I run the tests", Filters(projects=projects), here)

    assert read == scans
