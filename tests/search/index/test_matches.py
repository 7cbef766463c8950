"""Are columns of numbers compared as sets of them would be?"""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from palaver.search.index.matches import among

KEYS = st.lists(st.integers(0, 9))


@given(KEYS, st.lists(st.integers(0, 9), unique=True))
def test_those_among_the_wanted_are_told(keys: list[int], wanted: list[int]) -> None:
    """Each number is told from the others by whether it is a wanted one, be there none of either."""
    told = among(np.array(keys, dtype=np.int64), np.array(sorted(wanted), dtype=np.int64))

    assert told.tolist() == [key in wanted for key in keys]
