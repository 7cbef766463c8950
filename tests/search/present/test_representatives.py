"""The representative of an event is its best item."""

import pytest

from palaver.core.query import Mode

from ..history import LINES, LONG, MAY_1, History, Said, learned

FILLER = "x " * 740


def test_an_exchange_without_observations_is_the_hit(history: History) -> None:
    """An exchange without observations is shown on the lines that contain the words."""
    [_, key] = history.say("one", Said("first"), Said("brass kettle", LONG, at=MAY_1), cwd="/w/app")

    [hit] = history.search("valve", mode=Mode.TEXT).hits

    assert (hit.id, hit.kind, hit.type, hit.title) == (f"ex-{key}", "exchange", "general", "brass kettle")
    assert (hit.path, hit.session_id, hit.project) == ("test/one.jsonl", "one", "one")
    assert (hit.start_line, hit.end_line, hit.at) == (LINES + 1, 2 * LINES, MAY_1)
    assert "valve" in hit.snippet
    assert hit.similarity is None


def test_an_observation_represents_its_exchange(history: History) -> None:
    """If words occur in the evidence of an observation, the hit is that observation with its lines."""
    [key] = history.say("one", Said("brass kettle", LONG))
    _, covering = history.learn(key, learned("about the kettle", lines=(1, 1)), learned("on cleaning", lines=(3, 3)))

    hits = history.search("cleaning", mode=Mode.TEXT).hits

    assert [(hit.id, hit.kind, hit.start_line, hit.end_line) for hit in hits] == [
        (f"obs-{covering}", "observation", 3, 3)
    ]


def test_words_outside_of_evidence_show_the_exchange(history: History) -> None:
    """If words occur in neither an observation nor its evidence, the hit is the exchange."""
    [key] = history.say("one", Said(FILLER, LONG))
    history.learn(key, learned("something else", lines=(1, 1)))

    assert history.ids("valve vinegar", mode=Mode.TEXT) == [f"ex-{key}"]


def test_the_observation_with_the_matching_evidence_is_shown(history: History) -> None:
    """An observation with the words in its evidence is shown before an observation that contains only some of them."""
    [key] = history.say("one", Said(FILLER, LONG))
    _, covering = history.learn(key, learned("the valve", lines=(1, 1)), learned("on cleaning", lines=(3, 3)))

    assert history.ids("stuck valve vinegar", mode=Mode.TEXT) == [f"obs-{covering}"]


@pytest.mark.parametrize(
    ("title", "kind"), [("the valve", "exchange"), ("pressure valve stuck, vinegar", "observation")]
)
def test_the_exchange_is_shown_if_it_matches_much_better(history: History, title: str, kind: str) -> None:
    """If many more query words occur outside the evidence, the exchange itself is shown, on those lines."""
    [key] = history.say("one", Said(FILLER, LONG))
    history.learn(key, learned(title, lines=(1, 1)))

    [hit] = history.search("pressure valve stuck vinegar whistles", mode=Mode.TEXT).hits

    assert hit.kind == kind
    assert (hit.start_line, hit.end_line) == ((3, 3) if kind == "exchange" else (1, 1))


def test_observations_are_found_by_their_own_words(history: History) -> None:
    """A query for words of an observation finds it, even if the exchange does not contain the words."""
    [key] = history.say("one", Said("brass kettle"))
    [insight] = history.learn(key, learned("limescale", lines=(1, 1)))

    assert history.ids("limescale", mode=Mode.TEXT) == [f"obs-{insight}"]


def test_an_exchange_is_one_hit(history: History) -> None:
    """An exchange with several observations is one hit: the observation that matches best."""
    [key] = history.say("one", Said("brass kettle"))
    _, best = history.learn(key, learned("kettle", lines=(1, 1)), learned("brass kettle", lines=(1, 1)))

    assert history.ids("brass kettle", mode=Mode.TEXT) == [f"obs-{best}"]
