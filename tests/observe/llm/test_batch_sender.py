"""Backfill by the provider's batch endpoint."""

import pytest

from palaver.observe.llm import batch_sender, model_extractor
from palaver.observe.llm.model_errors import BudgetExhausted, ModelBusy
from palaver.observe.rules import VERSION

from .conftest import SESSIONS, Stage, asked
from .server import Sent, failing, learned, message


@pytest.fixture
def backlog(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Five sessions, of which the newest is asked about at once and four can wait."""
    monkeypatch.setattr(model_extractor, "NEWEST", 0)
    monkeypatch.setattr(batch_sender, "_SIZE", 4)
    for number, session in enumerate(SESSIONS):
        stage.say(session, asked(number + 1))
    return stage


def test_only_the_newest_sessions_are_asked_at_once(stage: Stage) -> None:
    """The three that ended last; the others go into a batch."""
    for number, session in enumerate(SESSIONS):
        stage.say(session, asked(number + 1))

    result = stage.run()

    assert (result.asked, result.learned, result.sent, result.pending) == (3, 3, 2, 2)
    [batch] = stage.provider.batch_sender
    assert len(stage.provider.results[batch]) == 2


def test_results_are_matched_by_their_ids(backlog: Stage) -> None:
    """They come in any order; each replaces the rules' observations of its own exchange, at half the price."""
    assert backlog.run().sent == 5
    assert backlog.extractors() == [VERSION] * 5

    result = backlog.run()

    assert (result.learned, result.pending, result.asked) == (5, 0, 0)
    assert backlog.extractors() == ["llm"] * 5
    for key, [found] in backlog.store.observations.of_exchanges(backlog.store.items.all_keys()).items():
        assert f"/code/app/{key_number(backlog, key)}.py" in found.observation.files_modified
    [row] = backlog.store.ledger.by_model()
    assert (row.reason, row.calls, row.unanswered) == ("backfill", 5, 0)
    assert row.cost == 5 * (900 * 100 + 1000 * 10 + 200 * 500) // 2
    assert backlog.run().learned == 0


def key_number(stage: Stage, key: int) -> str:
    """Which part an exchange is about."""
    [stored] = stage.store.exchanges.load([key]).values()
    return stored.exchange.writes[0].rpartition("/")[2].removesuffix(".py")


def test_a_batch_that_is_not_done_is_waited_for(backlog: Stage) -> None:
    """Nothing is asked twice while a batch is on its way."""
    backlog.provider.ends_batches = False
    assert backlog.run().sent == 5

    again = backlog.run()

    assert (again.sent, again.pending, again.learned) == (0, 5, 0)
    assert len(backlog.provider.batch_sender) == 2
    backlog.provider.ends_batches = True
    assert backlog.run().learned == 5


def test_errors_of_a_batch_are_queued_again(backlog: Stage) -> None:
    """Overloaded or expired requests wait their turn and cost nothing; invalid ones are dead letters."""
    backlog.provider.script = [
        failing(529, "overloaded_error"),
        Sent(599),
        failing(400, "invalid_request_error"),
        Sent(body=message("no JSON")),
    ]
    backlog.run()

    result = backlog.run()

    assert (result.learned, result.failed, result.buried, result.waiting) == (1, 4, 1, 3)
    [row] = backlog.store.ledger.by_model()
    assert (row.calls, row.unanswered) == (2, 0)
    backlog.later(7_200)
    assert backlog.run().sent == 3
    assert backlog.run().learned == 3


def test_a_server_without_batches_is_asked_one_by_one(backlog: Stage) -> None:
    """As local servers are."""
    backlog.provider.supports_batches = False

    result = backlog.run()

    assert (result.sent, result.asked, result.learned) == (0, 5, 5)
    assert backlog.store.jobs.open_batches() == []


def test_a_batch_whose_name_was_never_heard_is_found_again(backlog: Stage) -> None:
    """The answer to the hand-in was lost: the batch is recognised by its token, and nothing is sent twice."""
    backlog.provider.on_batch = lambda _: Sent(body=b'{"id": "msgba', truncated=True)
    first = backlog.run()
    assert isinstance(first.stopped, ModelBusy)
    assert (first.pending, first.waiting) == (4, 1)
    backlog.provider.on_batch = None

    result = backlog.run()

    assert (result.learned, result.sent) == (4, 1)
    assert backlog.run().learned == 1
    assert len(backlog.provider.calls) == 5
    assert len(backlog.provider.batch_sender) == 2


def test_a_batch_that_never_arrived_is_sent_again(backlog: Stage) -> None:
    """When the provider's list does not have it after some minutes, its jobs and its money are free again."""

    def lose(_: object) -> Sent:
        backlog.provider.batch_sender.clear()
        backlog.provider.calls.clear()
        return Sent(body=b'{"id": "msgba', truncated=True)

    backlog.provider.on_batch = lose
    backlog.run()
    backlog.provider.on_batch = None
    assert backlog.run().sent == 1
    backlog.later(3_600)

    result = backlog.run()

    assert (result.sent, result.learned) == (4, 1)
    assert backlog.run().learned == 4
    assert len(backlog.provider.calls) == 5


def test_a_batch_that_the_server_does_not_know_is_sent_again(backlog: Stage) -> None:
    """As after a change of server, or when results are kept no longer. It may have been charged, so it counts."""
    backlog.run()
    backlog.provider.batch_sender.clear()

    result = backlog.run()

    assert (result.stopped, result.sent) == (None, 5)
    assert backlog.run().learned == 5
    [row] = backlog.store.ledger.by_model()
    assert (row.calls, row.unanswered) == (10, 5)


def test_a_refused_batch_leaves_nothing_behind(backlog: Stage) -> None:
    """No reserve, no attempt, no batch on its way."""
    backlog.provider.on_batch = lambda _: failing(401, "authentication_error")

    result = backlog.run()

    assert result.stopped is not None
    assert (result.cost, result.waiting, result.pending, result.failed) == (0, 5, 0, 0)


def test_a_batch_is_no_larger_than_the_budget(backlog: Stage) -> None:
    """As many requests are sent as there is money for in the worst case; settled, the rest of it is free again."""
    backlog.provider.usually = lambda _: Sent(body=message(learned()))
    one = backlog.extractor().estimate().batch // 5
    cap = 0.0061

    result = backlog.run(budget_month=cap)

    assert isinstance(result.stopped, BudgetExhausted)
    assert 0 < result.sent < 5
    assert result.cost <= cap * 1e9
    assert one < result.cost
    again = backlog.run(budget_month=cap)
    assert again.nothing == result.sent
    assert again.sent > 0
