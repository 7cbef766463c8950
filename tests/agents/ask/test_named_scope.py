"""Projects that questions name."""

import pytest

from palaver.agents.ask.named_project import named_project

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
    assert named_project(question, PROJECTS) == (name, rest)


@pytest.mark.parametrize(
    "question",
    [
        "how do we test the cli",
        "why does cipher-box-web fail",
        "what is in cipher-box/index.ts",
        "what is in cipher-box.ts",
        "do cipher-box and entire-sem share a database",
        "which project uses sqlite",
    ],
)
def test_other_questions_name_no_project(question: str) -> None:
    """Ordinary words, parts of names, paths and several projects are no named project."""
    assert named_project(question, PROJECTS) is None
