"""Does what is quoted stand so in everything that is found?"""

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
from palaver.search.index.snapshot import Snapshot
from palaver.search.index.standalone_texts import OVERLAP, WINDOW, pieces
from palaver.search.present.hits import Hits
from palaver.search.query.query_analysis import AnalyzedQuery
from palaver.search.query.tokenizer import composed, expand, literal_pattern, stems
from palaver.search.rank.exact_phrases import ExactPhrases

from ..fake_embedder import FakeEmbedder
from ..history import NO_FILTERS, History, Said, learned

WORDS = ("kettle", "brass", "steam", "pullRequest", "soup_pan", "whistles", "whistle")


@pytest.fixture(scope="module")
def kitchen(tmp_path_factory: pytest.TempPathFactory) -> History:
    """Many short conversations of few words, one half published and embedded, the other only archived."""
    chance, history = random.Random(3), History(tmp_path_factory.mktemp("kitchen"), FakeEmbedder())
    for session in range(12):
        said = (Said(" ".join(chance.choices(WORDS, k=4)), " ".join(chance.choices(WORDS, k=6))) for _ in range(2))
        history.learn(history.say(f"s{session}", *said)[0], learned(" ".join(chance.choices(WORDS, k=5))))
        if session == 6:
            history.embed()
            history.publish()
    return history


def having(history: History, phrase: list[str]) -> set[int]:
    """The events with a text in which these words stand one after the other, else those in which they do so in other
    forms.
    """
    wanted, exact = [term for word in phrase for term in stems(word)], literal_pattern(" ".join(phrase))
    formed, keys = set[int](), history.store.items.all_keys()
    for entry in indexed_texts.entries(history.store, keys):
        terms = stems(expand(entry.body))
        if any(terms[place : place + len(wanted)] == wanted for place in range(len(terms))):
            formed.add(entry.event)
    said = history.store.exchanges.load(keys).values()
    found = {each.key for each in said if exact.search(" ".join(turn.text for turn in each.exchange.turns))}
    seen = history.store.observations.load(keys).values()
    return found | {each.exchange for each in seen if exact.search(each.observation.title)} or formed


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([*WORDS, "nowhere", "pull", "request"]), min_size=1, max_size=3), st.data())
def test_a_phrase_stands_in_every_hit(kitchen: History, phrase: list[str], data: st.DataObject) -> None:
    """Exactly what has the quoted words one after the other is found, in every mode, whatever stands beside them; in
    other forms only where nothing has them so.
    """
    mode, beside = data.draw(st.sampled_from(Mode)), data.draw(st.sampled_from(["", "kettle", "nowhere", "stea*"]))

    found = kitchen.engine().find(f'"{" ".join(phrase)}" {beside}', mode, NO_FILTERS).events

    assert {event.key for event in found} == having(kitchen, phrase) & embedded(kitchen, mode)


def embedded(history: History, mode: Mode) -> set[int]:
    """The events that a mode can find: meaning knows those that have vectors."""
    items = history.store.items.load(history.store.items.all_keys())
    every = {item.exchange for item in items.values()}
    if mode is not Mode.VECTOR:
        return every
    known = history.store.vectors.of_items(history.embedder.name, sorted(items))
    return {items[vector.item].exchange for vector in known}


@pytest.fixture
def told(history: History) -> History:
    """Two conversations that have the same words, one of them side by side."""
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
def test_what_stands_nowhere_so_is_named(told: History, mode: Mode, asked: str, missed: tuple[str, ...]) -> None:
    """Nothing is found; it is said which quoted words stand nowhere, and what has them without quotes."""
    found = told.search(asked, mode=mode)

    assert not found.hits
    assert found.explanation is not None
    assert found.explanation.phrases == missed
    assert {hit.session_id for hit in found.explanation.weak} == {"tea", "soup"}


def test_the_weak_have_it_too(told: History) -> None:
    """Who wants what is not clearly relevant gets nothing that lacks the phrase either."""
    found = Hits(told.store, told.engine()).search(Query(('"kettle brass"',), weak=True))

    assert not found.hits
    assert found.explanation is not None
    assert found.explanation.phrases == ("kettle brass",)


def test_several_concepts_keep_their_phrases(told: History) -> None:
    """With several concepts each phrase must stand in the conversation, and only the missing one is named."""
    assert {hit.session_id for hit in told.search('"brass kettle"', "whistles").hits} == {"tea"}
    why = told.search('"brass kettle"', '"kettle whistles loudly"').explanation
    assert why is not None
    assert why.phrases == ("kettle whistles loudly",)


def test_a_phrase_that_filters_leave_out_is_told_so(told: History) -> None:
    """Under a filter nothing has it, and it is said how many there are without the filter."""
    why = told.search('"brass kettle"', filters=Filters(projects=("soup",))).explanation

    assert why is not None
    assert (why.phrases, why.without) == (("brass kettle",), (("projects", 1),))


@pytest.mark.parametrize("mode", Mode)
def test_in_a_sentence_it_is_words_where_it_stands_nowhere(told: History, mode: Mode) -> None:
    """Who asks a question quotes from memory: what stands nowhere so is words like the others, and that is told."""
    found = told.search('what was said of the "kettle brass" and of the "brass kettle"', mode=mode)
    assert {hit.session_id for hit in found.hits} == {"tea"}
    assert found.relaxed == ("kettle brass",)

    found = told.search('what was said of the "kettle brass" there', mode=mode)
    assert {hit.session_id for hit in found.hits} == {"tea", "soup"}
    assert found.relaxed == ("kettle brass",)

    found = told.search('what was said of the "brass kettle" with the "pan of brass"', mode=mode)
    assert {hit.session_id for hit in found.hits} == {"tea", "soup"}
    assert found.relaxed == ("brass kettle", "pan of brass")


def test_in_a_sentence_it_is_a_phrase_where_it_stands(told: History) -> None:
    """Also under filters that leave out whatever has it."""
    asked = 'what was said of the "brass kettle" there'

    assert {hit.session_id for hit in told.search(asked).hits} == {"tea"}
    assert told.search(asked).relaxed == ()
    assert not told.search(asked, filters=Filters(projects=("soup",))).hits


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
def test_what_is_quoted_stands_as_it_was_typed(history: History, typed: str, has: str, lacks: str) -> None:
    """Letter by letter and sign by sign, whatever is big or small and whichever blanks there are; other forms of its
    words are found where nothing has it so, and that is told.
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


def test_word_for_word_is_decided_without_filters(history: History) -> None:
    """A filter only removes: what has other forms is not found under one when something has the words themselves."""
    history.say("same", Said("running tests"))
    history.say("other", Said("the run test"))
    found = history.search('"running tests"', filters=Filters(projects=("other",)))

    assert not found.hits
    assert found.explanation is not None
    assert (found.explanation.phrases, found.explanation.without) == (("running tests",), (("projects", 1),))


def test_who_is_asked_for_said_it_word_for_word(history: History) -> None:
    """Not the other, who said its words in the same exchange."""
    history.say("tests", Said("running tests", "I run test after test."))

    assert history.ids('"running tests"', filters=Filters(roles=("human",)))
    assert not history.ids('"running tests"', filters=Filters(roles=("assistant",)))


def test_all_that_is_quoted_stands_in_other_forms_where_it_does_not_stand_together(history: History) -> None:
    """Each stands word for word somewhere; where both do, one of them has another ending."""
    history.say("one", Said("running tests"))
    history.say("two", Said("brass kettle"))
    history.say("both", Said("running tests with brass kettles"))
    found = history.search('"running tests" "brass kettle"')

    assert [hit.session_id for hit in found.hits] == ["both"]
    assert found.inexact == ("running tests", "brass kettle")


def test_it_is_found_below_many_that_have_other_forms(history: History) -> None:
    """What ranks first is looked at first, and what has it word for word need not be there."""
    history.say("many", *(Said("run test") for _ in range(120)))
    history.say("long", Said(f"{FILLER} running tests, and so on {FILLER}"))
    history.publish()

    assert [hit.session_id for hit in history.search('"running tests"').hits] == ["long"]


def test_it_is_found_across_a_cut_though_other_forms_stand_whole(history: History) -> None:
    """What was typed comes before what is spelled like it."""
    history.say("cut", Said(f"{FILLER[: WINDOW - 9]} {PHRASE} at dawn {FILLER}"))
    history.say("whole", Said("brass kettles whistle"))

    assert [hit.session_id for hit in history.search(f'"{PHRASE}"').hits] == ["cut"]
    assert [hit.session_id for hit in history.search('"brass kettles whistles"').hits] == ["whole", "cut"]


def test_in_a_sentence_it_may_have_been_said_just_before(history: History) -> None:
    """Whoever asks of a book means what is told of it; whoever only quotes means what has these words."""
    history.say("tea", Said('"the brass kettle" is a book'), Said("how moving it was"))

    assert history.ids('how moving was "the brass kettle" to us then') == ["ex-2", "ex-1"]
    assert history.ids('"the brass kettle"') == ["ex-1"]


def test_in_a_sentence_other_forms_come_before_words(told: History) -> None:
    """What is quoted from memory is looked for in other forms first."""
    found = told.search('what was said of the "brass-kettles" there')

    assert {hit.session_id for hit in found.hits} == {"tea"}
    assert (found.inexact, found.relaxed) == (("brass-kettles",), ())


PHRASE = "brass kettle whistles"
FILLER = "so on " * (WINDOW // 6)


@pytest.mark.parametrize(("offset", "published"), [(1, True), (6, False), (8, True), (13, True), (15, False)])
def test_a_phrase_is_found_at_the_border_of_two_windows(history: History, offset: int, published: bool) -> None:
    """Windows of a long text overlap, so that a phrase is in one piece somewhere."""
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
def test_each_stretch_up_to_the_overlap_is_in_one_piece(start: int, length: int) -> None:
    """No text of at most `OVERLAP` characters is split by all windows."""
    text = "".join(chr(0x4E00 + number) for number in range(3 * WINDOW))
    phrase = text[start : start + length]

    assert any(phrase in piece for piece in pieces(text, WINDOW - OVERLAP))


def test_who_said_it_is_known_across_a_cut(history: History) -> None:
    """As of what stands in a window: the others in the exchange said its words, but not one after the other."""
    history.say("tea", Said("kettle whistles, brass", f"{FILLER[: WINDOW - 9]} {PHRASE} {FILLER}"))

    assert not history.ids(f'"{PHRASE}"', filters=Filters(roles=("human",)))
    assert len(history.ids(f'"{PHRASE}"', filters=Filters(roles=("assistant",)))) == 1


@pytest.mark.parametrize("offset", [1, 2])
def test_a_phrase_in_cjk_is_found_across_a_cut(history: History, offset: int) -> None:
    """A cut takes one of its pairs apart."""
    history.say("tea", Said(f"{'茶' * (WINDOW - offset)}检索索引{'茶' * 9}"))

    assert [hit.session_id for hit in history.search('"检索索引"').hits] == ["tea"]
    assert not history.search('"检索引"').hits


def test_what_is_held_is_found_across_a_cut(history: History) -> None:
    """A long memory is cut as well."""
    with history.store.transaction():
        history.store.memories.insert(Memory(f"{FILLER[: WINDOW - 9]} {PHRASE} {FILLER}"), 1)

    assert [hit.kind for hit in history.search(f'"{PHRASE}"').hits] == ["memory"]


def test_words_without_quotes_are_no_phrase(told: History) -> None:
    """Without quotes nothing is told of phrases, and a name that stands nowhere is searched by its words."""
    why = told.search("zebra").explanation
    assert why is not None
    assert why.phrases == ()
    assert {hit.session_id for hit in told.search("kettle_brass", mode=Mode.TEXT).hits} == {"tea", "soup"}


def test_it_is_told_what_was_searched_instead(told: History) -> None:
    """A word that stands nowhere is named with the word that was searched in its place."""
    assert told.search("ketle").corrections == (Correction("ketle", "kettle"),)
    assert told.search("kettle").corrections == ()


def test_a_misspelled_word_finds_what_it_was_meant_to(history: History) -> None:
    """In the same order, with the same scores and the same words marked; also where an ending hid how alike they are,
    as that of `remediation` does, which is indexed as `remedi`.
    """
    for name, said in (("a", "remediation"), ("b", "remedied by hand"), ("c", "the kettle"), ("d", "remediations")):
        history.say(name, Said("go on", f"{said} of the brass pan {FILLER[:200]}"))
    history.embed()
    right, wrong = (
        Hits(history.store, history.engine()).search(Query((word,))) for word in ("remediation", "remeditaion")
    )

    assert wrong.corrections == (Correction("remeditaion", "remediation"),)
    assert [(hit.id, hit.score, hit.matched) for hit in wrong.hits] == [
        (hit.id, hit.score, hit.matched) for hit in right.hits
    ]
    assert right.hits[0].matched


def test_a_snippet_shows_where_a_phrase_stands(history: History) -> None:
    """Signs between its words hide nothing."""
    history.say("tea", Said(f"kettle first. {'so on ' * 60} the brass-kettle"))
    [hit] = Hits(history.store, history.engine()).search(replace(Query(('"Brass kettle"',)), limit=1)).hits

    assert "brass-kettle" in hit.snippet


def test_a_snippet_shows_what_was_quoted_word_for_word(history: History) -> None:
    """Not another form of it that stands before; of an observation that does not show it, the fact that has it."""
    [tea, _] = history.say("tea", Said(f"run tests first. {'so on ' * 90} run test!"), Said("soup"))
    history.learn(tea, replace(learned("the suite"), facts=("It is red.", "Never try test files alone.")))
    shown = [hit.snippet for hit in history.search('"run test"').hits]
    assert len(shown) == 1
    assert shown[0].endswith("run test!")

    shown = [hit.snippet for hit in history.search('"test files"').hits]
    assert shown == ["Never try test files alone."]


def test_a_snippet_shows_the_phrase_as_a_whole(history: History) -> None:
    """Not its words, however often they stand before it, and however far it stands behind them."""
    history.say("tea", Said("so on", f"hook pre-existing failed, commit. {'so on ' * 900} pre-commit hooks failing!"))
    [hit] = Hits(history.store, history.engine()).search(replace(Query(('"pre-commit hook failed" so',)), limit=1)).hits

    assert hit.snippet.endswith("pre-commit hooks failing!")
    assert set(hit.matched) == {"pre-commit hooks failing"}


def test_who_is_done_with_phrases_lets_go_of_the_index(kitchen: History) -> None:
    """At once, not when Python next looks for cycles: its files are mapped, and a large archive's take gigabytes."""
    view = Snapshot(kitchen.store, kitchen.generations, FakeEmbedder())
    phrases, alive = ExactPhrases(kitchen.store, view), weakref.ref(view)
    phrases.text(AnalyzedQuery.of('"brass kettle" "steam whistles"'), Filters(), 10)
    gc.disable()
    try:
        del phrases, view
        assert alive() is None
    finally:
        gc.enable()
