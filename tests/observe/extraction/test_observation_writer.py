"""Each observation is stored once, in its first wording, with all confirmations and a stable key."""

# pyright: reportPrivateUsage=false

from pathlib import Path

import pytest
from msgspec.structs import replace

from palaver.archiver.store import StoredObservation
from palaver.archiver.store.confirmation_table import CANDIDATES
from palaver.archiver.store.observation_table import OPTED_OUT
from palaver.archiver.store.repetition_table import Repetition
from palaver.core.observation import Evidence, Observation, ObservationType
from palaver.observe import rules
from palaver.observe.extraction.observation_writer import keep, summarise
from palaver.observe.extraction.repetition import fingerprint
from palaver.observe.observe_pending import observe_pending

from ...search.history import History, Said

RULE = "From now on use tabs in all templates of the shop."


@pytest.fixture
def told(tmp_path: Path) -> History:
    return History(tmp_path)


def silent(_done: int, _total: int) -> None:
    pass


def preference(line: int, text: str = "Use tabs in templates", **values: object) -> Observation:
    return Observation(ObservationType.DECISION, text, evidence=(Evidence(line, line, "tabs"),), **values)  # type: ignore[arg-type]


def learn(
    told: History, exchange: int, *observations: Observation, extractor: str = rules.VERSION
) -> list[StoredObservation]:
    stored = told.store.exchanges.load([exchange])[exchange]
    with told.store.transaction():
        keep(told.store, stored, told.store.sessions.load(stored.session), observations, extractor)
    return told.store.observations.of_exchange(exchange)


def test_repeated_observation_confirms_the_first(told: History) -> None:
    """A preference stated in three sessions is stored once, with the lines of all later statements."""
    keys = [told.say(name, Said(RULE, "Done."), project="shop")[0] for name in ("one", "two", "three")]
    observe_pending(told.store, silent)

    first, second, third = (told.store.observations.of_exchange(key) for key in keys)
    (held,) = first
    again = told.store.confirmations.of_observations([held.key])[held.key]
    assert (second, third) == ([], [])
    assert [(each.exchange, each.archived) for each in again] == [
        (keys[1], "test/two.jsonl"),
        (keys[2], "test/three.jsonl"),
    ]
    assert all(proof.quote in RULE for each in again for proof in each.evidence)


def test_another_value_is_stored_separately(told: History) -> None:
    """A preference with another value is a separate observation."""
    one = told.say("one", Said("From now on wait 30 seconds in the tests."), project="shop")[0]
    two = told.say("two", Said("From now on wait 60 seconds in the tests."), project="shop")[0]
    observe_pending(told.store, silent)

    assert len(told.store.observations.of_exchange(one)) == len(told.store.observations.of_exchange(two)) == 1


LONG = "From now on write the release notes in short sentences for people who run the shop and never saw the code of it"


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (2, 0, 1)])
def test_near_repetitions_confirm_the_first_wording(told: History, order: tuple[int, int, int]) -> None:
    """Observations that differ only in a few plain words are stored once, in the first wording."""
    friendly = LONG.replace("short", "short friendly")
    wordings = (LONG, friendly, friendly.replace("the code", "the source code"))
    keys = [told.say(str(number), Said(f"{wordings[number]}."), project="shop")[0] for number in order]
    observe_pending(told.store, silent)

    held = [each for key in keys for each in told.store.observations.of_exchange(key)]
    assert [each.observation.facts for each in held] == [(f"{wordings[order[0]]}.",)]
    assert len(told.store.confirmations.of_observations([held[0].key])[held[0].key]) == 2


def test_comparisons_are_bounded(told: History) -> None:
    """A new observation is compared with a limited number of known observations, those with the same title first."""
    names = [
        f"{first}{second}"
        for first in "bcdfghjklmnprst"
        for second in ("ark", "ill", "ond", "ump", "est", "oam", "ish", "ent")
    ]
    keys = [told.say(name, Said(f"From now on always greet the {name} first."), project="shop")[0] for name in names]
    observe_pending(told.store, silent)
    again = told.say("again", Said(f"From now on always greet the {names[-1]} first."), project="shop")[0]
    observe_pending(told.store, silent)

    last = told.store.observations.of_exchange(keys[-1])[0]
    name = fingerprint(last.observation, "shop")
    known = told.store.confirmations.candidates(name, last.observation.title, again)
    assert len(known) == CANDIDATES < len(names)
    assert known[0].key == last.key
    assert told.store.observations.of_exchange(again) == []


def test_re_extraction_changes_nothing(told: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """If newer rules extract the same observations, no key, confirmation or index entry changes."""
    told.say(
        "one",
        Said(RULE, "Done."),
        Said("Fix the header", "Fixed `header.py`.", writes=("/x/header.py",)),
        project="shop",
    )
    told.say("two", Said(RULE, "Done."), project="shop")
    observe_pending(told.store, silent)
    keys, fingerprint = told.store.items.all_keys(), told.store.changes.last()
    again = told.store.confirmations.of_observations(keys)
    monkeypatch.setattr(rules, "VERSION", "rules-next")

    assert observe_pending(told.store, silent) == 3
    assert (told.store.items.all_keys(), told.store.changes.last()) == (keys, fingerprint)
    assert told.store.confirmations.of_observations(keys) == again
    assert told.store.exchanges.count_unobserved("rules-next") == 0


def test_a_reworded_observation_keeps_its_key(told: History) -> None:
    """An observation that is extracted again under the same title keeps its key, and its index entry is updated."""
    key = told.say("one", Said(RULE))[0]
    (before,) = learn(told, key, preference(1))
    fingerprint = told.store.changes.last()
    (after,) = learn(told, key, preference(1, narrative="In all templates."))

    assert (after.key, after.observation.narrative) == (before.key, "In all templates.")
    assert told.store.changes.since(fingerprint) == [key, after.key]


@pytest.mark.parametrize(
    "now", [(), (preference(1, "Use blanks in templates"),), (preference(1, facts=("In mails",)),)]
)
def test_unconfirmed_exchanges_are_extracted_again(told: History, now: tuple[Observation, ...]) -> None:
    """When the first wording is deleted or changes, the exchanges that confirmed it are extracted again."""
    one, two = (told.say(name, Said(RULE), project="shop")[0] for name in ("one", "two"))
    learn(told, one, preference(1))
    assert learn(told, two, preference(1)) == []

    learn(told, one, *now)
    assert [stored.key for stored in told.store.exchanges.unobserved(rules.VERSION, 9)] == [two]
    assert told.store.confirmations.of_observations(told.store.items.all_keys()) == {}
    assert len(learn(told, two, preference(1))) == 1


@pytest.mark.parametrize("gone", ["forgotten", "reworded", "taken back"])
def test_model_confirmations_are_requested_again(told: History, gone: str) -> None:
    """When the first wording is deleted or changes, the model is asked again about the exchanges that confirmed it,
    except those that an earlier version excluded from extraction.
    """
    one, two, three = (told.say(name, Said(RULE), project="shop")[0] for name in ("one", "two", "three"))
    for key in (one, two, three):
        learn(told, key, preference(1), extractor="llm:model:1")
    assert told.store.observations.of_exchange(two) == []
    with told.store.transaction():
        told.store.jobs.put(two, "digest")
        [job] = told.store.jobs.claim(0, 1, 9, None)
        told.store.jobs.finish(job, "learned", 0)
        told.store.observations.replace(three, 3, [], OPTED_OUT)

    if gone == "forgotten":
        with told.store.transaction():
            told.store.exchanges.delete([one])
    else:
        said = [preference(1, facts=("In mails",))] if gone == "reworded" else []
        learn(told, one, *said, extractor="llm:model:2")

    assert [stored.key for stored in told.store.exchanges.unobserved(rules.VERSION, 9)] == [two]
    assert told.store.jobs.states() == {}


def grown(told: History, count: int) -> None:
    names = ("header", "footer", "cart", "invoice", "search")
    said = [Said(f"Add a {name} to the page", f"Added `{name}.py`.", writes=(f"/shop/{name}.py",)) for name in names]
    told.say("one", *said[:count], cwd="/shop")
    observe_pending(told.store, silent)


def test_summary_follows_the_session(told: History) -> None:
    """A session with three or more observations has one summary, which keeps its key as the session grows."""
    grown(told, 2)
    assert told.store.summaries.of_session(1) is None
    grown(told, 3)
    first = told.store.summaries.of_session(1)
    grown(told, 5)
    last = told.store.summaries.of_session(1)

    assert first is not None
    assert last is not None
    assert first.key == last.key
    assert last.observation.facts == (
        "Request: Add a header to the page",
        *(f"Completed: Add a {name} to the page" for name in ("footer", "cart", "invoice", "search")),
    )
    assert "/shop/search.py" in {f"/shop/{path}" for path in last.observation.files_modified}
    assert len(last.observation.evidence) == len(last.observation.facts)


def test_summary_contains_the_request(told: History) -> None:
    """The summary quotes the request in the user's words; a plan without approval does not count as completed."""
    told.say(
        "one",
        Said("this should be dimmer in the dark", "Done. The footer now uses `dim`.", writes=("/shop/footer.py",)),
        Said("Add a cart", writes=("/shop/cart.py",)),
        Said("Add a basket", writes=("/shop/basket.py",)),
        cwd="/shop",
    )
    observe_pending(told.store, silent)
    summary = told.store.summaries.of_session(1)

    assert summary is not None
    assert summary.observation.facts[0] == "Request: This should be dimmer in the dark"


def test_summary_is_deleted_with_its_parts(told: History) -> None:
    """Deleting an observation deletes the summary that contains it, and the change log records both."""
    grown(told, 3)
    summary = told.store.summaries.of_session(1)
    assert summary is not None
    fingerprint = told.store.changes.last()
    with told.store.transaction():
        told.store.observations.replace(2, 1, [], rules.VERSION)

    assert told.store.summaries.of_session(1) is None
    assert summary.key in told.store.changes.since(fingerprint)
    with told.store.transaction():
        summarise(told.store, [1])
    assert told.store.summaries.of_session(1) is None


OPEN = "The button is drawn. Next step: the WalrusCanary still needs a test of its own."


def summed_up(told: History, *said: Said) -> StoredObservation:
    """Return the summary of three exchanges with observations followed by these exchanges."""
    told.say("one", *(Said(f"Add a {name}", writes=(f"/{name}.py",)) for name in ("header", "footer", "cart")), *said)
    observe_pending(told.store, silent)
    summary = told.store.summaries.of_session(1)
    assert summary is not None
    assert any("WalrusCanary" in fact for fact in summary.observation.facts)
    return summary


def test_summary_is_deleted_with_a_quoted_exchange(told: History) -> None:
    """A summary that quotes an open item of an exchange is deleted with the exchange."""
    summary = summed_up(told, Said("Hm.", OPEN))
    fingerprint, last = told.store.changes.last(), told.store.items.all_keys()[3]
    assert told.store.observations.of_exchange(last) == []
    with told.store.transaction():
        told.store.exchanges.delete([last])

    assert told.store.summaries.of_session(1) is None
    assert {summary.key, summary.exchange} <= set(told.store.changes.since(fingerprint))
    assert observe_pending(told.store, silent) == 0
    anew = told.store.summaries.of_session(1)
    assert anew is not None
    assert not any("WalrusCanary" in fact for fact in anew.observation.facts)


def test_summaries_follow_exchanges_between_sessions(told: History) -> None:
    """When a session takes over exchanges of a fork, both summaries are renewed without extracting again."""
    files = ("header", "footer", "cart", "menu", "form", "table")
    told.say("fork", *(Said(f"Add a {name}", writes=(f"/{name}.py",)) for name in files))
    told.say("origin", Said("Add a page", writes=("/page.py",)))
    observe_pending(told.store, silent)
    store, stored = told.store, told.store.exchanges.load(told.store.items.all_keys())
    fork = {each.exchange.ordinal: each for each in stored.values() if each.session == 1}
    with store.transaction():
        store._database.run("UPDATE exchange SET observed = 'llm:' || observed")
        taken = [replace(fork[number].exchange, ordinal=number + 1) for number in range(3)]
        places = [Repetition(fork[0].source, each.turns[0].line, each.turns[0].line) for each in taken]
        store.exchanges.replace(2, 2, 1, taken, places)

    assert store.summaries.of_session(1) is None
    assert observe_pending(store, silent) == 0
    for session, count in ((1, 3), (2, 4)):
        summary = store.summaries.of_session(session)
        assert summary is not None
        assert summary.observation.subtitle.startswith(f"Summary of {count} observations")


def test_summary_is_renewed_when_an_exchange_shrinks(told: History) -> None:
    """An exchange that lost text when it was parsed again is no longer quoted."""
    said = [Said(f"Add a {name}", writes=(f"/{name}.py",)) for name in ("header", "footer", "cart")]
    summed_up(told, Said("Hm.", OPEN))
    told.say("one", *said, Said("Hm.", "The button is drawn."))

    assert told.store.summaries.of_session(1) is None


def test_rejected_facts_are_counted(told: History) -> None:
    """The number of rejected facts is stored with the exchange and counted once."""
    key = told.say("one", Said(RULE))[0]
    for _ in range(2):
        with told.store.transaction():
            told.store.observations.replace(key, 1, (), rules.VERSION, refused=2)

    assert told.store.observations.count_refused() == 2
