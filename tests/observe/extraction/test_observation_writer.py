"""Each observation is stored once, in its first wording, with all confirmations and a stable key."""

# pyright: reportPrivateUsage=false

from pathlib import Path

import pytest
from msgspec.structs import replace

from palaver.archiver.store import Repetition, StoredObservation
from palaver.archiver.store.observation_table import CANDIDATES, OPTED_OUT
from palaver.core.observation import Evidence, Observation, ObservationType
from palaver.observe import rules
from palaver.observe.extraction.observation_writer import fingerprint, keep, summarise
from palaver.observe.pipeline import observe_pending

from ...search.history import History, Said

RULE = "From now on use tabs in all templates of the shop."


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path)


def silent(_done: int, _total: int) -> None:
    pass


def preference(line: int, text: str = "Use tabs in templates", **values: object) -> Observation:
    return Observation(ObservationType.DECISION, text, evidence=(Evidence(line, line, "tabs"),), **values)  # type: ignore[arg-type]


def learn(
    history: History, exchange: int, *observations: Observation, extractor: str = rules.VERSION
) -> list[StoredObservation]:
    stored = history.store.exchanges.load([exchange])[exchange]
    with history.store.transaction():
        keep(history.store, stored, history.store.sessions.load(stored.session), observations, extractor)
    return history.store.observations.of_exchange(exchange)


def test_repeated_observation_confirms_the_first(history: History) -> None:
    """A preference stated in three sessions is stored once, with the lines of all later statements."""
    keys = [history.say(name, Said(RULE, "Done."), project="shop")[0] for name in ("one", "two", "three")]
    observe_pending(history.store, silent)

    first, second, third = (history.store.observations.of_exchange(key) for key in keys)
    (stored,) = first
    again = history.store.confirmations.of_observations([stored.key])[stored.key]
    assert (second, third) == ([], [])
    assert [(each.exchange, each.archived) for each in again] == [
        (keys[1], "test/two.jsonl"),
        (keys[2], "test/three.jsonl"),
    ]
    assert all(proof.quote in RULE for each in again for proof in each.evidence)


def test_another_value_is_stored_separately(history: History) -> None:
    """A preference with another value is a separate observation."""
    one = history.say("one", Said("From now on wait 30 seconds in the tests."), project="shop")[0]
    two = history.say("two", Said("From now on wait 60 seconds in the tests."), project="shop")[0]
    observe_pending(history.store, silent)

    assert len(history.store.observations.of_exchange(one)) == len(history.store.observations.of_exchange(two)) == 1


LONG = "From now on write the release notes in short sentences for people who run the shop and never saw the code of it"


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (2, 0, 1)])
def test_near_repetitions_confirm_the_first_wording(history: History, order: tuple[int, int, int]) -> None:
    """Observations that differ only in a few plain words are stored once, in the first wording."""
    friendly = LONG.replace("short", "short friendly")
    wordings = (LONG, friendly, friendly.replace("the code", "the source code"))
    keys = [history.say(str(number), Said(f"{wordings[number]}."), project="shop")[0] for number in order]
    observe_pending(history.store, silent)

    stored = [each for key in keys for each in history.store.observations.of_exchange(key)]
    assert [each.observation.facts for each in stored] == [(f"{wordings[order[0]]}.",)]
    assert len(history.store.confirmations.of_observations([stored[0].key])[stored[0].key]) == 2


def test_comparisons_are_bounded(history: History) -> None:
    """A new observation is compared with a limited number of known observations, those with the same title first."""
    names = [
        f"{first}{second}"
        for first in "bcdfghjklmnprst"
        for second in ("ark", "ill", "ond", "ump", "est", "oam", "ish", "ent")
    ]
    keys = [history.say(name, Said(f"From now on always greet the {name} first."), project="shop")[0] for name in names]
    observe_pending(history.store, silent)
    again = history.say("again", Said(f"From now on always greet the {names[-1]} first."), project="shop")[0]
    observe_pending(history.store, silent)

    last = history.store.observations.of_exchange(keys[-1])[0]
    name = fingerprint(last.observation, "shop")
    known = history.store.confirmations.candidates(name, last.observation.title, again)
    assert len(known) == CANDIDATES < len(names)
    assert known[0].key == last.key
    assert history.store.observations.of_exchange(again) == []


def test_re_extraction_changes_nothing(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """If newer rules extract the same observations, no key, confirmation or index entry changes."""
    history.say(
        "one",
        Said(RULE, "Done."),
        Said("Fix the header", "Fixed `header.py`.", writes=("/x/header.py",)),
        project="shop",
    )
    history.say("two", Said(RULE, "Done."), project="shop")
    observe_pending(history.store, silent)
    keys, fingerprint = history.store.items.all_keys(), history.store.changes.last()
    again = history.store.confirmations.of_observations(keys)
    monkeypatch.setattr(rules, "VERSION", "rules-next")

    assert observe_pending(history.store, silent) == 3
    assert (history.store.items.all_keys(), history.store.changes.last()) == (keys, fingerprint)
    assert history.store.confirmations.of_observations(keys) == again
    assert history.store.exchanges.count_unobserved("rules-next") == 0


def test_a_reworded_observation_keeps_its_key(history: History) -> None:
    """An observation that is extracted again under the same title keeps its key, and its index entry is updated."""
    key = history.say("one", Said(RULE))[0]
    (before,) = learn(history, key, preference(1))
    fingerprint = history.store.changes.last()
    (after,) = learn(history, key, preference(1, narrative="In all templates."))

    assert (after.key, after.observation.narrative) == (before.key, "In all templates.")
    assert history.store.changes.since(fingerprint) == [key, after.key]


@pytest.mark.parametrize(
    "now", [(), (preference(1, "Use blanks in templates"),), (preference(1, facts=("In mails",)),)]
)
def test_unconfirmed_exchanges_are_extracted_again(history: History, now: tuple[Observation, ...]) -> None:
    """When the first wording is deleted or changes, the exchanges that confirmed it are extracted again."""
    one, two = (history.say(name, Said(RULE), project="shop")[0] for name in ("one", "two"))
    learn(history, one, preference(1))
    assert learn(history, two, preference(1)) == []

    learn(history, one, *now)
    assert [stored.key for stored in history.store.exchanges.unobserved(rules.VERSION, 9)] == [two]
    assert history.store.confirmations.of_observations(history.store.items.all_keys()) == {}
    assert len(learn(history, two, preference(1))) == 1


@pytest.mark.parametrize("gone", ["forgotten", "reworded", "taken back"])
def test_model_confirmations_are_requested_again(history: History, gone: str) -> None:
    """When the first wording is deleted or changes, the model is asked again about the exchanges that confirmed it,
    except those that an earlier version excluded from extraction.
    """
    one, two, three = (history.say(name, Said(RULE), project="shop")[0] for name in ("one", "two", "three"))
    for key in (one, two, three):
        learn(history, key, preference(1), extractor="llm:model:1")
    assert history.store.observations.of_exchange(two) == []
    with history.store.transaction():
        history.store.observations.replace(three, 3, [], OPTED_OUT)

    if gone == "forgotten":
        with history.store.transaction():
            history.store.exchanges.delete([one])
    else:
        observations = [preference(1, facts=("In mails",))] if gone == "reworded" else []
        learn(history, one, *observations, extractor="llm:model:2")

    assert [stored.key for stored in history.store.exchanges.unobserved(rules.VERSION, 9)] == [two]


def grown(history: History, count: int) -> None:
    names = ("header", "footer", "cart", "invoice", "search")
    exchanges = [
        Said(f"Add a {name} to the page", f"Added the {name} to the page in `{name}.py`.", writes=(f"/shop/{name}.py",))
        for name in names
    ]
    history.say("one", *exchanges[:count], cwd="/shop")
    observe_pending(history.store, silent)


def test_summary_follows_the_session(history: History) -> None:
    """A session with a result has one summary, which keeps its key as the session grows."""
    grown(history, 1)
    first = history.store.summaries.of_session(1)
    grown(history, 5)
    last = history.store.summaries.of_session(1)

    assert first is not None
    assert last is not None
    assert first.key == last.key
    assert last.observation.facts == (
        "Asked: Add a header to the page",
        "Outcome: Added the header to the page in header.py",
        *(f"Outcome: Added the {name} to the page in {name}.py" for name in ("footer", "cart", "invoice")),
    )
    assert "/shop/search.py" in {f"/shop/{path}" for path in last.observation.files_modified}
    assert len(last.observation.evidence) == len(last.observation.facts)


def test_summary_contains_the_request(history: History) -> None:
    """The summary quotes the request in the user's words. A plan without approval does not count as completed."""
    history.say(
        "one",
        Said("this should be dimmer in the dark", "Done. The footer now uses `dim`.", writes=("/shop/footer.py",)),
        Said("Add a cart", writes=("/shop/cart.py",)),
        Said("Add a basket", writes=("/shop/basket.py",)),
        cwd="/shop",
    )
    observe_pending(history.store, silent)
    summary = history.store.summaries.of_session(1)

    assert summary is not None
    assert summary.observation.facts[0] == "Asked: this should be dimmer in the dark"


def test_summary_is_deleted_with_its_parts(history: History) -> None:
    """Deleting an observation deletes the summary that contains it, and the change log records both.

    The next summary states the other results.
    """
    grown(history, 2)
    summary = history.store.summaries.of_session(1)
    assert summary is not None
    fingerprint = history.store.changes.last()
    with history.store.transaction():
        history.store.observations.replace(2, 1, [], rules.VERSION)

    assert history.store.summaries.of_session(1) is None
    assert summary.key in history.store.changes.since(fingerprint)
    with history.store.transaction():
        summarise(history.store, [1])
    renewed = history.store.summaries.of_session(1)
    assert renewed is not None
    assert not any("footer" in fact for fact in renewed.observation.facts)


def test_a_corrected_observation_is_linked(history: History) -> None:
    """A result that the user corrects is linked to the next one, and is not in the summary."""
    keys = history.say(
        "one",
        Said("Add a footer", "Added the footer to the header bar.", writes=("/shop/page.py",)),
        Said("no, below the page", "Moved the footer below the page.", writes=("/shop/page.py",)),
        Said("Add a search box", "Added a search box.", writes=("/shop/menu.py",)),
        cwd="/shop",
    )
    observe_pending(history.store, silent)
    [old], [new], _ = (history.store.observations.of_exchange(key)[:1] for key in keys)
    summary = history.store.summaries.of_session(1)

    assert history.store.replacements.of_observations([old.key, new.key]) == {old.key: (old.key, new.key, 4)}
    assert summary is not None
    assert not any("header bar" in fact for fact in summary.observation.facts)

    learn(history, keys[1])
    assert history.store.replacements.of_observations([old.key]) == {}


OPEN = "The button is drawn. Next step: the WalrusCanary still needs a test of its own."


def summed_up(history: History, *exchanges: Said) -> StoredObservation:
    """Return the summary of three exchanges with observations followed by these exchanges."""
    history.say(
        "one", *(Said(f"Add a {name}", writes=(f"/{name}.py",)) for name in ("header", "footer", "cart")), *exchanges
    )
    observe_pending(history.store, silent)
    summary = history.store.summaries.of_session(1)
    assert summary is not None
    assert any("WalrusCanary" in fact for fact in summary.observation.facts)
    return summary


def test_summary_is_deleted_with_a_quoted_exchange(history: History) -> None:
    """A summary that quotes an open item of an exchange is deleted with the exchange."""
    summary = summed_up(history, Said("Hm.", OPEN))
    fingerprint, last = history.store.changes.last(), history.store.items.all_keys()[3]
    assert history.store.observations.of_exchange(last) == []
    with history.store.transaction():
        history.store.exchanges.delete([last])

    assert history.store.summaries.of_session(1) is None
    assert {summary.key, summary.exchange} <= set(history.store.changes.since(fingerprint))
    assert observe_pending(history.store, silent) == 0
    anew = history.store.summaries.of_session(1)
    assert anew is not None
    assert not any("WalrusCanary" in fact for fact in anew.observation.facts)


def test_summaries_follow_exchanges_between_sessions(history: History) -> None:
    """When a session takes over exchanges of a fork, both summaries are renewed without extracting again."""
    files = ("header", "footer", "cart", "menu", "form", "table")
    added = [Said(f"Add a {name}", f"Added the {name} in `{name}.py`.", writes=(f"/{name}.py",)) for name in files]
    history.say("fork", *added)
    history.say("origin", Said("Add a page", writes=("/page.py",)))
    observe_pending(history.store, silent)
    store, stored = history.store, history.store.exchanges.load(history.store.items.all_keys())
    fork = {each.exchange.ordinal: each for each in stored.values() if each.session == 1}
    with store.transaction():
        store._database.run("UPDATE exchange SET observed = 'llm:' || observed")
        taken = [replace(fork[number].exchange, ordinal=number + 1) for number in range(3)]
        places = [Repetition(fork[0].source, each.turns[0].line, each.turns[0].line) for each in taken]
        store.exchanges.replace(2, 2, 1, taken, places)

    assert observe_pending(store, silent) == 0
    for session, count in ((1, 3), (2, 3)):
        summary = store.summaries.of_session(session)
        assert summary is not None
        assert len([fact for fact in summary.observation.facts if fact.startswith("Outcome: ")]) == count


def test_summary_is_renewed_when_an_exchange_shrinks(history: History) -> None:
    """An exchange that lost text when it was parsed again is no longer quoted."""
    exchanges = [Said(f"Add a {name}", writes=(f"/{name}.py",)) for name in ("header", "footer", "cart")]
    summed_up(history, Said("Hm.", OPEN))
    history.say("one", *exchanges, Said("Hm.", "The button is drawn."))

    assert history.store.summaries.of_session(1) is None


def test_rejected_facts_are_counted(history: History) -> None:
    """The number of rejected facts is stored with the exchange and counted once."""
    key = history.say("one", Said(RULE))[0]
    for _ in range(2):
        with history.store.transaction():
            history.store.observations.replace(key, 1, (), rules.VERSION, refused=2)

    assert history.store.observations.count_refused() == 2


def test_commit_confirms_the_work_that_it_records(history: History) -> None:
    """An exchange that only commits earlier work has no observation. The observation of the work is confirmed."""
    said = Said("Add totals to the cart", "Done."), Said("commit", writes=("CHANGELOG.md",))
    first, second = history.say("one", *said, project="shop")
    (work,) = learn(history, first, preference(1, "Totals with tax in the cart", files_modified=("cart.py",)))
    stored = history.store.exchanges.load([second])[second]
    call = stored.exchange.turns[1]._replace(tool="Bash", text='Bash: git commit -m "Add totals with tax to the cart"')
    committed = replace(stored, exchange=replace(stored.exchange, turns=(stored.exchange.turns[0], call)))
    with history.store.transaction():
        found = preference(call.line, "Add totals with tax to the cart")
        keep(history.store, committed, history.store.sessions.load(stored.session), [found], rules.VERSION)

    assert history.store.observations.of_exchange(second) == []
    assert [each.exchange for each in history.store.confirmations.of_observations([work.key])[work.key]] == [second]
