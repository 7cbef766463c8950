"""Each kind of provider reply to a single request is handled."""

import json

import pytest
from msgspec.structs import replace

from palaver.core.conversation import Session
from palaver.core.observation import Observation, ObservationType
from palaver.core.origin import Origin
from palaver.core.progress import silent
from palaver.core.recursion import OWN_PROMPT_MARK
from palaver.observe.llm.job_queue import ATTEMPTS_MAX
from palaver.observe.llm.model_errors import BudgetExhausted, ModelBusy, ModelRefused
from palaver.observe.observe_pending import observe_pending
from palaver.observe.rules import VERSION

from .conftest import ANSWER, Stage, changing_exchange
from .server import Sent, failing, honest, learned, message, observation, passages


def test_verified_reply_replaces_the_rules(stage: Stage) -> None:
    """A verified reply replaces the rule-based observations. Palaver itself adds files, date and evidence."""
    [key] = stage.say("one", changing_exchange(1))
    assert stage.extractors() == [VERSION]

    result = stage.run()

    [found] = stage.store.observations.of_exchange(key)
    assert (result.asked, result.learned, result.observations, result.stopped) == (1, 1, 1, None)
    assert found.observation.title == "The model's title"
    assert found.observation.files_modified == ("/code/app/1.py",)
    assert found.observation.evidence[0].quote in ANSWER
    assert found.observation.evidence[0].start_line == 3
    assert found.observation.origin == Origin.ASSISTANT
    assert stage.extractors() == ["llm"]


def test_answered_exchange_is_not_sent_again(stage: Stage) -> None:
    """An exchange with a stored reply is sent again only when it grows. Newer rules keep its observations."""
    stage.say("one", changing_exchange(1))
    stage.run()
    assert stage.run().asked == 0
    assert len(stage.provider.calls) == 1
    assert stage.store.exchanges.count_unobserved("rules-next") == 0

    stage.say(
        "one",
        changing_exchange(1, "The loader read the folder before its name was known, so `loader.py` starts later."),
    )

    assert stage.extractors() == [VERSION]
    assert stage.run().asked == 1
    assert stage.extractors() == ["llm"]


def test_requests_are_labelled_cached_and_constrained(stage: Stage) -> None:
    """A call is stateless, carries Palaver's label, caches the system prompt and contains the reply schema."""
    stage.say("one", changing_exchange(1))
    stage.run()

    [call] = stage.provider.calls
    assert stage.provider.keys == ["Bearer test-key"]
    assert call["system"][0]["text"].startswith(OWN_PROMPT_MARK)
    assert call["system"][0]["cache_control"] == {"type": "ephemeral"}
    [only] = call["messages"]
    assert only["content"].startswith(OWN_PROMPT_MARK)
    assert call["output_config"]["format"]["schema"]["additionalProperties"] is False
    assert "tools" not in call


def test_known_titles_are_sent(stage: Stage) -> None:
    """Earlier titles of the session are sent as known titles and do not change the digest."""
    stage.say("one", changing_exchange(2), changing_exchange(1))
    stage.run()

    by_line = {passages(call)[0][0]: call["messages"][0]["content"] for call in stage.provider.calls}
    assert "already stored for this session" not in by_line[1]
    assert "already stored for this session" in by_line[4]
    assert stage.run().asked == 0


def test_verdict_nothing_ends_the_job(stage: Stage) -> None:
    """The verdict `nothing` ends the job and removes the rule-based observations, which newer rules do not restore."""
    stage.say("one", changing_exchange(1))
    stage.provider.default = lambda _: Sent(body=message(learned()))

    result = stage.run()

    assert (result.nothing, result.failed, result.observations) == (1, 0, 0)
    assert stage.store.jobs.states() == {"nothing": 1}
    assert stage.extractors() == []
    assert stage.run().asked == 0
    assert stage.store.exchanges.count_unobserved("rules-next") == 0


BAD_REPLIES = {
    "broken JSON": message('{"verdict": "learned", "observations": ['),
    "no JSON": message("I would rather talk about something else."),
    "wrong schema": message(json.dumps({"verdict": "learned", "observations": [{"title": 3}]})),
    "unknown key": message(json.dumps({"verdict": "nothing", "observations": [], "note": "x"})),
    "contradiction": message(json.dumps({"verdict": "learned", "observations": []})),
    "cut": message(learned(observation(("It is so.", 3, "The cache was emptied"))), stop="max_tokens"),
    "refused": message("", stop="refusal"),
    "not in the source": message(learned(observation(("It is so.", 3, "The cache was filled by hand")))),
    "on another line": message(learned(observation(("It is so.", 3, "x")))),
}


@pytest.mark.parametrize("reply", BAD_REPLIES.values(), ids=BAD_REPLIES)
def test_invalid_reply_is_charged_and_retried(stage: Stage, reply: dict[str, object]) -> None:
    """An invalid reply is recorded in the ledger, changes no observation, and becomes a dead letter after some
    attempts.
    """
    stage.say("one", changing_exchange(1))
    stage.provider.default = lambda _: Sent(body=reply)

    for attempt in range(ATTEMPTS_MAX):
        result = stage.run()
        assert (result.failed, result.given_up, result.stopped) == (1, attempt == ATTEMPTS_MAX - 1, None)
        assert stage.run().asked == 0  # the delay is not over
        stage.later(3_600)

    assert stage.run().asked == 0
    assert stage.extractors() == [VERSION]
    [dead] = stage.store.jobs.dead()
    assert json.loads(dead.reply)["content"] == reply["content"]
    assert dead.reason
    [row] = stage.store.ledger.by_model()
    assert (row.calls, row.unanswered, row.usage.tokens_out) == (ATTEMPTS_MAX, 0, 200 * ATTEMPTS_MAX)


def test_dead_letters_can_be_retried(stage: Stage) -> None:
    """Dead letters are sent again on request."""
    stage.say("one", changing_exchange(1), changing_exchange(2))
    stage.provider.script = [failing(400, "invalid_request_error")]
    assert stage.run().given_up == 1
    with stage.store.transaction():
        assert stage.store.jobs.revive() == 1

    assert stage.run().learned == 1


def test_facts_without_quotes_are_rejected(stage: Stage) -> None:
    """Facts without a valid quote are rejected, and a quote on a wrong line moves to the only line that contains it."""
    [key] = stage.say("one", changing_exchange(1))
    facts = observation(
        ("Made up.", 3, "The moon is made of cheese"),
        ("True, on a wrong line.", 1, "emptied on every start"),
        ("Too short a proof.", 3, "the"),
    )
    stage.provider.default = lambda _: Sent(body=message(learned(facts)))

    result = stage.run()

    [found] = stage.store.observations.of_exchange(key)
    assert found.observation.facts == ("True, on a wrong line.",)
    assert [(proof.start_line, proof.quote) for proof in found.observation.evidence] == [(3, "emptied on every start")]
    assert result.refused == 2
    assert stage.store.jobs.refused() == 2


def test_names_outside_the_conversation_are_rejected(stage: Stage) -> None:
    """A fact with a name, number or path that the exchange does not contain is rejected, and so is such a sentence."""
    [key] = stage.say("one", changing_exchange(1))
    quote = "emptied on every start"
    facts = observation(
        ("The cache in Redis was emptied.", 3, quote),
        ("The cache was emptied 12 times.", 3, quote),
        ("The repair is in `/code/app/2.py`.", 3, quote),
        ("The loader in /code/app/1.py emptied it.", 3, quote),
        narrative="The cache was cold. Version 3.2 repaired it. The tests pass.",
    )
    stage.provider.default = lambda _: Sent(body=message(learned(facts)))

    result = stage.run()

    [found] = stage.store.observations.of_exchange(key)
    assert found.observation.facts == ("The loader in /code/app/1.py emptied it.",)
    assert found.observation.narrative == "The cache was cold. The tests pass."
    assert result.refused == stage.store.jobs.refused() == 3


def test_title_with_an_invented_name_rejects_the_observation(stage: Stage) -> None:
    """An observation whose title contains an invented name is rejected with all its facts."""
    [key] = stage.say("one", changing_exchange(1))
    fact = ("The cache was emptied on every start.", 3, "emptied on every start")
    replies = observation(fact, title="The cache moved to Redis"), observation(fact, title="The cache stays warm")
    stage.provider.default = lambda _: Sent(body=message(learned(*replies)))

    result = stage.run()

    assert [each.observation.title for each in stage.store.observations.of_exchange(key)] == ["The cache stays warm"]
    assert result.refused == 1


@pytest.mark.parametrize(
    ("fact", "origin"),
    [
        (("The cache of part 1 is cold after each start.", 1, "the cache of part 1 cold"), Origin.HUMAN),
        (("The cache of part 1 was emptied on every start.", 3, "emptied on every start"), Origin.ASSISTANT),
    ],
    ids=["user", "assistant"],
)
def test_quotes_of_the_user_have_human_origin(stage: Stage, fact: tuple[str, int, str], origin: Origin) -> None:
    """An observation that quotes only the user, and says what the user said, has human origin."""
    [key] = stage.say("one", changing_exchange(1))
    reply = observation(fact, title="The cache is cold after each start")
    stage.provider.default = lambda _: Sent(body=message(learned(reply)))

    stage.run()

    assert [each.observation.origin for each in stage.store.observations.of_exchange(key)] == [origin]


def test_refusals_of_all_requests_end_the_run(stage: Stage) -> None:
    """If three requests are refused and none is answered, the run stops, and no exchange is given up."""
    stage.say("one", *(changing_exchange(number) for number in range(5, 0, -1)))
    stage.provider.default = lambda _: failing(400, "invalid_request_error")

    for run in range(1, ATTEMPTS_MAX + 2):
        result = stage.run()
        assert isinstance(result.stopped, ModelRefused)
        assert "3 requests were refused and none answered" in str(result.stopped)
        assert (len(stage.provider.calls), result.given_up, result.cost) == (3 * run, 0, 0)
        stage.later(3_600)

    stage.provider.default = honest
    assert stage.run().learned == 5


def test_refusals_after_an_answer_end_the_run(stage: Stage) -> None:
    """If an account is used up during a run, three refusals in a row end the run, and no exchange is given up."""
    stage.say("one", *(changing_exchange(number) for number in range(8, 0, -1)))
    stage.provider.script = [honest, honest]
    stage.provider.default = lambda _: failing(400, "invalid_request_error")

    result = stage.run()

    assert isinstance(result.stopped, ModelRefused)
    assert "3 requests in a row were refused" in str(result.stopped)
    assert (result.learned, result.given_up, result.waiting, len(stage.provider.calls)) == (2, 0, 6, 5)
    stage.provider.default = honest
    stage.later(3_600)
    assert stage.run().learned == 6


def test_a_refused_request_before_an_answer_is_given_up(stage: Stage) -> None:
    """A refused request becomes a dead letter when a later request is answered."""
    stage.say("one", *(changing_exchange(number) for number in range(4, 0, -1)))
    refusal = failing(400, "invalid_request_error")
    stage.provider.script = [honest, refusal, refusal, honest]

    result = stage.run()

    assert (result.learned, result.given_up, result.stopped) == (2, 2, None)


def test_a_request_that_is_always_refused_last_is_given_up(stage: Stage) -> None:
    """A refusal after an answer counts as an attempt, so that a request is not sent without end."""
    stage.provider.supports_batches = False
    stage.say("oldest", changing_exchange(50))
    refusal = failing(400, "invalid_request_error")
    stage.provider.default = lambda call: refusal if "part 50" in str(call) else honest(call)

    for number in range(ATTEMPTS_MAX):
        stage.say(f"newer {number}", changing_exchange(number))
        assert stage.run().given_up == (number == ATTEMPTS_MAX - 1)
        stage.later(7_200)


def test_a_refused_request_alone_is_retried_later(stage: Stage) -> None:
    """If no request was answered, the refusal is reported, and the request is retried after ten minutes."""
    stage.say("one", changing_exchange(1))
    stage.provider.script = [failing(400, "invalid_request_error")]

    result = stage.run()

    assert isinstance(result.stopped, ModelRefused)
    assert "no request was answered" in str(result.stopped)
    assert (result.given_up, stage.run().asked, stage.run().stopped) == (0, 0, None)
    stage.later(700)

    assert stage.run().learned == 1


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, "authentication_error"), (402, "billing_error"), (403, "permission_error"), (404, "not_found_error")],
)
def test_refused_key_ends_the_run(stage: Stage, status: int, kind: str) -> None:
    """Authentication and quota errors end the run after one call, cost nothing, and use no attempt."""
    stage.say("one", changing_exchange(1), changing_exchange(2))
    stage.provider.default = lambda _: failing(status, kind)

    result = stage.run()

    assert isinstance(result.stopped, ModelRefused)
    assert result.stopped.hint
    assert len(stage.provider.calls) == 1
    assert (result.cost, result.waiting, result.failed) == (0, 2, 0)
    stage.provider.default = honest
    assert stage.run().learned == 2


def test_retry_after_is_respected(stage: Stage) -> None:
    """After status 429 the next call waits for the time that the provider requested."""
    stage.say("one", changing_exchange(1), changing_exchange(2))
    stage.provider.script = [failing(429, "rate_limit_error", retry_after="7")]

    result = stage.run()

    assert stage.slept == [7.0]
    assert (result.learned, result.failed, result.waiting, result.stopped) == (1, 1, 1, None)
    stage.later(3_600)
    assert stage.run().learned == 1


def test_a_long_limit_ends_the_run(stage: Stage) -> None:
    """A requested wait of one hour ends the run."""
    stage.say("one", changing_exchange(1), changing_exchange(2))
    stage.provider.script = [failing(429, "rate_limit_error", retry_after="3600")]

    result = stage.run()

    assert isinstance(result.stopped, ModelBusy)
    assert (stage.slept, len(stage.provider.calls), result.cost) == ([], 1, 0)


@pytest.mark.parametrize("sent", [failing(529, "overloaded_error"), failing(500, "api_error")], ids=["529", "500"])
def test_overload_ends_the_run(stage: Stage, sent: Sent) -> None:
    """Three consecutive failures end the run, cost nothing, and are retried later."""
    stage.say("one", *(changing_exchange(number) for number in range(5, 0, -1)))
    stage.provider.default = lambda _: sent

    result = stage.run()

    assert isinstance(result.stopped, ModelBusy)
    assert (len(stage.provider.calls), result.failed, result.cost, result.waiting) == (3, 3, 0, 5)
    assert stage.slept == [2.0, 4.0]


def test_timeout_counts_as_charged(stage: Stage) -> None:
    """A call that times out keeps its reservation, since the provider may have charged it."""
    stage.say("one", changing_exchange(1))
    stage.seconds = 0.2
    stage.provider.script = [Sent(body=message("{}"), delay=1.0)]

    result = stage.run()

    assert (result.failed, result.waiting) == (1, 1)
    [row] = stage.store.ledger.by_model()
    assert (row.calls, row.unanswered) == (1, 1)
    assert result.cost == row.cost > 0


@pytest.mark.parametrize(
    "sent",
    [Sent(body=message("x" * 200), truncated=True), Sent(body=b"<html>"), Sent(body=b"{}")],
    ids=["breaks off", "html", "empty"],
)
def test_invalid_message_counts_as_charged(stage: Stage, sent: Sent) -> None:
    """A call whose reply is not a valid message is repeated, and the reservation of the failed call stays."""
    stage.say("one", changing_exchange(1))
    stage.provider.script = [sent]

    assert stage.run().failed == 1
    [row] = stage.store.ledger.by_model()
    assert row.unanswered == 1
    stage.later(3_600)
    assert stage.run().learned == 1


def test_an_unreachable_provider_costs_nothing(stage: Stage) -> None:
    """A refused connection costs nothing, since the provider cannot have charged it."""
    stage.say("one", changing_exchange(1))
    stage.provider.url = "http://127.0.0.1:9"

    result = stage.run()

    assert (result.failed, result.cost) == (1, 0)


def test_reply_about_a_changed_exchange_is_discarded(stage: Stage) -> None:
    """If an exchange changes during the call, its reply is charged and discarded, and it is sent again."""
    stage.say("one", changing_exchange(1))

    def grow(params: dict[str, object]) -> Sent:
        line, _, text = passages(params)[0]
        answer = Sent(body=message(learned(observation(("Asked.", line, text[:60])))))
        stage.say(
            "one", changing_exchange(1, "It was the loader after all, which read the folder before its name was known.")
        )
        return answer

    stage.provider.script = [grow]
    result = stage.run()

    assert (result.asked, result.learned, result.cost > 0) == (1, 0, True)
    assert "llm" not in stage.extractors()


def test_late_reply_is_discarded(stage: Stage) -> None:
    """If another process has already stored a reply to the request, a late reply is charged and discarded."""
    [key] = stage.say("one", changing_exchange(1))

    def late(params: dict[str, object]) -> Sent:
        stage.later(3_600)
        assert stage.run().learned == 1
        answer = honest(params)
        assert isinstance(answer.body, dict)
        return Sent(body=message(answer.body["content"][1]["text"].replace("The model's title", "Too late")))

    stage.provider.script = [late]
    result = stage.run()

    assert (result.asked, result.learned) == (1, 0)
    assert [stored.observation.title for stored in stage.store.observations.of_exchange(key)] == ["The model's title"]


def test_private_projects_are_never_sent(stage: Stage) -> None:
    """Projects that are private by name or folder are not sent, even if they were queued before."""
    stage.history.say("one", changing_exchange(1), project="secret")
    stage.history.say("two", changing_exchange(2), project="open", cwd="/srv/secret/deep")
    stage.say("three", changing_exchange(3))
    stage.provider.script = [failing(429, "rate_limit_error", retry_after="3600")]
    stage.run()
    stage.later(7_200)

    private = ("secret", "/srv/secret")
    assert stage.run(private_projects=private).learned == 1
    estimate = stage.extractor(private_projects=private).estimate()
    assert (estimate.private, estimate.exchanges) == (2, 0)
    assert all("part 3" in str(call) for call in stage.provider.calls[1:])


def test_private_titles_are_never_sent(stage: Stage) -> None:
    """A session that started in a private folder sends no title from that folder."""
    secret, open_ = stage.history.say("one", changing_exchange(1), changing_exchange(2), cwd="/srv/secret")
    moved = replace(stage.store.exchanges.load([open_])[open_].exchange, cwd="/srv/open")
    with stage.store.transaction():
        number = stage.store.sessions.save(Session("test", "one", project="one", cwd="/srv/open", title="one"))
        stage.store.exchanges.replace(number, 1, 1, [moved])
        earlier = Observation(ObservationType.LEARNING, "The merger is called Walrus")
        stage.store.observations.replace(secret, number, [earlier], VERSION)
    observe_pending(stage.store, silent)

    assert stage.run(private_projects=("/srv/secret",)).asked == 1
    assert "part 2" in str(stage.provider.calls)
    assert "Walrus" not in str(stage.provider.calls)

    stage.run(outdated=True, llm_model="claude-opus-5-5")
    assert "Walrus" in str(stage.provider.calls)


def test_budgets_are_checked_before_a_call(stage: Stage) -> None:
    """No call is made if a budget is too small for it, and the message names that budget."""
    stage.say("one", changing_exchange(1))

    result = stage.run(budget_day=0.000001)

    assert isinstance(result.stopped, BudgetExhausted)
    assert result.stopped.setting == "budget_day"
    assert (stage.provider.calls, result.cost, result.waiting) == ([], 0, 1)


def test_only_quiet_sessions_are_sent_on_request(stage: Stage) -> None:
    """With `quiet`, a session is sent when its last exchange ended ten minutes ago, and not before."""
    stage.say("one", changing_exchange(1))
    stage.say("two", changing_exchange(20))
    with stage.store.transaction():
        for session in stage.store.jobs.newest_sessions(2):
            stage.store.sessions.update_dates(session)

    assert stage.extractor().run(quiet=True).learned == 1
    assert "part 20" in str(stage.provider.calls)
    stage.later(600)
    assert stage.extractor().run(quiet=True).learned == 1
