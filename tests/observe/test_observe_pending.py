"""Is every exchange looked at once by the rules of today?"""

import pytest

from palaver.core.conversation import Exchange, Session
from palaver.observe import rules
from palaver.observe.observe_pending import observe_pending
from palaver.observe.rules.verification import VerifiedObservations

from ..search.history import History, Said, learned

ANSWER = "The cache was emptied on every start because its folder had the version in its name; now it has not."


@pytest.fixture
def told(tmp_path_factory: pytest.TempPathFactory) -> History:
    """Five exchanges in which a file was changed."""
    history = History(tmp_path_factory.mktemp("told"))
    history.say("one", *(Said(f"Fix the cache bug {n}", ANSWER, writes=(f"/code/app/{n}.py",)) for n in range(5)))
    return history


def silent(_done: int, _total: int) -> None:
    pass


def test_everything_is_observed_once(told: History) -> None:
    """Every exchange is observed, batch after batch, and none a second time."""
    heard: list[tuple[int, int]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("palaver.observe.observe_pending._BATCH", 2)
        assert observe_pending(told.store, lambda done, total: heard.append((done, total))) == 5

    assert heard == [(0, 5), (2, 5), (4, 5), (5, 5)]
    assert len(told.store.observations.of_exchanges(range(1, 6))) == 5
    before = told.store.changes.last()
    assert observe_pending(told.store, silent) == 0
    assert told.store.changes.last() == before


def test_what_grew_is_observed_again(told: History) -> None:
    """An exchange that says something else is observed anew; the others are left alone."""
    observe_pending(told.store, silent)
    said = [Said(f"Fix the cache bug {n}", ANSWER, writes=(f"/code/app/{n}.py",)) for n in range(4)]
    told.say("one", *said, Said("Fix the cache bug 4", ANSWER, writes=("/code/app/4.py", "/code/app/other.py")))

    assert observe_pending(told.store, silent) == 1
    [*_, last] = told.store.observations.of_exchange(5)
    assert "/code/app/other.py" in last.observation.files_modified


def test_new_rules_look_at_everything(told: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the rules change every exchange is observed anew, once."""
    observe_pending(told.store, silent)
    monkeypatch.setattr(rules, "VERSION", "rules-next")

    assert observe_pending(told.store, silent) == 5
    learned_now = told.store.observations.of_exchanges(range(1, 6))
    assert len(learned_now) == 5
    assert {one.observation.extractor for known in learned_now.values() for one in known} == {"rules-next"}
    assert observe_pending(told.store, silent) == 0


def test_other_observations_are_replaced(told: History) -> None:
    """What earlier rules learned and today's do not is gone afterwards."""
    [old] = told.learn(1, learned("what earlier rules thought"))
    observe_pending(told.store, silent)

    assert told.store.observations.load([old]) == {}
    assert told.store.observations.of_exchange(1) != []


def test_what_changes_meanwhile_is_observed_once_more(told: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another process adds to an exchange while it is looked at is not lost on the way."""
    observe = rules.observe
    said = [Said(f"Fix the cache bug {n}", ANSWER, writes=(f"/code/app/{n}.py",)) for n in range(4)]

    def slow(exchange: Exchange, session: Session) -> VerifiedObservations:
        if exchange.ordinal == 4 and "other.py" not in str(exchange):
            told.say("one", *said, Said("Fix the cache bug 4", ANSWER, writes=("/code/app/4.py", "/code/app/other.py")))
        return observe(exchange, session)

    monkeypatch.setattr(rules, "observe", slow)
    observe_pending(told.store, silent)

    [*_, last] = told.store.observations.of_exchange(5)
    assert "/code/app/other.py" in last.observation.files_modified
    assert told.store.exchanges.count_unobserved(rules.VERSION) == 0


def test_it_can_be_enough(told: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """Told that it is enough, it ends with the batch in hand, and goes on there the next time."""
    monkeypatch.setattr("palaver.observe.observe_pending._BATCH", 2)
    answers = iter([False, True])

    assert observe_pending(told.store, silent, lambda: next(answers)) == 2
    assert observe_pending(told.store, silent) == 3
