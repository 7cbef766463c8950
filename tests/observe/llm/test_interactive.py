"""Each kind of provider reply is handled, here to requests about single exchanges."""

import json

import pytest
from msgspec.structs import replace

from palaver.core.conversation import Origin, Session
from palaver.core.home import OWN_PROMPT_MARK
from palaver.core.observation import Observation, ObservationType
from palaver.core.runtime import silent
from palaver.observe.llm.provider import BudgetExhausted, ModelBusy, ModelRefused
from palaver.observe.pipeline import observe_pending
from palaver.observe.rules import VERSION

from ...search.history import Said
from .conftest import ANSWER, PROMPTS, START, Stage, changing_exchange
from .server import Sent, failing, honest, learned, message, observation, passages


def test_verified_reply_replaces_the_rules(stage: Stage) -> None:
    """A verified reply replaces the rule-based observations. Palaver itself adds files, date and evidence."""
    [key] = stage.say("one", changing_exchange(1))
    assert stage.extractors() == [VERSION]

    result = stage.run(exchanges=True)

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
    stage.run(exchanges=True)
    assert stage.run(exchanges=True).asked == 0
    assert len(stage.provider.calls) == 1
    assert stage.store.exchanges.count_unobserved("rules-next") == 0

    stage.say(
        "one",
        changing_exchange(1, "The loader read the folder before its name was known, so `loader.py` starts later."),
    )

    assert stage.extractors() == [VERSION]
    assert stage.run(exchanges=True).asked == 1
    assert stage.extractors() == ["llm"]


def test_requests_are_labelled_cached_and_constrained(stage: Stage) -> None:
    """A call is stateless, carries Palaver's label, caches the system prompt and contains the reply schema."""
    stage.say("one", changing_exchange(1))
    stage.run(exchanges=True)

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
    stage.run(exchanges=True)

    by_line = {passages(call)[0][0]: call["messages"][0]["content"] for call in stage.provider.calls}
    assert "already stored for this session" not in by_line[1]
    assert "already stored for this session" in by_line[4]
    assert stage.run(exchanges=True).asked == 0


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
    """An invalid reply is charged and changes no observation. The request is sent by three runs, then no more."""
    stage.say("one", changing_exchange(1))
    stage.provider.default = lambda _: Sent(body=reply)

    for _ in range(3):
        result = stage.run(exchanges=True)
        assert (result.asked, result.failed, result.given_up, result.stopped) == (1, 1, 0, None)
        assert result.problem

    result = stage.run(exchanges=True)
    assert (result.asked, result.failed, result.given_up) == (0, 0, 1)
    assert stage.extractors() == [VERSION]
    [row] = stage.store.ledger.by_model()
    assert (row.calls, row.unanswered, row.usage.tokens_out) == (3, 0, 600)


def test_facts_without_quotes_are_rejected(stage: Stage) -> None:
    """Facts without a valid quote are rejected, and a quote on a wrong line moves to the only line that contains it."""
    [key] = stage.say("one", changing_exchange(1))
    facts = observation(
        ("Made up.", 3, "The moon is made of cheese"),
        ("True, on a wrong line.", 1, "emptied on every start"),
        ("Too short a proof.", 3, "the"),
    )
    stage.provider.default = lambda _: Sent(body=message(learned(facts)))

    result = stage.run(exchanges=True)

    [found] = stage.store.observations.of_exchange(key)
    assert found.observation.facts == ("True, on a wrong line.",)
    assert [(proof.start_line, proof.quote) for proof in found.observation.evidence] == [(3, "emptied on every start")]
    assert result.refused == 2


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

    result = stage.run(exchanges=True)

    [found] = stage.store.observations.of_exchange(key)
    assert found.observation.facts == ("The loader in /code/app/1.py emptied it.",)
    assert found.observation.narrative == "The cache was cold. The tests pass."
    assert result.refused == 3


def test_title_with_an_invented_name_is_replaced(stage: Stage) -> None:
    """An observation whose title contains an invented name keeps its facts. The first one becomes its title."""
    [key] = stage.say("one", changing_exchange(1))
    fact = ("The cache was emptied on every start.", 3, "emptied on every start")
    replies = observation(fact, title="The cache moved to Redis"), observation(fact, title="The cache stays warm")
    stage.provider.default = lambda _: Sent(body=message(learned(*replies)))

    result = stage.run(exchanges=True)

    stored = stage.store.observations.of_exchange(key)
    titles = {each.observation.title for each in stored if not each.summary}
    assert titles == {"The cache was emptied on every start", "The cache stays warm"}
    assert (result.observations, result.refused) == (2, 1)


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

    stage.run(exchanges=True)

    assert [each.observation.origin for each in stage.store.observations.of_exchange(key)] == [origin]


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, "authentication_error"), (402, "billing_error"), (403, "permission_error"), (404, "not_found_error")],
)
def test_refused_key_ends_the_run(stage: Stage, status: int, kind: str) -> None:
    """Authentication and quota errors end the run after one call, cost nothing, and use no attempt."""
    stage.say("one", changing_exchange(1), changing_exchange(2))
    stage.provider.default = lambda _: failing(status, kind)

    result = stage.run(exchanges=True)

    assert isinstance(result.stopped, ModelRefused)
    assert result.stopped.hint
    assert len(stage.provider.calls) == 1
    assert (result.cost, result.waiting, result.failed) == (0, 2, 0)
    stage.provider.default = honest
    assert stage.run(exchanges=True).learned == 2


def test_retry_after_is_respected(stage: Stage) -> None:
    """After status 429 the next call waits for the time that the provider requested."""
    stage.say("one", changing_exchange(1), changing_exchange(2))
    stage.provider.script = [failing(429, "rate_limit_error", retry_after="7")]

    result = stage.run(exchanges=True)

    assert stage.slept == [7.0]
    assert (result.learned, result.failed, result.waiting, result.stopped) == (1, 1, 0, None)
    stage.later(3_600)
    assert stage.run(exchanges=True).learned == 1


def test_a_long_limit_ends_the_run(stage: Stage) -> None:
    """A requested wait of one hour ends the run."""
    stage.say("one", changing_exchange(1), changing_exchange(2))
    stage.provider.script = [failing(429, "rate_limit_error", retry_after="3600")]

    result = stage.run(exchanges=True)

    assert isinstance(result.stopped, ModelBusy)
    assert (stage.slept, len(stage.provider.calls), result.cost) == ([], 1, 0)


@pytest.mark.parametrize("sent", [failing(529, "overloaded_error"), failing(500, "api_error")], ids=["529", "500"])
def test_overload_ends_the_run(stage: Stage, sent: Sent) -> None:
    """Three consecutive failures end the run, cost nothing, and are retried later."""
    stage.say("one", *(changing_exchange(number) for number in range(5, 0, -1)))
    stage.provider.default = lambda _: sent

    result = stage.run(exchanges=True)

    assert isinstance(result.stopped, ModelBusy)
    assert (len(stage.provider.calls), result.failed, result.cost, result.waiting) == (3, 3, 0, 3)
    assert stage.slept == [2.0, 4.0]


def test_timeout_counts_as_charged(stage: Stage) -> None:
    """A call that times out keeps its reservation, since the provider may have charged it."""
    stage.say("one", changing_exchange(1))
    stage.seconds = 0.2
    stage.provider.script = [Sent(body=message("{}"), delay=1.0)]

    result = stage.run(exchanges=True)

    assert (result.failed, result.problem) == (1, "the model did not answer in time")
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

    assert stage.run(exchanges=True).failed == 1
    [row] = stage.store.ledger.by_model()
    assert row.unanswered == 1
    stage.later(3_600)
    assert stage.run(exchanges=True).learned == 1


def test_an_unreachable_provider_costs_nothing(stage: Stage) -> None:
    """A refused connection costs nothing, since the provider cannot have charged it."""
    stage.say("one", changing_exchange(1))
    stage.provider.url = "http://127.0.0.1:9"

    result = stage.run(exchanges=True)

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
    result = stage.run(exchanges=True)

    assert (result.asked, result.learned, result.cost > 0) == (1, 0, True)
    assert "llm" not in stage.extractors()


def test_private_projects_are_never_sent(stage: Stage) -> None:
    """Projects that are private by name or folder are not sent, even if they were queued before."""
    stage.history.say("one", changing_exchange(1), project="secret")
    stage.history.say("two", changing_exchange(2), project="open", cwd="/srv/secret/deep")
    stage.say("three", changing_exchange(3))
    stage.provider.script = [failing(429, "rate_limit_error", retry_after="3600")]
    stage.run(exchanges=True)
    stage.later(7_200)

    private = ("secret", "/srv/secret")
    assert stage.run(exchanges=True, private_projects=private).learned == 1
    estimate = stage.extractor(exchanges=True, private_projects=private).estimate()
    assert (estimate.private, estimate.calls) == (2, 0)
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

    assert stage.run(exchanges=True, private_projects=("/srv/secret",)).asked == 1
    assert "part 2" in str(stage.provider.calls)
    assert "Walrus" not in str(stage.provider.calls)

    with stage.store.transaction():
        stage.store.observations.replace(open_, number, [], VERSION)
        stage.store.observations.replace(secret, number, [earlier], f"llm:m:{PROMPTS('observe')[0]}")
    stage.run(exchanges=True)
    assert "Walrus" in str(stage.provider.calls)


def test_budgets_are_checked_before_a_call(stage: Stage) -> None:
    """No call is made if a budget is too small for it, and the message names that budget."""
    stage.say("one", changing_exchange(1))

    result = stage.run(exchanges=True, budget_day=0.000001)

    assert isinstance(result.stopped, BudgetExhausted)
    assert result.stopped.setting == "budget_day"
    assert (stage.provider.calls, result.cost, result.waiting) == ([], 0, 1)


def test_nothing_removes_only_what_is_not_about_changed_files(stage: Stage) -> None:
    """The verdict `nothing` keeps what rules found in an exchange that changed files, and is not asked for again."""
    answer = "The retry limit of the uploader is 5 by design, because the gateway closes a line after 6 attempts. "
    asked = Said("Why does the uploader give up after 5 attempts? Please explain it.", answer * 2, at=START - 90_000)
    stage.say("one", changing_exchange(1), asked)
    before = len(stage.extractors())
    stage.provider.default = lambda _: Sent(body=message(learned()))

    result = stage.run(exchanges=True)

    assert (result.nothing, result.failed, result.observations) == (2, 0, 0)
    kept = [key for key in stage.store.items.all_keys() if stage.store.observations.of_exchange(key)]
    assert [bool(stage.store.exchanges.load([key])[key].exchange.writes) for key in kept] == [True]
    assert before >= len(stage.extractors()) > 0
    assert stage.run(exchanges=True).asked == 0


def test_repeated_refusals_end_the_run(stage: Stage) -> None:
    """Three refusals in a row end the run. The refused requests come last in the next run and cannot block it."""
    stage.say("one", *(changing_exchange(number) for number in range(8, 0, -1)))
    stage.provider.script = [honest, honest]
    stage.provider.default = lambda _: failing(400, "invalid_request_error")

    result = stage.run(exchanges=True)

    assert isinstance(result.stopped, ModelRefused)
    assert "3 requests in a row were refused" in str(result.stopped)
    assert (result.learned, result.failed, result.waiting, len(stage.provider.calls)) == (2, 3, 4, 5)
    refused = [passages(call) for call in stage.provider.calls[2:]]
    stage.provider.default = honest
    assert stage.run(exchanges=True).learned == 6
    assert [passages(call) for call in stage.provider.calls[-3:]] == refused


def test_repeated_invalid_replies_end_the_run(stage: Stage) -> None:
    """Ten invalid replies in a row end the run with advice, because the model is too small."""
    stage.say("one", *(changing_exchange(number) for number in range(12, 0, -1)))
    stage.provider.default = lambda _: Sent(body=message("I would rather talk about the weather."))

    result = stage.run(exchanges=True)

    assert "10 replies in a row were not valid" in str(result.stopped)
    assert (result.asked, result.failed) == (10, 10)


def test_a_reply_about_an_exchange_sees_the_answer_before_the_prompt(stage: Stage) -> None:
    """The request contains the answer that the prompt follows, and paths relative to the folder of the session."""
    approved = Said(
        "Yes, do that.", "I renamed `/code/app/1.py` to `/code/app/loader.py`, as the plan said. " * 3, at=START - 1_000
    )
    first = changing_exchange(1, "Shall I rename the loader?")
    stage.say("one", first, approved)

    stage.run(exchanges=True)

    texts = [call["messages"][0]["content"] for call in stage.provider.calls]
    [second] = [text for text in texts if "Yes, do that." in text]
    assert "<before-" in second
    assert "Shall I rename the loader?" in second.partition("<exchange-")[0]
    [only] = [text for text in texts if text is not second]
    assert "<before-" not in only
