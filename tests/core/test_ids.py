"""Tests of core/ids.py."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.core import ids

from ..cases import for_each

kinds = st.sampled_from(sorted(ids.PREFIXES))


@given(kinds, st.integers(0, 10**18 - 1))
def test_id_contains_its_key(kind: str, key: int) -> None:
    """The public ID of any kind and key can be converted back to the key."""
    assert ids.key(ids.show(kind, key)) == ids.key(ids.show(kind, key), kind) == key
    assert ids.canonical(ids.show(kind, key)) == ids.show(kind, key)


def test_kinds_have_different_prefixes() -> None:
    """Every kind has a unique prefix."""
    assert len(set(ids.PREFIXES.values())) == len(ids.PREFIXES)
    assert (ids.show("observation", 1042), ids.show("exchange", 7)) == ("obs-1042", "ex-7")


@for_each(
    "text", ["", "-", "obs-", "obs-x", "obs-1.5", "obs-１２", "obs-²", "obs- 1", "obs-+1", "obs-1\0", "obs-" + "9" * 19]
)
def test_other_text_has_no_key(text: str) -> None:
    """Text that is not a public ID has no key."""
    assert ids.key(text) is None


@pytest.mark.parametrize("typed", ["obs-24", "OBS-24", "Obs_24", "obs-024", " obs-24\n"])
def test_spelling_variants_of_an_id_are_accepted(typed: str) -> None:
    """Case, dash, leading zeros and spaces make no difference."""
    assert (ids.canonical(typed), ids.key(typed), ids.key(typed, "memory")) == ("obs-24", 24, None)


@pytest.mark.parametrize(
    ("text", "expected"), [("obs-x", True), ("EX_1", True), ("mem_", True), ("obs", False), ("ex1-2", False)]
)
def test_a_prefix_is_recognised_before_an_invalid_key(text: str, expected: bool) -> None:
    """A text with the prefix of an ID has the prefix, whatever follows it."""
    assert ids.has_prefix(text) is expected


@given(st.text())
def test_keys_fit_into_the_database(text: str) -> None:
    """For any text, the key is None or a number that the database can store."""
    key = ids.key(text)
    assert key is None or 0 <= key < 2**63
