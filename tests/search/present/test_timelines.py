"""Timelines show the exchanges before and after a hit."""

import pytest

from palaver.core.errors import InvalidInput, UnknownIds
from palaver.search.present.hits import Hits

from ..history import History, learned


def test_a_timeline_surrounds_a_hit(archive: History) -> None:
    """A timeline has the exchanges before and after a hit in order, and marks the hit."""
    found = Hits(archive.store, archive.engine()).around("ex-2", 2, 3)

    assert (found.anchor, [hit.id for hit in found.hits]) == ("ex-2", ["ex-1", "ex-2"])
    with pytest.raises(InvalidInput):
        Hits(archive.store, archive.engine()).around("ex-99", 99, 3)


def test_a_timeline_needs_the_id_of_an_exchange_or_observation(archive: History) -> None:
    """An ID of another kind or a bare number is reported as unknown."""
    hits = Hits(archive.store, archive.engine())

    for wrong in ("1", "obs-1", "mem_1", "chunk_1"):
        with pytest.raises(UnknownIds):
            hits.around(wrong, 1, 3)


def test_a_timeline_marks_the_requested_id(archive: History) -> None:
    """The arrow marks the requested observation or exchange, among all observations of its exchange."""
    one, other = archive.learn(1, learned("The kettle leaks"), learned("The kettle is mended"))
    hits = Hits(archive.store, archive.engine())

    for key, public in ((one, f"obs-{one}"), (other, f"obs-{other}"), (1, "ex-1")):
        found = hits.around(public, key, 3)
        assert found.anchor == public
        exchange = ["ex-1"] if key == 1 else []
        assert [hit.id for hit in found.hits] == [*exchange, f"obs-{one}", f"obs-{other}", "ex-2"]
