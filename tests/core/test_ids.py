"""Tests of core/ids.py."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.core import ids

kinds = st.sampled_from(sorted(ids.PREFIXES))


@given(kinds, st.integers(0, 10**18 - 1))
def test_an_id_leads_back_to_its_key(kind: str, key: int) -> None:
    """An id gives its key, for every kind and key."""
    assert ids.key(ids.show(kind, key)) == ids.key(ids.show(kind, key), kind) == key
    assert ids.plain(ids.show(kind, key)) == ids.show(kind, key)


def test_prefixes_tell_kinds_apart() -> None:
    """Every kind has its own prefix."""
    assert len(set(ids.PREFIXES.values())) == len(ids.PREFIXES)
    assert (ids.show("observation", 1042), ids.show("exchange", 7)) == ("obs-1042", "ex-7")


@pytest.mark.parametrize(
    "text", ["", "-", "obs-", "obs-x", "obs-1.5", "obs-１２", "obs-²", "obs- 1", "obs-+1", "obs-1\0", "obs-" + "9" * 19]
)
def test_what_cannot_be_an_id_has_no_key(text: str) -> None:
    """Other text has no key."""
    assert ids.key(text) is None


@pytest.mark.parametrize("typed", ["obs-24", "OBS-24", "Obs_24", "obs-024", " obs-24\n"])
def test_an_id_is_known_however_it_is_typed(typed: str) -> None:
    """Case, dash, leading zeros and blanks make no difference."""
    assert (ids.plain(typed), ids.key(typed), ids.key(typed, "memory")) == ("obs-24", 24, None)


@given(st.text())
def test_any_text_may_be_asked_for(text: str) -> None:
    """A key fits into the database, or there is none."""
    key = ids.key(text)
    assert key is None or 0 <= key < 2**63
