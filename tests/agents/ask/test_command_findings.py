"""Questions that ask for commands, or for the fix of an error."""

import pytest

from palaver.agents.ask.command_findings import find_commands
from palaver.agents.ask.metered_archive import MeteredArchive
from palaver.core.cited_answer import FindingKind
from palaver.core.query import Filters
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
