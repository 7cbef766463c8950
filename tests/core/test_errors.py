"""Tests of core/errors.py."""

import inspect
import re
from pathlib import Path

import pytest

from palaver.core import errors
from palaver.core.errors import InvalidInput, PalaverError, SourceUnreadable, StoreError, StoreMissing

from ..cases import for_each

LEAVES: list[PalaverError] = [
    errors.QueryTooLong(20_000, 10_000),
    errors.QueryTooShort(),
    errors.QueryNotText(),
    errors.ConceptCount(),
    errors.FilterNotAllowed(["types", "files"]),
    errors.InvalidDate("x"),
    errors.InvalidLimit(0),
    errors.UnknownType("x", ["a", "b"]),
    errors.UnknownProject("x", ["y"]),
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
    errors.NotADocument(Path("/x"), "it is a folder"),
    errors.PartlyRead(Path("/x"), "why", hint="Update Palaver."),
    errors.StoreMissing(Path("/x")),
    errors.StoreReadOnly(Path("/x")),
    errors.IndexDamaged(Path("/x"), "why"),
]


def defined() -> dict[str, type[PalaverError]]:
    """Return all error classes of the module."""
    return {name: kind for name, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, PalaverError)}


def test_error_tree_matches_the_classes() -> None:
    """The tree in the module docstring shows each error below its base class."""
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


def test_all_errors_derive_from_palaver_error() -> None:
    """All errors of the module derive from `PalaverError`."""
    classes = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if kind.__module__ == errors.__name__]

    assert set(classes) == set(defined().values())


@for_each("error", LEAVES, label=lambda error: type(error).__name__)
def test_errors_have_a_message_and_a_hint(error: PalaverError) -> None:
    """Every error has a message and a hint."""
    assert str(error).strip()
    if type(error) is not errors.TooManyIds:
        assert error.hint.strip()


def test_every_invalid_input_is_tested() -> None:
    """Every subclass of `InvalidInput` is covered by these tests."""
    tested = {type(error) for error in LEAVES}

    assert {
        kind for kind in defined().values() if issubclass(kind, InvalidInput) and kind is not InvalidInput
    } <= tested


def test_errors_have_attributes() -> None:
    """Error attributes contain the context, so that callers do not parse messages."""
    closed = SourceUnreadable(Path("/a"), "permission denied", hint="Open it.")

    assert (closed.path, closed.reason, closed.hint, str(closed)) == (
        Path("/a"),
        "permission denied",
        "Open it.",
        "/a: permission denied",
    )
    assert errors.UnknownIds(["a", "b"]).ids == ("a", "b")


def test_copies_without_a_database_have_their_own_message() -> None:
    """The error for raw copies without a database contains the remedy."""
    assert "palaver up" in StoreMissing(Path("/x")).hint

    missing = StoreMissing(Path("/x"), copies=True)

    assert "raw copies exist" in str(missing)
    assert "palaver rebuild --from-archive" in missing.hint


def test_error_is_described_in_sentences() -> None:
    """The text has one sentence for the problem and one for the remedy."""
    assert (
        SourceUnreadable(Path("/a"), "permission denied", hint="Open it.").full_message
        == "/a: permission denied. Open it."
    )
    assert StoreError("it is gone").full_message == "it is gone."


def test_given_hint_replaces_the_default() -> None:
    """A given hint replaces the default hint of that instance only."""
    assert StoreError("x", hint="once").hint == "once"
    assert StoreError("x").hint == ""


@pytest.mark.parametrize(
    ("gone", "expected"),
    [
        (["obs-1"], "obs-1 no longer exists. It"),
        (["ex-1", "obs-2"], "ex-1, obs-2 no longer exist. They"),
    ],
)
def test_deleted_ids_are_counted(gone: list[str], expected: str) -> None:
    """The hint distinguishes one deleted ID, several deleted IDs, and unknown IDs."""
    assert errors.UnknownIds(["obs-9", *gone], gone).hint.startswith(expected)
