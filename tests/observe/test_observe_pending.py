"""Tests that every exchange is processed once by the current rules."""

import pytest

from palaver.core.conversation import Exchange, Session
from palaver.observe import rules
from palaver.observe.pipeline import observe_pending
from palaver.observe.rules import rule_extractor
from palaver.observe.rules.exchange_analysis import VerifiedObservations

from ..search.history import History, Said, learned

ANSWER = "The cache was emptied on every start because its folder had the version in its name; now it has not."


@pytest.fixture
def archive(tmp_path_factory: pytest.TempPathFactory) -> History:
    """Archive of five exchanges in which a file was changed."""
    history = History(tmp_path_factory.mktemp("told"))
    history.say("one", *(Said(f"Fix the cache bug {n}", ANSWER, writes=(f"/code/app/{n}.py",)) for n in range(5)))
    return history


def silent(_done: int, _total: int) -> None:
    pass


def test_everything_is_observed_once(archive: History) -> None:
    """Every exchange is processed exactly once, batch by batch."""
    progress: list[tuple[int, int]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("palaver.observe.pipeline._BATCH", 2)
        assert observe_pending(archive.store, lambda done, total: progress.append((done, total))) == 5

    assert progress == [(0, 5), (2, 5), (4, 5), (5, 5)]
    assert len(archive.store.observations.of_exchanges(range(1, 6))) == 5
    before = archive.store.changes.last()
    assert observe_pending(archive.store, silent) == 0
    assert archive.store.changes.last() == before


def test_a_changed_exchange_is_observed_again(archive: History) -> None:
    """Only the exchange with new content is processed again."""
    observe_pending(archive.store, silent)
    exchanges = [Said(f"Fix the cache bug {n}", ANSWER, writes=(f"/code/app/{n}.py",)) for n in range(4)]
    archive.say("one", *exchanges, Said("Fix the cache bug 4", ANSWER, writes=("/code/app/4.py", "/code/app/other.py")))

    assert observe_pending(archive.store, silent) == 1
    [*_, last] = archive.store.observations.of_exchange(5)
    assert "/code/app/other.py" in last.observation.files_modified


def test_new_rules_observe_everything_again(archive: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a change of the rules, every exchange is processed again, once."""
    observe_pending(archive.store, silent)
    monkeypatch.setattr(rules, "VERSION", "rules-next")

    assert observe_pending(archive.store, silent) == 5
    learned_now = archive.store.observations.of_exchanges(range(1, 6))
    assert len(learned_now) == 5
    assert {one.observation.extractor for known in learned_now.values() for one in known} == {"rules-next"}
    assert observe_pending(archive.store, silent) == 0


def test_observations_of_older_rules_are_replaced(archive: History) -> None:
    """Observations that the current rules do not extract are removed."""
    [old] = archive.learn(1, learned("what earlier rules thought"))
    observe_pending(archive.store, silent)

    assert archive.store.observations.load([old]) == {}
    assert archive.store.observations.of_exchange(1) != []


def test_an_exchange_that_changes_meanwhile_is_observed_again(
    archive: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Content that another process adds to an exchange during extraction is processed, too."""
    observe = rule_extractor.observe
    exchanges = [Said(f"Fix the cache bug {n}", ANSWER, writes=(f"/code/app/{n}.py",)) for n in range(4)]

    def slow(exchange: Exchange, session: Session) -> VerifiedObservations:
        if exchange.ordinal == 4 and "other.py" not in str(exchange):
            archive.say(
                "one", *exchanges, Said("Fix the cache bug 4", ANSWER, writes=("/code/app/4.py", "/code/app/other.py"))
            )
        return observe(exchange, session)

    monkeypatch.setattr(rule_extractor, "observe", slow)
    observe_pending(archive.store, silent)

    [*_, last] = archive.store.observations.of_exchange(5)
    assert "/code/app/other.py" in last.observation.files_modified
    assert archive.store.exchanges.count_unobserved(rules.VERSION) == 0


def test_extraction_can_be_interrupted(archive: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """Extraction stops after the current batch on request, and the next run continues there."""
    monkeypatch.setattr("palaver.observe.pipeline._BATCH", 2)
    answers = iter([False, True])

    assert observe_pending(archive.store, silent, lambda: next(answers)) == 2
    assert observe_pending(archive.store, silent) == 3
