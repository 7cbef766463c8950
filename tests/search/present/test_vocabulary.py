"""An uncertain result has words of the archive with which to reword the query."""

import pytest

from palaver.core.query import Mode
from palaver.search.present import vocabulary

from ..history import MAY_1, History, Said, learned


@pytest.fixture
def kitchen(history: History) -> History:
    """Return an archive in which titles of three sessions share words."""
    for number, title in enumerate(("Brass kettle descaled", "Brass kettle: whistle replaced", "Descaled the whistle")):
        [said] = history.say(f"s{number}", Said("go", "It is done.", MAY_1 + number))
        history.learn(said, learned(title, lines=(1, 1)))
    for number in range(40):
        history.say(f"o{number}", Said(f"lamp {number}", "It is on.", MAY_1 + 100 + number))
    history.embed()
    return history


def test_words_come_from_titles_of_further_events(kitchen: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words of the query, of shown titles, and words that occur only once are left out."""
    monkeypatch.setattr(vocabulary, "_MATCH_MIN", 2.0)
    results = kitchen.search("brass kettle", limit=1)
    expected = {"Brass kettle descaled": ("whistle",), "Brass kettle: whistle replaced": ("descaled",)}

    assert results.vocabulary == expected[results.hits[0].title]


def test_a_result_that_contains_the_words_has_none(kitchen: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query whose words its hits contain needs no other words, and neither does one for exact words."""
    assert kitchen.search("brass kettle").vocabulary == ()
    monkeypatch.setattr(vocabulary, "_MATCH_MIN", 2.0)
    assert kitchen.search('"brass kettle"').vocabulary == ()
    assert kitchen.search("brass kettle", mode=Mode.TEXT).vocabulary == ()
