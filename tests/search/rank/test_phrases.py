"""Tests of quoted phrases: every hit contains each phrase."""

import gc
import random
import weakref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from palaver.core.memory import Memory
from palaver.core.query import Filters, Mode, Query
from palaver.core.results import Correction
from palaver.search.index import indexed_texts
from palaver.search.index.indexed_texts import OVERLAP, WINDOW, pieces
from palaver.search.index.snapshot import Snapshot
from palaver.search.present.hits import Hits
from palaver.search.query.query_analysis import AnalyzedQuery
from palaver.search.query.tokenizer import composed, expand, literal_pattern, stems
from palaver.search.rank.engine import ExactPhrases

from ..fake_embedder import FakeEmbedder
from ..history import NO_FILTERS, History, Said, learned

WORDS = ("kettle", "brass", "steam", "pullRequest", "soup_pan", "whistles", "whistle")


@pytest.fixture(scope="module")
def kitchen(tmp_path_factory: pytest.TempPathFactory) -> History:
    """Archive of many short conversations. Half of them are published and embedded."""
    chance, history = random.Random(3), History(tmp_path_factory.mktemp("kitchen"), FakeEmbedder())
    for session in range(12):
        exchanges = (Said(" ".join(chance.choices(WORDS, k=4)), " ".join(chance.choices(WORDS, k=6))) for _ in range(2))
        history.learn(history.say(f"s{session}", *exchanges)[0], learned(" ".join(chance.choices(WORDS, k=5))))
        if session == 6:
            history.embed()
            history.publish()
    return history


def having(history: History, phrase: list[str]) -> set[int]:
    """Return the events with the phrase in a text, or else the events with other inflections of the phrase."""
    wanted, exact = [term for word in phrase for term in stems(word)], literal_pattern(" ".join(phrase))
    formed, keys = set[int](), history.store.items.all_keys()
    for entry in indexed_texts.entries(history.store, keys):
        terms = stems(expand(entry.body))
        if any(terms[place : place + len(wanted)] == wanted for place in range(len(terms))):
            formed.add(entry.event)
    exchanges = history.store.exchanges.load(keys).values()
    found = {each.key for each in exchanges if exact.search(" ".join(turn.text for turn in each.exchange.turns))}
    seen = history.store.observations.load(keys).values()
    return found | {each.exchange for each in seen if exact.search(each.observation.title)} or formed


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([*WORDS, "nowhere", "pull", "request"]), min_size=1, max_size=3), st.data())
def test_every_hit_contains_the_phrase(kitchen: History, phrase: list[str], data: st.DataObject) -> None:
    """Exactly the events that contain the phrase are found, in every mode and with any other words. Other inflections
    are found only if no event contains the phrase literally.
    """
    mode, beside = data.draw(st.sampled_from(Mode)), data.draw(st.sampled_from(["", "kettle", "nowhere", "stea*"]))

    found = kitchen.engine().find(f'"{" ".join(phrase)}" {beside}', mode, NO_FILTERS).events

    assert {event.key for event in found} == having(kitchen, phrase) & embedded(kitchen, mode)


def embedded(history: History, mode: Mode) -> set[int]:
    """Return the events that a mode can find. Vector search finds only embedded events."""
    items = history.store.items.load(history.store.items.all_keys())
    every = {item.exchange for item in items.values()}
    if mode is not Mode.VECTOR:
        return every
    known = history.store.vectors.of_items(history.embedder.name, sorted(items))
    return {items[vector.item].exchange for vector in known}


@pytest.fixture
def archive(history: History) -> History:
    """Archive of two conversations with the same words, which are adjacent in only one of them."""
    history.say("tea", Said("the brass kettle", "It whistles."))
    history.say("soup", Said("a kettle of soup, and a pan of brass"))
    history.embed()
    history.publish()
    return history


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(
    ("asked", "missed"),
    [
        ('"kettle brass"', ("kettle brass",)),
        ('"brass kettle" to "flurbo"', ("flurbo",)),
        ('"brass kettle" "pan of brass"', ("brass kettle", "pan of brass")),
        ("“kettle brass” whistles", ("kettle brass",)),
    ],
)
def test_unknown_phrases_are_reported(archive: History, mode: Mode, asked: str, missed: tuple[str, ...]) -> None:
    """Without hits, the explanation has the phrases without a match, and hits for the unquoted words."""
    found = archive.search(asked, mode=mode)

    assert not found.hits
    assert found.explanation is not None
    assert found.explanation.phrases == missed
    assert {hit.session_id for hit in found.explanation.weak} == {"tea", "soup"}


def test_weak_hits_contain_the_phrase(archive: History) -> None:
    """A search that includes weak hits returns only events that contain the phrase."""
    found = Hits(archive.store, archive.engine()).search(Query(('"kettle brass"',), weak=True))

    assert not found.hits
    assert found.explanation is not None
    assert found.explanation.phrases == ("kettle brass",)


def test_several_concepts_keep_their_phrases(archive: History) -> None:
    """With several concepts, each phrase must occur in the conversation, and only missing phrases are reported."""
    assert {hit.session_id for hit in archive.search('"brass kettle"', "whistles").hits} == {"tea"}
    explanation = archive.search('"brass kettle"', '"kettle whistles loudly"').explanation
    assert explanation is not None
    assert explanation.phrases == ("kettle whistles loudly",)


def test_a_filtered_phrase_is_reported(archive: History) -> None:
    """If a filter removes all matches of a phrase, the explanation has the number of hits without the filter."""
    explanation = archive.search('"brass kettle"', filters=Filters(projects=("soup",))).explanation

    assert explanation is not None
    assert (explanation.phrases, explanation.without) == (("brass kettle",), (("projects", 1),))


@pytest.mark.parametrize("mode", Mode)
def test_a_phrase_without_a_match_in_a_sentence_is_relaxed(archive: History, mode: Mode) -> None:
    """In a sentence, words of a phrase without a match are searched like other words, and the phrase is reported."""
    found = archive.search('what was said of the "kettle brass" and of the "brass kettle"', mode=mode)
    assert {hit.session_id for hit in found.hits} == {"tea"}
    assert found.relaxed == ("kettle brass",)

    found = archive.search('what was said of the "kettle brass" there', mode=mode)
    assert {hit.session_id for hit in found.hits} == {"tea", "soup"}
    assert found.relaxed == ("kettle brass",)

    found = archive.search('what was said of the "brass kettle" with the "pan of brass"', mode=mode)
    assert {hit.session_id for hit in found.hits} == {"tea", "soup"}
    assert found.relaxed == ("brass kettle", "pan of brass")


def test_a_phrase_with_a_match_in_a_sentence_stays_exact(archive: History) -> None:
    """In a sentence, a phrase with a match is not relaxed, even if a filter removes all matches."""
    asked = 'what was said of the "brass kettle" there'

    assert {hit.session_id for hit in archive.search(asked).hits} == {"tea"}
    assert archive.search(asked).relaxed == ()
    assert not archive.search(asked, filters=Filters(projects=("soup",))).hits


@pytest.mark.parametrize(
    ("typed", "has", "lacks"),
    [
        ("running tests", "was Running\n  tests again", "run the test: run test, running-tests, running tests2"),
        ("foo.bar(x)", "then self.foo.bar(x) is called", "foo.bar(xs), foo bar x, foo.bar (x)"),
        ("--no-verify", "commit --no-verify it", "no verify, -no-verify"),
        ("E: not found", "and E: not found", "e not found"),
        ("pull request", "a pull request", "a pullRequest, pull requests"),
        ("crème", "la cre\u0300me", "la creme"),
        ("don't stop", "I don’t stop", "don t stop"),
        ("検索", "全文検索索引", "検 索"),
        ("ERR_42", "`ERR_42`", "ERR 42, ERR_421"),
    ],
)
def test_phrases_match_literally(history: History, typed: str, has: str, lacks: str) -> None:
    """Characters and punctuation must match.

    Case and whitespace do not matter. Other inflections are found and reported only if no text matches literally.
    """
    history.say("other", Said(lacks))
    found = history.search(f'"{typed}"')
    assert [hit.session_id for hit in found.hits] in (["other"], [])
    assert found.inexact == (typed,) * len(found.hits)

    history.say("same", Said(has))
    found = history.search(f'"{typed}"')
    assert [hit.session_id for hit in found.hits] == ["same"]
    assert found.inexact == ()
    assert literal_pattern(typed).search(composed(found.hits[0].snippet))


def test_a_filter_does_not_make_a_phrase_inexact(history: History) -> None:
    """Other inflections are not found under a filter if an event outside the filter contains the phrase."""
    history.say("same", Said("running tests"))
    history.say("other", Said("the run test"))
    found = history.search('"running tests"', filters=Filters(projects=("other",)))

    assert not found.hits
    assert found.explanation is not None
    assert (found.explanation.phrases, found.explanation.without) == (("running tests",), (("projects", 1),))


def test_a_role_filter_finds_the_speaker_of_a_phrase(history: History) -> None:
    """Only the speaker of the literal phrase is found, not another speaker with the same words."""
    history.say("tests", Said("running tests", "I run test after test."))

    assert history.ids('"running tests"', filters=Filters(roles=("human",)))
    assert not history.ids('"running tests"', filters=Filters(roles=("assistant",)))


def test_phrases_that_never_occur_together_are_inexact(history: History) -> None:
    """If no event contains all phrases literally, other inflections of all phrases are found."""
    history.say("one", Said("running tests"))
    history.say("two", Said("brass kettle"))
    history.say("both", Said("running tests with brass kettles"))
    found = history.search('"running tests" "brass kettle"')

    assert [hit.session_id for hit in found.hits] == ["both"]
    assert found.inexact == ("running tests", "brass kettle")


def test_an_exact_phrase_is_found_below_many_inexact_phrases(history: History) -> None:
    """A literal match is found even if many other inflections rank higher."""
    history.say("many", *(Said("run test") for _ in range(120)))
    history.say("long", Said(f"{FILLER} running tests, and so on {FILLER}"))
    history.publish()

    assert [hit.session_id for hit in history.search('"running tests"').hits] == ["long"]


def test_an_exact_phrase_across_windows_ranks_before_inexact_phrases(history: History) -> None:
    """A literal match across two windows is preferred to other inflections within a window."""
    history.say("cut", Said(f"{FILLER[: WINDOW - 9]} {PHRASE} at dawn {FILLER}"))
    history.say("whole", Said("brass kettles whistle"))

    assert [hit.session_id for hit in history.search(f'"{PHRASE}"').hits] == ["cut"]
    assert [hit.session_id for hit in history.search('"brass kettles whistles"').hits] == ["whole", "cut"]


def test_a_phrase_in_a_sentence_may_be_in_the_exchange_before(history: History) -> None:
    """A sentence also finds the reply that follows an exchange with the phrase. The phrase alone does not."""
    history.say("tea", Said('"the brass kettle" is a book'), Said("how moving it was"))

    assert history.ids('how moving was "the brass kettle" to us then') == ["ex-2", "ex-1"]
    assert history.ids('"the brass kettle"') == ["ex-1"]


def test_a_phrase_in_a_sentence_is_inexact_before_it_is_relaxed(archive: History) -> None:
    """Other inflections of a phrase are searched before its separate words."""
    found = archive.search('what was said of the "brass-kettles" there')

    assert {hit.session_id for hit in found.hits} == {"tea"}
    assert (found.inexact, found.relaxed) == (("brass-kettles",), ())


PHRASE = "brass kettle whistles"
FILLER = "so on " * (WINDOW // 6)


@pytest.mark.parametrize(("offset", "published"), [(1, True), (6, False), (8, True), (13, True), (15, False)])
def test_a_phrase_is_found_across_two_windows(history: History, offset: int, published: bool) -> None:
    """Windows of a long text overlap, so that every phrase is complete in some window."""
    history.say("tea", Said(f"{FILLER[: WINDOW - offset - 1]} {PHRASE} at dawn {FILLER}"))
    history.say("soup", Said(f"{FILLER[: WINDOW - offset - 1]} brass and kettle whistles {FILLER}"))
    history.embed()
    if published:
        history.publish()

    for mode in Mode:
        assert [hit.session_id for hit in history.search(f'"{PHRASE}"', mode=mode).hits] == ["tea"]
    assert [hit.session_id for hit in history.search(f'"{PHRASE}"', "dawn").hits] == ["tea"]
    assert not history.search(f'"{PHRASE}"', filters=Filters(projects=("soup",))).hits
    assert not history.search(f'"{PHRASE} loudly"').hits


@given(st.integers(0, 2 * WINDOW), st.integers(1, OVERLAP))
def test_a_text_up_to_the_overlap_is_complete_in_a_window(start: int, length: int) -> None:
    """Every text of at most `OVERLAP` characters is complete in at least one piece."""
    text = "".join(chr(0x4E00 + number) for number in range(3 * WINDOW))
    phrase = text[start : start + length]

    assert any(phrase in piece for piece in pieces(text, WINDOW - OVERLAP))


def test_the_speaker_of_a_phrase_across_windows_is_known(history: History) -> None:
    """Only the speaker of the literal phrase is found, even if the phrase crosses a window border."""
    history.say("tea", Said("kettle whistles, brass", f"{FILLER[: WINDOW - 9]} {PHRASE} {FILLER}"))

    assert not history.ids(f'"{PHRASE}"', filters=Filters(roles=("human",)))
    assert len(history.ids(f'"{PHRASE}"', filters=Filters(roles=("assistant",)))) == 1


@pytest.mark.parametrize("offset", [1, 2])
def test_a_phrase_in_cjk_is_found_across_windows(history: History, offset: int) -> None:
    """A phrase is found even if the border of two windows splits a pair of its characters."""
    history.say("tea", Said(f"{'茶' * (WINDOW - offset)}检索索引{'茶' * 9}"))

    assert [hit.session_id for hit in history.search('"检索索引"').hits] == ["tea"]
    assert not history.search('"检索引"').hits


def test_a_phrase_is_found_across_windows_of_a_memory(history: History) -> None:
    """A phrase is found in a memory that is longer than a window."""
    with history.store.transaction():
        history.store.memories.insert(Memory(f"{FILLER[: WINDOW - 9]} {PHRASE} {FILLER}"), 1)

    assert [hit.kind for hit in history.search(f'"{PHRASE}"').hits] == ["memory"]


def test_words_without_quotes_are_not_phrases(archive: History) -> None:
    """Without quotes an explanation lists no phrases, and an identifier is searched by its words."""
    explanation = archive.search("zebra").explanation
    assert explanation is not None
    assert explanation.phrases == ()
    assert {hit.session_id for hit in archive.search("kettle_brass", mode=Mode.TEXT).hits} == {"tea", "soup"}


def test_corrections_are_reported(archive: History) -> None:
    """A corrected query word is reported with its correction."""
    assert archive.search("ketle").corrections == (Correction("ketle", "kettle"),)
    assert archive.search("kettle").corrections == ()


def test_words_of_other_wordings_are_not_corrected(archive: History) -> None:
    """The explanation of an empty result suggests spellings for the query, and none for its other wordings."""
    for name in "abcdef":
        archive.say(name, Said(f"brass kettle and copper pan {name}"))
    nowhere = Filters(projects=("nowhere",))
    query = Query(("kettle brasss",), Mode.TEXT, filters=nowhere, also=("kettle copprr",))

    explanation = Hits(archive.store, archive.engine()).search(query).explanation
    assert explanation is not None
    assert explanation.similar == (Correction("brasss", "brass"),)


def test_a_misspelled_word_finds_the_corrected_word(history: History) -> None:
    """Hits have the same order, scores and matched words as for the correct word. This includes words with a short
    stem, such as `remediation`, which is indexed as `remedi`.
    """
    for name, spelled in (("a", "remediation"), ("b", "remedied by hand"), ("c", "the kettle"), ("d", "remediations")):
        history.say(name, Said("go on", f"{spelled} of the brass pan {FILLER[:200]}"))
    history.embed()
    right, wrong = (
        Hits(history.store, history.engine()).search(Query((word,))) for word in ("remediation", "remeditaion")
    )

    assert wrong.corrections == (Correction("remeditaion", "remediation"),)
    assert [(hit.id, hit.score, hit.matched) for hit in wrong.hits] == [
        (hit.id, hit.score, hit.matched) for hit in right.hits
    ]
    assert right.hits[0].matched


def test_a_snippet_contains_the_phrase(history: History) -> None:
    """Punctuation between the words of a phrase does not hide it from the snippet."""
    history.say("tea", Said(f"kettle first. {'so on ' * 60} the brass-kettle"))
    [hit] = Hits(history.store, history.engine()).search(replace(Query(('"Brass kettle"',)), limit=1)).hits

    assert "brass-kettle" in hit.snippet


def test_a_snippet_shows_the_literal_phrase(history: History) -> None:
    """The snippet shows the literal phrase and not an earlier inflection, or the fact of an observation that contains
    it.
    """
    [tea, _] = history.say("tea", Said(f"run tests first. {'so on ' * 90} run test!"), Said("soup"))
    history.learn(tea, replace(learned("the suite"), facts=("It is red.", "Never try test files alone.")))
    shown = [hit.snippet for hit in history.search('"run test"').hits]
    assert len(shown) == 1
    assert shown[0].endswith("run test!")

    shown = [hit.snippet for hit in history.search('"test files"').hits]
    assert shown == ["Never try test files alone."]


def test_a_snippet_shows_the_whole_phrase(history: History) -> None:
    """The snippet shows the whole phrase, even if its separate words occur often before it."""
    history.say("tea", Said("so on", f"hook pre-existing failed, commit. {'so on ' * 900} pre-commit hooks failing!"))
    [hit] = Hits(history.store, history.engine()).search(replace(Query(('"pre-commit hook failed" so',)), limit=1)).hits

    assert hit.snippet.endswith("pre-commit hooks failing!")
    assert set(hit.matched) == {"pre-commit hooks failing"}


def test_phrases_release_the_index_at_once(kitchen: History) -> None:
    """Index files are unmapped without a garbage collection, because those of a large archive take gigabytes."""
    view = Snapshot(kitchen.store, kitchen.generations, FakeEmbedder())
    phrases, alive = ExactPhrases(view), weakref.ref(view)
    phrases.text(AnalyzedQuery.of('"brass kettle" "steam whistles"'), Filters(), 10)
    gc.disable()
    try:
        del phrases, view
        assert alive() is None
    finally:
        gc.enable()
