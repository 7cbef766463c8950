"""Is what was left to do found, with the words that say so?"""

from palaver.core.conversation import Kind, Speaker, Turn
from palaver.observe.rules.open_items import open_items

from .telling import Telling


def listed(telling: Telling, *items: str) -> Telling:
    text = "TodoWrite: " + "\n".join(items)
    line = len(telling.turns) + 1
    telling.turns.append(Turn(line, Speaker.ASSISTANT, Kind.CALL, text, tool="TodoWrite", call="t"))
    return telling


def test_unfinished_items_of_the_last_list_are_open() -> None:
    """Only the last list counts, and of it what is not completed."""
    telling = listed(Telling().asked("Add a footer"), "[pending] Write the footer")
    telling = listed(telling, "[completed] Write the footer", "[in_progress] Test the footer", "[pending] Tell Ana")

    items = list(open_items(telling.exchange))

    assert [item.text for item in items] == ["Test the footer", "Tell Ana"]
    assert [item.evidence.quote for item in items] == ["[in_progress] Test the footer", "[pending] Tell Ana"]


def test_the_last_words_say_what_is_open() -> None:
    """What the conclusion calls remaining is open; its questions and its results are not."""
    telling = (
        Telling().asked("Add a footer").said("The footer is there. The print view still needs a footer of its own.")
    )

    assert [item.text for item in open_items(telling.exchange)] == ["The print view still needs a footer of its own."]
    assert (
        list(open_items(Telling().asked("Add it").said("Should I do the follow-up for the print view?").exchange)) == []
    )
    assert (
        list(open_items(Telling().asked("Add it").said("PR 7 now has the commits with the follow-up fixes.").exchange))
        == []
    )
