"""Pages of hits follow each other, and invalid cursors are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from palaver.core.errors import InvalidInput
from palaver.core.query import Grouping, Mode, Query
from palaver.search.present.hits import Hits
from palaver.search.rank.engine import DEPTH

from ..history import History, Said


def test_pages_follow_each_other(archive: History) -> None:
    """Pages with one hit each form the whole list, even if a generation is published between them.

    A cursor of another search is refused.
    """
    whole = [hit.id for hit in archive.search("kettle").hits]
    asked, seen = Query(("kettle",), limit=1), list[str]()
    while True:
        page = Hits(archive.store, archive.engine()).search(asked)
        seen += [hit.id for hit in page.hits]
        archive.publish()
        if not page.cursor:
            break
        asked = replace(asked, cursor=page.cursor)

    assert seen == whole
    for other in (replace(asked, concepts=("pan",)), replace(asked, also=("pan",))):
        with pytest.raises(InvalidInput, match="it is not from this search"):
            Hits(archive.store, archive.engine()).search(other)


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("by", Grouping)
def test_the_last_page_reports_that_more_events_match(history: History, mode: Mode, by: Grouping) -> None:
    """Only the last page reports that more events match than were compared."""
    for name in range(5):
        history.say(f"s{name}", *(Said(f"kettle {n}") for n in range(DEPTH // 4)))
    history.embed()

    def flags(words: str) -> list[bool]:
        asked, archive = Query((words,), mode, limit=50, by=by), list[bool]()
        while True:
            page = Hits(history.store, history.engine()).search(asked)
            archive.append(page.ranking_limit)
            if not page.cursor:
                return archive
            asked = replace(asked, cursor=page.cursor)

    *before, last = flags("kettle")
    assert (any(before), last) == (False, True)
    with history.store.transaction():
        history.store.exchanges.delete(history.store.items.all_keys()[DEPTH // 2 :])
    assert not any(flags("kettle"))


@given(st.text(min_size=1, max_size=40))
def test_invalid_cursors_are_refused(cursor: str) -> None:
    """Every invalid cursor raises the error for cursors."""
    from palaver.search.query.query_analysis import event_of

    with pytest.raises(InvalidInput, match="Invalid cursor"):
        event_of(Query(("kettle",), cursor=cursor))


def test_a_page_after_a_deleted_hit_is_refused(archive: History) -> None:
    """If the last hit of a page was deleted, the next page is refused."""
    page = archive.search("kettle", limit=1)
    with archive.store.transaction():
        archive.store.exchanges.delete([int(page.hits[0].id.partition("-")[2])])

    with pytest.raises(InvalidInput, match="no longer matches"):
        Hits(archive.store, archive.engine()).search(replace(page.query, cursor=page.cursor))
