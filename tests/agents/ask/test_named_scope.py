"""Projects, branches and files that questions name."""

import pytest

from palaver.agents.ask.findings import named_scope
from palaver.core.query import Filters

PROJECTS = ("cipher-box", "cli", "test", "entire-sem", "site2", "")


@pytest.mark.parametrize(
    ("question", "name", "rest"),
    [
        ("In the Cipher-Box project, what database did we choose?", "cipher-box", "what database did we choose?"),
        ("what database does cipher-box use", "cipher-box", "what database does use"),
        ("what was cipher-box's database?", "cipher-box", "what was database?"),
        ("why sqlite in project `cli`", "cli", "why sqlite"),
        ("why sqlite in the cli repo", "cli", "why sqlite"),
        ("why is the port of site2 open", "site2", "why is the port open"),
        ("cipher-box", "cipher-box", ""),
    ],
)
def test_a_named_project_is_recognised(question: str, name: str, rest: str) -> None:
    """The phrase with the name is removed from the question, so that its words need not occur in the answer."""
    assert named_scope(question, Filters(), PROJECTS, ()) == (Filters(projects=(name,)), rest)


@pytest.mark.parametrize(
    "question",
    [
        "how do we test the cli",
        "why does cipher-box-web fail",
        "do cipher-box and entire-sem share a database",
        "which project uses sqlite",
    ],
)
def test_other_questions_name_no_project(question: str) -> None:
    """Ordinary words, parts of names, paths and several projects are no named project."""
    assert named_scope(question, Filters(), PROJECTS, ()) == (Filters(), question)


def test_branches_and_files_are_filters() -> None:
    """A named branch or file restricts the search. The name of a file stays in the question."""
    cases = {
        "what did we do on the find-by-name branch": (Filters(branches=("find-by-name",)), "what did we do"),
        "why was find-by-name merged": (Filters(branches=("find-by-name",)), "why was merged"),
        "is main the right word": (Filters(), "is main the right word"),
        "what broke on branch main": (Filters(branches=("main",)), "what broke"),
        "why change src/names.ts": (Filters(files=("src/names.ts",)), "why change src/names.ts"),
        "what is in cipher-box.ts": (Filters(files=("cipher-box.ts",)), "what is in cipher-box.ts"),
        "why call json.dumps(value) in 3.11": (Filters(), "why call json.dumps(value) in 3.11"),
    }

    named = {question: named_scope(question, Filters(), PROJECTS, ("find-by-name", "main")) for question in cases}

    assert named == cases


def test_filters_of_the_user_are_kept() -> None:
    """A project or a file in the question does not replace the one that the user set."""
    filters = Filters(projects=("site2",), files=("a.py",))

    assert named_scope("what does cipher-box do in b.py", filters, PROJECTS, ()).filters == filters
