"""Tests that every exchange is processed once by the current rules."""

import pytest

from palaver.core.conversation import Exchange, Session
from palaver.observe import rules
from palaver.observe.observe_pending import observe_pending
from palaver.observe.rules.verification import VerifiedObservations

from ..search.history import History, Said, learned

ANSWER = "The cache was emptied on every start because its folder had the version in its name; now it has not."


@pytest.fixture
def told(tmp_path_factory: pytest.TempPathFactory) -> History:
    """Archive of five exchanges in which a file was changed."""
    history = History(tmp_path_factory.mktemp("told"))
    history.say("one", *(Said(f"Fix the cache bug {n}", ANSWER, writes=(f"/code/app/{n}.py",)) for n in range(5)))
    return history


def silent(_done: int, _total: int) -> None:
    pass


def test_everything_is_observed_once(told: History) -> None:
    """Every exchange is processed exactly once, batch by batch."""
    heard: list[tuple[int, int]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("palaver.observe.observe_pending._BATCH", 2)
        assert observe_pending(told.store, lambda done, total: heard.append((done, total))) == 5

    assert heard == [(0, 5), (2, 5), (4, 5), (5, 5)]
    assert len(told.store.observations.of_exchanges(range(1, 6))) == 5
    before = told.store.changes.last()
    assert observe_pending(told.store, silent) == 0
    assert told.store.changes.last() == before


def test_a_changed_exchange_is_observed_again(told: History) -> None:
    """Only the exchange with new content is processed again."""
    observe_pending(told.store, silent)
    said = [Said(f"Fix the cache bug {n}", ANSWER, writes=(f"/code/app/{n}.py",)) for n in range(4)]
    told.say("one", *said, Said("Fix the cache bug 4", ANSWER, writes=("/code/app/4.py", "/code/app/other.py")))

    assert observe_pending(told.store, silent) == 1
    [*_, last] = told.store.observations.of_exchange(5)
    assert "/code/app/other.py" in last.observation.files_modified


def test_new_rules_observe_everything_again(told: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a change of the rules, every exchange is processed again, once."""
    observe_pending(told.store, silent)
    monkeypatch.setattr(rules, "VERSION", "rules-next")

    assert observe_pending(told.store, silent) == 5
    learned_now = told.store.observations.of_exchanges(range(1, 6))
    assert len(learned_now) == 5
    assert {one.observation.extractor for known in learned_now.values() for one in known} == {"rules-next"}
    assert observe_pending(told.store, silent) == 0


def test_observations_of_older_rules_are_replaced(told: History) -> None:
    """Observations that the current rules do not extract are removed."""
    [old] = told.learn(1, learned("what earlier rules thought"))
    observe_pending(told.store, silent)

    assert told.store.observations.load([old]) == {}
    assert told.store.observations.of_exchange(1) != []


def test_an_exchange_that_changes_meanwhile_is_observed_again(told: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """Content that another process adds to an exchange during extraction is processed, too."""
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


def test_extraction_can_be_interrupted(told: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """Extraction stops after the current batch on request, and the next run continues there."""
    monkeypatch.setattr("palaver.observe.observe_pending._BATCH", 2)
    answers = iter([False, True])

    assert observe_pending(told.store, silent, lambda: next(answers)) == 2
    assert observe_pending(told.store, silent) == 3
