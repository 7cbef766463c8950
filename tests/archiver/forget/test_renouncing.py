"""Is what was renounced known wherever it stands?"""

# pyright: reportPrivateUsage=false

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from palaver.archiver.forget.renouncing import Renouncing
from palaver.archiver.store import RENOUNCED, State

from ..history import FORK, ORIGINAL, History, talk


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with History(tmp_path) as made:
        yield made


def renounced(history: History) -> dict[str, bool]:
    """What was asked, and whether nothing is learned from it."""
    with history.store.transaction():
        told = [(each.exchange.prompt, Renouncing(history.store).heed(each, [], "x")) for each in history.stored()]
    return {prompt: by == RENOUNCED for prompt, (_, by) in told}


def test_what_earlier_versions_knew_by_its_place_is_known_by_its_marks(history: History) -> None:
    """As soon as it is met: in the session that it comes to count for as well, and until it is undone."""
    fork = [{**line, "forkedFrom": {"sessionId": ORIGINAL, "messageUuid": "m"}} for line in talk("one", "two")]
    history.write([*fork, *talk("three", session=FORK)], FORK, at=1)
    history.ingest()
    with history.store.transaction():
        number = history.store.tombstones.begin(1, State.KEPT, ())
        history.store._database.run(
            """INSERT INTO renounced (forgetting, source, start_line, size, origins)
               SELECT ?, source, start_line, length(turns), '[]' FROM exchange WHERE ordinal IN (1, 2)""",
            (number,),
        )
    history.write(talk("zero", "one", "two"), at=2)
    history.ingest()

    assert renounced(history) == {"zero?": False, "one?": False, "two?": True, "three?": True}
    assert history.store._database.number("SELECT count(*) FROM renounced") == 0
    with history.store.transaction():
        Renouncing(history.store).take_back(number)
    assert set(renounced(history).values()) == {False}


def test_what_earlier_versions_knew_is_known_before_newer_rules_change_its_words(history: History) -> None:
    """A copy that is read again says a secret in other words, and so with another size, than when it was renounced."""
    history.write(talk("one", "two"))
    history.ingest()
    store, source = history.store, history.source().id or 0
    one, two = history.stored()
    older = [
        replace(
            each.exchange,
            turns=tuple(turn._replace(text=f"{turn.text} by older rules") for turn in each.exchange.turns),
        )
        for each in (one, two)
    ]
    with store.transaction():
        store.exchanges.replace(one.session, source, 0, older)
        store._database.run(
            """INSERT INTO renounced (forgetting, source, start_line, size, origins)
               SELECT ?, source, start_line, length(turns), '[]' FROM exchange WHERE ordinal = 0""",
            (store.tombstones.begin(1, State.KEPT, ()),),
        )
        store._database.run("UPDATE source SET rules = '3'")

    assert history.ingest().reread == 1
    assert [each.exchange for each in history.stored()] == [one.exchange, two.exchange]
    assert renounced(history) == {"one?": True, "two?": False}


def test_what_has_no_ids_is_known_by_its_lines(history: History) -> None:
    """A format need not tell ids: what stands on the same lines of the same copy was renounced."""
    history.write(talk("one", "two"))
    history.ingest()
    source, session = history.source().id, history.stored()[0].session
    bare = [
        replace(each.exchange, turns=tuple(turn._replace(record="") for turn in each.exchange.turns))
        for each in history.stored()
    ]
    with history.store.transaction():
        history.store.exchanges.replace(session, source or 0, 0, bare)
        one, _ = history.stored()
        Renouncing(history.store).renounce([one.key], [], history.store.tombstones.begin(1, State.KEPT, ()))

    assert renounced(history) == {"one?": True, "two?": False}
