"""Is what was said cut so that it can be found, and nothing else?"""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.archiver.store import StoredObservation
from palaver.archiver.store.vector_table import PARTS_MAX
from palaver.core.conversation import Exchange, Kind, Span, Speaker, Turn
from palaver.core.observation import ObservationType
from palaver.search.index.indexed_texts import entries, entry_windows, texts, windows
from palaver.search.index.standalone_texts import OVERLAP, WINDOW

from ..history import History, Said, learned


def exchange(*turns: Turn) -> Exchange:
    last = max((turn.line for turn in turns), default=1)
    return Exchange(0, Span(1, last, 0, 0), turns, None, None)


def prose(line: int, text: str) -> Turn:
    return Turn(line, Speaker.ASSISTANT, Kind.PROSE, text)


@given(st.lists(st.integers(0, 2 * WINDOW + 7), max_size=8))
@settings(max_examples=50)
def test_windows_contain_all_text(lengths: list[int]) -> None:
    """Windows contain all text in order on its lines; only a turn longer than a window is repeated at its cuts."""
    turns = [prose(line, f"{line % 10}" * length) for line, length in enumerate(lengths, 1)]

    made = list(windows(exchange(*turns)))

    text = "".join(window.text.replace("\n", "") for window in made)
    assert "".join(dict.fromkeys(text)) == "".join(turn.text[:1] for turn in turns)
    for turn in turns:
        cuts = max(0, math.ceil((len(turn.text) - WINDOW) / (WINDOW - OVERLAP)))
        assert text.count(f"{turn.line % 10}") == len(turn.text) + cuts * OVERLAP
    for window in made:
        shown = window.text.replace("\n", "")
        assert len(window.text) <= WINDOW
        assert (f"{window.start_line % 10}", f"{window.end_line % 10}") == (shown[0], shown[-1])


@pytest.mark.parametrize(("second", "count"), [(499, 1), (500, 2)])
def test_windows_are_filled(second: int, count: int) -> None:
    """What still fits into a window, with the line break before it, is put there."""
    made = windows(exchange(prose(1, "a" * (WINDOW - 500)), prose(2, "b" * second)))

    assert len(list(made)) == count


@pytest.mark.parametrize(
    ("speaker", "kind", "failed", "found"),
    [
        (Speaker.HUMAN, Kind.PROMPT, False, True),
        (Speaker.ASSISTANT, Kind.PROSE, False, True),
        (Speaker.ASSISTANT, Kind.THINKING, False, True),
        (Speaker.ASSISTANT, Kind.CALL, False, True),
        (Speaker.TOOL, Kind.RESULT, False, False),
        (Speaker.TOOL, Kind.RESULT, True, True),
        (Speaker.HUMAN, Kind.RESULT, False, True),
        (Speaker.HOST, Kind.INJECTED, False, False),
        (Speaker.HOST, Kind.COMPACTION, False, False),
        (Speaker.HOST, Kind.RECAP, False, True),
    ],
)
def test_what_is_worth_finding(speaker: Speaker, kind: Kind, failed: bool, found: bool) -> None:
    """What was said, asked, called and refused can be found; what tools printed or the host injected cannot."""
    made = list(windows(exchange(Turn(1, speaker, kind, "something", failed=failed))))

    assert bool(made) is found


def test_the_prompt_is_part_nought(history: History) -> None:
    """What a person asked has a vector of its own, then come paragraphs worth one; an observation has one part."""
    [key] = history.say("one", Said("a question", "An answer that is long enough to have a vector of its own."))
    [short] = history.say("two", Said("a question", "Let me look."))
    [bare] = history.say("three", Said("", "An answer without a question, long enough to have a vector."))
    [insight] = history.learn(key, learned("what was learned"))

    found = texts(history.store, [key, short, bare, insight, 999])

    assert found == {
        key: {0: "a question", 1: "An answer that is long enough to have a vector of its own."},
        short: {0: "a question"},
        bare: {1: "An answer without a question, long enough to have a vector."},
        insight: {0: "what was learned"},
    }


def test_no_item_has_too_many_parts(history: History) -> None:
    """Of a very long exchange the prompt and the last paragraphs have vectors."""
    turns = [Turn(1, Speaker.HUMAN, Kind.PROMPT, "why?"), *(prose(n, f"{n:04} " * 10) for n in range(2, 400))]
    [key] = history.say("one", Said("why?"))
    with history.store.transaction():
        history.store.exchanges.replace(1, 1, 0, [exchange(*turns)])

    parts = texts(history.store, [key])[key]

    assert (len(parts), max(parts)) == (PARTS_MAX, PARTS_MAX - 1)
    assert (parts[0], parts[PARTS_MAX - 1][:4]) == ("why?", "0399")


def test_an_exchange_carries_what_was_learned_from_it(history: History) -> None:
    """An exchange can be filtered by the types and concepts of its observations, and by the files it touched."""
    [key] = history.say("one", Said("question", reads=("src/a.py",), writes=("/Lib/B.py",), at=5), cwd="/Code/App")
    [insight] = history.learn(
        key,
        learned("title", ObservationType.DECISION, (2, 3), concepts=["Caching"], files=["/Code/App/src/c.py"], at=6),
    )

    of_exchange, of_insight = entries(history.store, [key, insight])

    assert (of_exchange.key, of_exchange.event, of_exchange.at) == (key, key, 5)
    assert (of_exchange.types, of_exchange.concepts) == (("decision",), ("caching",))
    assert of_exchange.files == ("a.py/src/app/code/", "b.py/lib/")
    assert of_exchange.projects == ("one", "/code/app")
    assert (of_insight.key, of_insight.event, of_insight.at) == (insight, key, 6)
    assert (of_insight.start_line, of_insight.end_line) == (2, 3)
    assert (of_insight.types, of_insight.files) == (("decision",), ("c.py/src/app/code/",))


def test_what_is_looked_at_of_what_was_learned_is_what_its_entry_says(history: History) -> None:
    """The same words on the same lines by the same speaker, whether it has lines or not."""
    [exchange] = history.say("tea", Said("brass kettle"))
    history.learn(exchange, learned("lid", lines=(1, 2), concepts=["steam"]), learned("spout"))
    keys = [stored.key for stored in history.store.observations.of_exchange(exchange)]

    told = entry_windows(history.store, keys, with_context=False)
    looked = {key: (one.text, one.start_line, one.end_line, one.said) for key, one in told}

    assert looked == {
        entry.key: (entry.body, entry.start_line, entry.end_line, entry.said) for entry in entries(history.store, keys)
    }


def test_what_is_gone_has_no_entries(history: History) -> None:
    """Keys of items that were deleted yield nothing."""
    [key] = history.say("one", Said("question"))
    [insight] = history.learn(key, learned("title"))
    history.say("one")

    assert list(entries(history.store, [key, insight])) == []
    assert texts(history.store, [key, insight]) == {}


def test_many_items_at_once(history: History) -> None:
    """More items than fit one look-up are all indexed."""
    made = history.say("one", *(Said(f"question {n}") for n in range(1_100)))

    assert sorted({entry.key for entry in entries(history.store, made)}) == made


def test_an_exchange_that_vanishes_takes_its_observations_along(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exchange that another process removes while entries are made is left out with what was learned from it."""
    [key] = history.say("one", Said("question"))
    [insight] = history.learn(key, learned("title"))
    load = history.store.observations.load

    def load_late(keys: Sequence[int]) -> dict[int, StoredObservation]:
        found = load(keys)
        history.say("one")
        return found

    monkeypatch.setattr(history.store.observations, "load", load_late)

    assert list(entries(history.store, [insight])) == []


def test_a_short_exchange_is_found_by_what_was_said_before_it(history: History) -> None:
    """A short exchange has one more entry, on its own lines, that holds the end of those before it; a long one none."""
    long = "flood " * 300
    keys = history.say("one", *map(Said, (long, "the dyke", "yes", "ok")))

    bodies = {key: [entry.body for entry in entries(history.store, [key])] for key in keys}

    assert [len(bodies[key]) for key in keys] == [2, 2, 2, 2]
    assert bodies[keys[3]][0] == "ok"
    assert bodies[keys[3]][1].endswith("flood flood \nthe dyke\nyes\nok")
    assert len(bodies[keys[3]][1]) <= 703
    assert bodies == {key: [entry.body for entry in entries(history.store, keys) if entry.key == key] for key in keys}
