"""Tests of sets of keys as arrays."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from palaver.search.index.matches import among

KEYS = st.lists(st.integers(0, 9))


@given(KEYS, st.lists(st.integers(0, 9), unique=True))
def test_wanted_keys_are_flagged(keys: list[int], wanted: list[int]) -> None:
    """A key is flagged exactly if it is one of the wanted keys, even if either array is empty."""
    flags = among(np.array(keys, dtype=np.int64), np.array(sorted(wanted), dtype=np.int64))

    assert flags.tolist() == [key in wanted for key in keys]
