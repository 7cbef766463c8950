"""Tests of the texts that are indexed for each item."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.archiver.store import StoredObservation
from palaver.archiver.store.change_log import PARTS_MAX
from palaver.core.conversation import Exchange, Kind, Span, Speaker, Turn
from palaver.core.observation import ObservationType
from palaver.search.index.indexed_texts import OVERLAP, WINDOW, entries, entry_windows, texts, windows

from ...cases import for_each
from ..history import History, Said, learned


def exchange(*turns: Turn) -> Exchange:
    last = max((turn.line for turn in turns), default=1)
    return Exchange(0, Span(1, last, 0, 0), turns, None, None)


def prose(line: int, text: str) -> Turn:
    return Turn(line, Speaker.ASSISTANT, Kind.PROSE, text)


@given(st.lists(st.integers(0, 2 * WINDOW + 7), max_size=8))
@settings(max_examples=50)
def test_windows_contain_all_text(lengths: list[int]) -> None:
    """Windows contain all text in order, with its lines. Only windows of a turn longer than one window overlap."""
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
    """Text is added to a window as long as it fits, including the line break before it."""
    made = windows(exchange(prose(1, "a" * (WINDOW - 500)), prose(2, "b" * second)))

    assert len(list(made)) == count


@for_each(
    "speaker, kind, failed, found",
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
def test_output_and_injected_text_are_not_indexed(speaker: Speaker, kind: Kind, failed: bool, found: bool) -> None:
    """Prompts, replies, calls and errors are indexed. Output of successful calls and injected text are not."""
    made = list(windows(exchange(Turn(1, speaker, kind, "something", failed=failed))))

    assert bool(made) is found


def test_part_0_is_the_prompt(history: History) -> None:
    """Part 0 of an exchange is its prompt, and the other parts are long paragraphs. An observation has only part 0."""
    [key] = history.say("one", Said("a question", "An answer that is long enough to have a vector of its own."))
    [short] = history.say("two", Said("a question", "Let me look."))
    [bare] = history.say("three", Said("", "An answer without a question, long enough to have a vector."))
    [observation] = history.learn(key, learned("what was learned"))

    found = texts(history.store, [key, short, bare, observation, 999])

    assert found == {
        key: {0: "a question", 1: "An answer that is long enough to have a vector of its own."},
        short: {0: "a question"},
        bare: {1: "An answer without a question, long enough to have a vector."},
        observation: {0: "what was learned"},
    }


def embedded(history: History, *turns: Turn) -> dict[int, str]:
    """Return the texts to embed of an exchange with the prompt "why?" and these turns."""
    [key] = history.say("one", Said("why?"))
    with history.store.transaction():
        history.store.exchanges.replace(1, 1, 0, [exchange(Turn(1, Speaker.HUMAN, Kind.PROMPT, "why?"), *turns)])
    return texts(history.store, [key])[key]


def test_consecutive_messages_share_a_vector(history: History) -> None:
    """Messages are joined up to 1,000 characters. A long message is not split."""
    parts = embedded(history, prose(2, "a" * 499), prose(3, "b" * 500), prose(4, "c" * 1_200), prose(5, "d" * 40))

    assert parts == {0: "why?", 1: "a" * 499 + "\n" + "b" * 500, 2: "c" * 1_200, 3: "d" * 40}


def test_thinking_has_no_vector(history: History) -> None:
    """Thinking is found by its words only."""
    thinking = Turn(2, Speaker.ASSISTANT, Kind.THINKING, "The reader must keep the last line of the file.")

    assert embedded(history, thinking) == {0: "why?"}


def test_the_number_of_parts_is_limited(history: History) -> None:
    """A very long exchange has vectors of its prompt and of its last paragraphs."""
    parts = embedded(history, *(prose(n, f"{n:04} " * 200) for n in range(2, 400)))

    assert (len(parts), max(parts)) == (PARTS_MAX, PARTS_MAX - 1)
    assert (parts[0], parts[PARTS_MAX - 1][:4]) == ("why?", "0399")


def test_an_exchange_has_the_metadata_of_its_observations(history: History) -> None:
    """An exchange has the types and concepts of its observations and the files of its tool calls."""
    [key] = history.say("one", Said("question", reads=("src/a.py",), writes=("/Lib/B.py",), at=5), cwd="/Code/App")
    [observation] = history.learn(
        key,
        learned("title", ObservationType.DECISION, (2, 3), concepts=["Caching"], files=["/Code/App/src/c.py"], at=6),
    )

    of_exchange, of_insight = entries(history.store, [key, observation])

    assert (of_exchange.key, of_exchange.event, of_exchange.at) == (key, key, 5)
    assert (of_exchange.values["type"], of_exchange.values["concept"]) == (("decision",), ("caching",))
    assert of_exchange.values["file"] == ("a.py/src/app/code/", "b.py/lib/")
    assert of_exchange.values["project"] == ("one", "/code/app")
    assert (of_insight.key, of_insight.event, of_insight.at) == (observation, key, 6)
    assert (of_insight.start_line, of_insight.end_line) == (2, 3)
    assert (of_insight.values["type"], of_insight.values["file"]) == (("decision",), ("c.py/src/app/code/",))


def test_entry_windows_of_observations_equal_their_entries(history: History) -> None:
    """Windows of observations have the text, lines and speakers of their entries, with and without evidence."""
    [exchange] = history.say("tea", Said("brass kettle"))
    history.learn(exchange, learned("lid", lines=(1, 2), concepts=["steam"]), learned("spout"))
    keys = [stored.key for stored in history.store.observations.of_exchange(exchange)]

    windowed = entry_windows(history.store, keys, with_context=False)
    actual = {key: (one.text, one.start_line, one.end_line, one.said) for key, one in windowed}

    assert actual == {
        entry.key: (entry.body, entry.start_line, entry.end_line, entry.said) for entry in entries(history.store, keys)
    }


def test_deleted_items_have_no_entries(history: History) -> None:
    """Keys of deleted items give no entries and no texts."""
    [key] = history.say("one", Said("question"))
    [observation] = history.learn(key, learned("title"))
    history.say("one")

    assert list(entries(history.store, [key, observation])) == []
    assert texts(history.store, [key, observation]) == {}


def test_many_items_are_loaded_in_batches(history: History) -> None:
    """More items than fit into one database query are all indexed."""
    made = history.say("one", *(Said(f"question {n}") for n in range(1_100)))

    assert sorted({entry.key for entry in entries(history.store, made)}) == made


def test_a_vanished_exchange_hides_its_observations(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """If another process removes an exchange while entries are built, its observations have no entries."""
    [key] = history.say("one", Said("question"))
    [observation] = history.learn(key, learned("title"))
    load = history.store.observations.load

    def load_late(keys: Sequence[int]) -> dict[int, StoredObservation]:
        found = load(keys)
        history.say("one")
        return found

    monkeypatch.setattr(history.store.observations, "load", load_late)

    assert list(entries(history.store, [observation])) == []


def test_a_short_exchange_has_an_entry_with_context(history: History) -> None:
    """A short exchange has a second entry that also contains the end of the exchanges before it."""
    long = "flood " * 300
    keys = history.say("one", *map(Said, (long, "the dyke", "yes", "ok")))

    bodies = {key: [entry.body for entry in entries(history.store, [key])] for key in keys}

    assert [len(bodies[key]) for key in keys] == [2, 2, 2, 2]
    assert bodies[keys[3]][0] == "ok"
    assert bodies[keys[3]][1].endswith("flood flood \nthe dyke\nyes\nok")
    assert len(bodies[keys[3]][1]) <= 703
    assert bodies == {key: [entry.body for entry in entries(history.store, keys) if entry.key == key] for key in keys}
