"""One call at a time: what becomes of each kind of answer a provider can give."""

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
from palaver.observe.rules import VERSION
from palaver.observe.stage import observe_pending

from .conftest import ANSWER, Stage, asked
from .server import Sent, failing, honest, learned, message, observation, passages


def test_an_answer_replaces_what_the_rules_said(stage: Stage) -> None:
    """A proven answer takes the place of the rules' observations, with files, date and evidence added by code."""
    [key] = stage.say("one", asked(1))
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


def test_nothing_is_asked_twice(stage: Stage) -> None:
    """What was answered is not asked again, and new rules do not replace it; when it grows it is asked anew."""
    stage.say("one", asked(1))
    stage.run()
    assert stage.run().asked == 0
    assert len(stage.provider.calls) == 1
    assert stage.store.exchanges.count_unobserved("rules-next") == 0

    stage.say("one", asked(1, "It was the loader after all, which read the folder before its name was known."))

    assert stage.extractors() == [VERSION]
    assert stage.run().asked == 1
    assert stage.extractors() == ["llm"]


def test_each_prompt_is_marked_cached_and_constrained(stage: Stage) -> None:
    """A call is stateless, carries our mark, caches what is always the same, and names the schema of the answer."""
    stage.say("one", asked(1))
    stage.run()

    [call] = stage.provider.calls
    assert stage.provider.keys == ["Bearer test-key"]
    assert call["system"][0]["text"].startswith(OWN_PROMPT_MARK)
    assert call["system"][0]["cache_control"] == {"type": "ephemeral"}
    [only] = call["messages"]
    assert only["content"].startswith(OWN_PROMPT_MARK)
    assert call["output_config"]["format"]["schema"]["additionalProperties"] is False
    assert "tools" not in call


def test_what_is_known_is_told(stage: Stage) -> None:
    """The titles that the session already taught are given as known; they do not make it another question."""
    stage.say("one", asked(2), asked(1))
    stage.run()

    by_line = {passages(call)[0][0]: call["messages"][0]["content"] for call in stage.provider.calls}
    assert "Already known" not in by_line[1]
    assert "Already known" in by_line[4]
    assert stage.run().asked == 0


def test_nothing_worth_keeping_is_an_answer(stage: Stage) -> None:
    """It ends the job without a failure. Where files changed the rules' observations stay all the same."""
    stage.say("one", asked(1))
    stage.provider.usually = lambda _: Sent(body=message(learned()))

    result = stage.run()

    assert (result.nothing, result.failed, result.observations) == (1, 0, 0)
    assert stage.store.jobs.states() == {"nothing": 1}
    assert stage.extractors() == [VERSION]
    assert stage.run().asked == 0


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
def test_a_bad_reply_is_paid_tried_again_and_kept(stage: Stage, reply: dict[str, object]) -> None:
    """It is in the ledger, old observations stay, and after some attempts it is a dead letter with the raw reply."""
    stage.say("one", asked(1))
    stage.provider.usually = lambda _: Sent(body=reply)

    for attempt in range(ATTEMPTS_MAX):
        result = stage.run()
        assert (result.failed, result.buried, result.stopped) == (1, attempt == ATTEMPTS_MAX - 1, None)
        assert stage.run().asked == 0  # not before its time
        stage.later(3_600)

    assert stage.run().asked == 0
    assert stage.extractors() == [VERSION]
    [dead] = stage.store.jobs.dead()
    assert json.loads(dead.reply)["content"] == reply["content"]
    assert dead.reason
    [row] = stage.store.ledger.by_model()
    assert (row.calls, row.unanswered, row.usage.tokens_out) == (ATTEMPTS_MAX, 0, 200 * ATTEMPTS_MAX)


def test_the_dead_can_be_revived(stage: Stage) -> None:
    """What was given up is asked again when a person says so."""
    stage.say("one", asked(1))
    stage.provider.script = [failing(400, "invalid_request_error")]
    assert stage.run().buried == 1
    with stage.store.transaction():
        assert stage.store.jobs.revive() == 1

    assert stage.run().learned == 1


def test_facts_without_proof_are_refused_and_counted(stage: Stage) -> None:
    """The others are kept; a quote on a wrong line is put on the only line where it stands."""
    [key] = stage.say("one", asked(1))
    facts = observation(
        ("Made up.", 3, "The moon is made of cheese"),
        ("True, on a wrong line.", 1, "emptied on every start"),
        ("Too short a proof.", 3, "the"),
    )
    stage.provider.usually = lambda _: Sent(body=message(learned(facts)))

    result = stage.run()

    [found] = stage.store.observations.of_exchange(key)
    assert found.observation.facts == ("True, on a wrong line.",)
    assert [(proof.start_line, proof.quote) for proof in found.observation.evidence] == [(3, "emptied on every start")]
    assert result.refused == 2
    assert stage.store.jobs.refused() == 2


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, "authentication_error"), (402, "billing_error"), (403, "permission_error"), (404, "not_found_error")],
)
def test_a_refused_key_stops_the_stage(stage: Stage, status: int, kind: str) -> None:
    """Authentication and quota errors are not tried again: one call, nothing spent, no attempt used, all else waits."""
    stage.say("one", asked(1), asked(2))
    stage.provider.usually = lambda _: failing(status, kind)

    result = stage.run()

    assert isinstance(result.stopped, ModelRefused)
    assert result.stopped.hint
    assert len(stage.provider.calls) == 1
    assert (result.cost, result.waiting, result.failed) == (0, 2, 0)
    stage.provider.usually = honest
    assert stage.run().learned == 2


def test_a_limit_is_respected(stage: Stage) -> None:
    """After 429 the next call waits as long as the provider asked, and the job not less."""
    stage.say("one", asked(1), asked(2))
    stage.provider.script = [failing(429, "rate_limit_error", retry_after="7")]

    result = stage.run()

    assert stage.slept == [7.0]
    assert (result.learned, result.failed, result.waiting, result.stopped) == (1, 1, 1, None)
    stage.later(3_600)
    assert stage.run().learned == 1


def test_a_long_limit_ends_the_run(stage: Stage) -> None:
    """Nobody waits an hour at a prompt."""
    stage.say("one", asked(1), asked(2))
    stage.provider.script = [failing(429, "rate_limit_error", retry_after="3600")]

    result = stage.run()

    assert isinstance(result.stopped, ModelBusy)
    assert (stage.slept, len(stage.provider.calls), result.cost) == ([], 1, 0)


@pytest.mark.parametrize("sent", [failing(529, "overloaded_error"), failing(500, "api_error")], ids=["529", "500"])
def test_an_overloaded_provider_is_left_alone(stage: Stage, sent: Sent) -> None:
    """After three calls in a row the run ends; what failed costs nothing and waits its turn."""
    stage.say("one", *(asked(number) for number in range(5, 0, -1)))
    stage.provider.usually = lambda _: sent

    result = stage.run()

    assert isinstance(result.stopped, ModelBusy)
    assert (len(stage.provider.calls), result.failed, result.cost, result.waiting) == (3, 3, 0, 5)
    assert stage.slept == [2.0, 4.0]


def test_a_slow_provider_is_counted_in_full(stage: Stage) -> None:
    """A call that got no answer in time may have been charged: its reserve stays spent."""
    stage.say("one", asked(1))
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
def test_an_answer_that_is_no_message_may_have_been_charged(stage: Stage, sent: Sent) -> None:
    """It is tried again, and its reserve stays spent."""
    stage.say("one", asked(1))
    stage.provider.script = [sent]

    assert stage.run().failed == 1
    [row] = stage.store.ledger.by_model()
    assert row.unanswered == 1
    stage.later(3_600)
    assert stage.run().learned == 1


def test_an_unreachable_provider_costs_nothing(stage: Stage) -> None:
    """Nobody listens there: nothing can have been charged."""
    stage.say("one", asked(1))
    stage.provider.url = "http://127.0.0.1:9"

    result = stage.run()

    assert (result.failed, result.cost) == (1, 0)


def test_an_exchange_that_grew_meanwhile_keeps_its_place(stage: Stage) -> None:
    """An answer about what no longer stands there is paid and thrown away; the exchange is asked anew."""
    stage.say("one", asked(1))

    def grow(params: dict[str, object]) -> Sent:
        line, _, text = passages(params)[0]
        answer = Sent(body=message(learned(observation(("Asked.", line, text[:60])))))
        stage.say("one", asked(1, "It was the loader after all, which read the folder before its name was known."))
        return answer

    stage.provider.script = [grow]
    result = stage.run()

    assert (result.asked, result.learned, result.cost > 0) == (1, 0, True)
    assert "llm" not in stage.extractors()


def test_a_late_answer_changes_nothing(stage: Stage) -> None:
    """When the lease ran out meanwhile and another process answered, the late answer is paid and thrown away."""
    [key] = stage.say("one", asked(1))

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
    """Named by name or by a folder above; one that was asked for before it became private is not sent either."""
    stage.history.say("one", asked(1), project="secret")
    stage.history.say("two", asked(2), project="open", cwd="/srv/secret/deep")
    stage.say("three", asked(3))
    stage.provider.script = [failing(429, "rate_limit_error", retry_after="3600")]
    stage.run()
    stage.later(7_200)

    private = ("secret", "/srv/secret")
    assert stage.run(private_projects=private).learned == 1
    estimate = stage.extractor(private_projects=private).estimate()
    assert (estimate.private, estimate.exchanges) == (2, 0)
    assert all("part 3" in str(call) for call in stage.provider.calls[1:])


def test_what_was_learned_in_private_is_never_told(stage: Stage) -> None:
    """A session that began in a private folder and went on elsewhere sends no title of what it taught before."""
    secret, open_ = stage.history.say("one", asked(1), asked(2), cwd="/srv/secret")
    moved = replace(stage.store.exchanges.load([open_])[open_].exchange, cwd="/srv/open")
    with stage.store.transaction():
        number = stage.store.sessions.save(Session("test", "one", project="one", cwd="/srv/open", title="one"))
        stage.store.exchanges.replace(number, 1, 1, [moved])
        told = Observation(ObservationType.LEARNING, "The merger is called Walrus")
        stage.store.observations.replace(secret, number, [told], VERSION)
    observe_pending(stage.store, silent)

    assert stage.run(private_projects=("/srv/secret",)).asked == 1
    assert "part 2" in str(stage.provider.calls)
    assert "Walrus" not in str(stage.provider.calls)

    stage.run(outdated=True, llm_model="claude-opus-5-5")
    assert "Walrus" in str(stage.provider.calls)


def test_budgets_are_checked_before_a_call(stage: Stage) -> None:
    """With too little left for the next call none is made, and the message names the budget."""
    stage.say("one", asked(1))

    result = stage.run(budget_day=0.000001)

    assert isinstance(result.stopped, BudgetExhausted)
    assert result.stopped.span == "day"
    assert (stage.provider.calls, result.cost, result.waiting) == ([], 0, 1)
