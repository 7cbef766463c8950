"""Older sessions are sent through the batch API."""

import pytest

from palaver.observe.llm import batch_sender, model_extractor
from palaver.observe.llm.model_errors import BudgetExhausted, ModelBusy, ModelRefused
from palaver.observe.rules import VERSION

from .conftest import SESSIONS, Stage, changing_exchange
from .server import Sent, failing, honest, learned, message


@pytest.fixture
def backlog(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Return five sessions: one is sent immediately and four are sent in a batch."""
    monkeypatch.setattr(model_extractor, "NEWEST", 0)
    monkeypatch.setattr(batch_sender, "_SIZE", 4)
    for number, session in enumerate(SESSIONS):
        stage.say(session, changing_exchange(number + 1))
    return stage


def test_newest_sessions_are_sent_at_once(stage: Stage) -> None:
    """The three newest sessions are sent immediately, and all older sessions in a batch."""
    for number, session in enumerate(SESSIONS):
        stage.say(session, changing_exchange(number + 1))

    result = stage.run()

    assert (result.asked, result.learned, result.sent, result.pending) == (3, 3, 2, 2)
    [batch] = stage.provider.batch_sender
    assert len(stage.provider.results[batch]) == 2


def test_results_are_matched_by_their_ids(backlog: Stage) -> None:
    """Results in any order replace the rule-based observations of their own exchange at half the price."""
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
    """Return the stem of the file that an exchange modified."""
    [stored] = stage.store.exchanges.load([key]).values()
    return stored.exchange.writes[0].rpartition("/")[2].removesuffix(".py")


def test_open_batch_is_not_sent_again(backlog: Stage) -> None:
    """No request is sent twice while a batch is open."""
    backlog.provider.ends_batches = False
    assert backlog.run().sent == 5

    again = backlog.run()

    assert (again.sent, again.pending, again.learned) == (0, 5, 0)
    assert len(backlog.provider.batch_sender) == 2
    backlog.provider.ends_batches = True
    assert backlog.run().learned == 5


def test_failed_requests_of_a_batch_are_queued_again(backlog: Stage) -> None:
    """Requests that failed by overload or expiry are retried at no cost, and invalid requests become dead letters."""
    backlog.provider.script = [
        failing(529, "overloaded_error"),
        Sent(599),
        failing(400, "invalid_request_error"),
        Sent(body=message("no JSON")),
    ]
    backlog.run()

    result = backlog.run()

    assert (result.learned, result.failed, result.given_up, result.waiting) == (1, 4, 1, 3)
    [row] = backlog.store.ledger.by_model()
    assert (row.calls, row.unanswered) == (2, 0)
    backlog.later(7_200)
    assert backlog.run().sent == 3
    assert backlog.run().learned == 3


def test_batch_without_any_answer_ends_the_run(backlog: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """If every request of a batch was refused, the run stops, and no exchange is given up."""
    monkeypatch.setattr(batch_sender, "_SIZE", 5)
    backlog.provider.default = lambda _: failing(400, "invalid_request_error")
    backlog.run()

    result = backlog.run()

    assert isinstance(result.stopped, ModelRefused)
    assert (result.given_up, result.waiting, result.cost) == (0, 5, 0)
    assert backlog.store.jobs.open_batches() == []
    backlog.provider.default = honest
    backlog.later(3_600)
    assert (backlog.run().sent, backlog.run().learned) == (5, 5)


def test_server_without_batches_gets_single_requests(backlog: Stage) -> None:
    """A server without a batch API, such as a local server, gets single requests."""
    backlog.provider.supports_batches = False

    result = backlog.run()

    assert (result.sent, result.asked, result.learned) == (0, 5, 5)
    assert backlog.store.jobs.open_batches() == []


def test_lost_batch_is_found_by_its_token(backlog: Stage) -> None:
    """If the reply to a submission is lost, the batch is found by its token, and no request is sent twice."""
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


def test_missing_batch_is_sent_again(backlog: Stage) -> None:
    """If the provider still does not list a batch after some minutes, its jobs and its reservation are released."""

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


def test_unknown_batch_is_sent_again_and_counts_as_charged(backlog: Stage) -> None:
    """If the server changes or the results expire, jobs are queued again and the batch counts as charged in full."""
    backlog.run()
    backlog.provider.batch_sender.clear()

    result = backlog.run()

    assert (result.stopped, result.sent) == (None, 5)
    assert backlog.run().learned == 5
    [row] = backlog.store.ledger.by_model()
    assert (row.calls, row.unanswered) == (10, 5)


def test_rejected_batch_leaves_nothing_behind(backlog: Stage) -> None:
    """A rejected batch leaves no reservation, no attempt and no open batch."""
    backlog.provider.on_batch = lambda _: failing(401, "authentication_error")

    result = backlog.run()

    assert result.stopped is not None
    assert (result.cost, result.waiting, result.pending, result.failed) == (0, 5, 0, 0)


def test_batch_fits_the_budget(backlog: Stage) -> None:
    """A batch contains as many requests as the budget allows at maximum cost. Unused reservations are released."""
    backlog.provider.default = lambda _: Sent(body=message(learned()))
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
