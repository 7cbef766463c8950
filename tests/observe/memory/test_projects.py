"""Project filters match memories by the name of the project and by its namespace."""

import pytest

from palaver.core.errors import UnknownProject
from palaver.core.home import Home
from palaver.core.memory import Memory
from palaver.core.query import Query
from palaver.search.archive_search import ArchiveSearch

from .memory_harness import Harness


def found(harness: Harness, *projects: str) -> list[str]:
    """Return the namespaces of the memories about the limit that a search in these projects finds."""
    with ArchiveSearch(Home(harness.folder)) as layers:
        hits = layers.find(Query.parse("rate limit of requests", mode="text", projects=projects)).hits
    return sorted(hit.project for hit in hits)


@pytest.fixture
def limits(harness: Harness) -> Harness:
    """Store a memory in each of several namespaces."""
    for namespace in ("project:my-api", "project:my-api-2", "project:v2-0", "global"):
        content = f"The rate limit of requests in {namespace} is its own"
        harness.core.remember(Memory(content, "fact", namespace=namespace))
    return harness


@pytest.mark.parametrize(
    ("project", "namespaces"),
    [
        ("my-api", ["project:my-api"]),
        ("My-API", ["project:my-api"]),
        ("project:my-api", ["project:my-api"]),
        ("v2.0", ["project:v2-0"]),
        ("global", ["global"]),
    ],
)
def test_a_name_finds_the_memories_of_its_namespace(limits: Harness, project: str, namespaces: list[str]) -> None:
    """A project name finds the memories of its namespace, but not those of projects with similar names."""
    assert found(limits, project) == namespaces


@pytest.mark.parametrize("project", ["my", "..."])
def test_part_of_a_name_is_an_unknown_project(limits: Harness, project: str) -> None:
    """Part of a project name, or a name without letters, is an unknown project."""
    with pytest.raises(UnknownProject):
        found(limits, project)


def test_several_projects_combine_with_or(limits: Harness) -> None:
    """Several projects, given by name or by namespace, combine with OR."""
    assert found(limits, "my-api", "global") == ["global", "project:my-api"]
