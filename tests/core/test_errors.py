"""Errors: one tree, drawn where it is defined, and each leaf carries what it is about."""

import inspect
import re
from pathlib import Path

import pytest

from palaver.core import errors
from palaver.core.errors import InvalidInput, PalaverError, SourceUnreadable, StoreError, StoreMissing

LEAVES: list[PalaverError] = [
    errors.QueryTooShort(),
    errors.QueryNotText(),
    errors.ConceptCount(6),
    errors.FilterNotAllowed(["types", "files"]),
    errors.InvalidDate("x"),
    errors.InvalidLimit(0),
    errors.UnknownType("x", ["a", "b"]),
    errors.UnknownIds(["obs-1"]),
    errors.TooManyIds(21, 20),
    errors.PathOutsideArchive("x"),
    errors.InvalidLineRange("x"),
    errors.InvalidMemoryType("x", hint="Use another."),
    errors.InvalidNamespace("x"),
    errors.MemoryNotFound("mem_1"),
    errors.MemoryProtected("mem_1"),
    errors.DocumentNotFound(Path("/x")),
    errors.NothingToUndo("mem_1"),
    errors.ChangedMeanwhile(),
    errors.UnsupportedDocument(Path("/x.exe"), [".md"]),
    errors.DocumentOutsideRoots(Path("/x")),
    errors.DocumentUnreadable(Path("/x"), "why"),
    errors.StoreMissing(Path("/x")),
    errors.StoreReadOnly(Path("/x")),
    errors.IndexDamaged(Path("/x"), "why"),
]


def defined() -> dict[str, type[PalaverError]]:
    """Every error of the module."""
    return {name: kind for name, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, PalaverError)}


def test_the_tree_is_drawn_as_it_is() -> None:
    """The module's first page shows every error under its parent."""
    drawn: dict[str, str] = {}
    parents = ["PalaverError"]
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"    ([│ ]*)[├└]── (\w+)", line)
        if found:
            depth = len(found[1]) // 4
            drawn[found[2]] = parents[depth]
            parents[depth + 1 :] = [found[2]]

    assert drawn == {
        name: kind.__base__.__name__
        for name, kind in defined().items()
        if kind is not PalaverError and kind.__base__ is not None
    }


def test_all_errors_of_the_module_are_ours() -> None:
    """Nothing is raised on purpose that is not in the tree."""
    classes = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if kind.__module__ == errors.__name__]

    assert set(classes) == set(defined().values())


@pytest.mark.parametrize("error", LEAVES, ids=lambda error: type(error).__name__)
def test_each_says_what_happened_and_what_to_do(error: PalaverError) -> None:
    """A message and a hint, whatever the surface."""
    assert str(error).strip()
    if type(error) is not errors.TooManyIds:
        assert error.hint.strip()


def test_every_mistake_of_a_caller_is_listed_here() -> None:
    """A new kind of invalid input is added to these tests."""
    tested = {type(error) for error in LEAVES}

    assert {
        kind for kind in defined().values() if issubclass(kind, InvalidInput) and kind is not InvalidInput
    } <= tested


def test_context_rides_on_the_error() -> None:
    """Whoever words it needs no parsing of messages."""
    closed = SourceUnreadable(Path("/a"), "permission denied", hint="Open it.")

    assert (closed.path, closed.reason, closed.hint, str(closed)) == (
        Path("/a"),
        "permission denied",
        "Open it.",
        "/a: permission denied",
    )
    assert (errors.UnknownIds(["a", "b"]).ids, errors.FilterNotAllowed(["types"]).names) == (("a", "b"), ("types",))


def test_copies_without_a_database_are_no_missing_archive() -> None:
    """Where copies lie but no database, nothing is denied: the way back is named."""
    assert "palaver up" in StoreMissing(Path("/x")).hint

    missing = StoreMissing(Path("/x"), copies=True)

    assert "raw copies exist" in str(missing)
    assert "palaver rebuild --from-archive" in missing.hint


def test_it_is_told_in_sentences() -> None:
    """What happened, then what to do, each with its full stop."""
    assert SourceUnreadable(Path("/a"), "permission denied", hint="Open it.").told == "/a: permission denied. Open it."
    assert StoreError("it is gone").told == "it is gone."


def test_a_hint_given_replaces_the_usual_one() -> None:
    """And does not change it for the others."""
    assert StoreError("x", hint="once").hint == "once"
    assert StoreError("x").hint == ""


@pytest.mark.parametrize(
    ("gone", "told"),
    [
        (["obs-1"], "obs-1 no longer exists; it"),
        (["ex-1", "obs-2"], "ex-1, obs-2 no longer exist; they"),
    ],
)
def test_what_is_gone_is_counted(gone: list[str], told: str) -> None:
    """One id that can have been given is no more, several are; or it was never given."""
    assert errors.UnknownIds(["obs-9", *gone], gone).hint.startswith(told)
