"""Open items are extracted with their quotes."""

from palaver.core.conversation import Kind, Speaker, Turn
from palaver.observe.rules.open_items import open_items

from .exchange_script import Script


def listed(script: Script, *items: str) -> Script:
    text = "TodoWrite: " + "\n".join(items)
    line = len(script.turns) + 1
    script.turns.append(Turn(line, Speaker.ASSISTANT, Kind.CALL, text, tool="TodoWrite", call="t"))
    return script


def test_unfinished_items_of_the_last_list_are_open() -> None:
    """Only unfinished items of the last to-do list are open."""
    script = listed(Script().asked("Add a footer"), "[pending] Write the footer")
    script = listed(script, "[completed] Write the footer", "[in_progress] Test the footer", "[pending] Tell Ana")

    items = list(open_items(script.exchange))

    assert [item.text for item in items] == ["Test the footer", "Tell Ana"]
    assert [item.evidence.quote for item in items] == ["[in_progress] Test the footer", "[pending] Tell Ana"]


def test_open_points_of_the_conclusion_are_open() -> None:
    """Remaining work named in the conclusion is open; questions and results are not."""
    script = Script().asked("Add a footer").said("The footer is there. The print view still needs a footer of its own.")

    assert [item.text for item in open_items(script.exchange)] == ["The print view still needs a footer of its own."]
    assert (
        list(open_items(Script().asked("Add it").said("Should I do the follow-up for the print view?").exchange)) == []
    )
    assert (
        list(open_items(Script().asked("Add it").said("PR 7 now has the commits with the follow-up fixes.").exchange))
        == []
    )
