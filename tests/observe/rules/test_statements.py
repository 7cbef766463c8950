"""Each statement is self-contained, and its quote occurs in the turn."""

from hypothesis import given
from hypothesis import strategies as st

from palaver.core.conversation import Kind, Speaker, Turn
from palaver.observe.rules.statements import statements, with_valid_quotes


def turn(text: str) -> Turn:
    return Turn(7, Speaker.ASSISTANT, Kind.PROSE, text)


def texts(markdown: str) -> list[str]:
    return [each.text for each in statements(turn(markdown))]


def test_items_name_their_file() -> None:
    """A list item below a heading or item with a file name gets this name as a prefix."""
    markdown = (
        "### `src/api/cart.py`\n- Added totals\n- **Tests**:\n  - Cover empty carts\n\n**`web/app.ts`**\n1. Removed it"
    )

    assert texts(markdown) == ["cart.py: Added totals", "cart.py: Cover empty carts", "app.ts: Removed it"]


def test_rows_of_tables_are_statements() -> None:
    """A table row is a statement, but the header and the separator are not."""
    assert texts("| File | Change |\n|------|--------|\n| `a.py` | renamed `x` |") == ["a.py: renamed x"]


def test_code_drawings_and_rules_are_skipped() -> None:
    """Fenced code, box drawings and horizontal rules are skipped."""
    assert texts("```\nprint('x')\n```\n---\n│ box │\n├── tree.py\nIt works.") == ["It works."]


def test_dependent_sentence_is_joined() -> None:
    """A sentence that starts with `This means` is joined to the previous sentence."""
    assert texts("The key was reused. This means two charges. Refunds work.") == [
        "The key was reused. This means two charges.",
        "Refunds work.",
    ]


def test_sentence_about_another_item_is_joined() -> None:
    """A sentence about the second item or the same thing is joined to the previous sentence."""
    assert texts("Two keys were sent. The second one fails. Refunds work. Previously, they did not.") == [
        "Two keys were sent. The second one fails.",
        "Refunds work. Previously, they did not.",
    ]


def test_announcement_is_not_a_statement() -> None:
    """A line that ends in a colon is not a statement."""
    assert texts("The valid values are:\n- one\n- two") == ["one", "two"]


def test_announcement_of_a_change_is_a_statement() -> None:
    """A line that introduces a list and reports a change is a statement."""
    assert texts("Perfect! Updated the dark theme with your colors:\n- red is `#cc6666`") == [
        "Perfect!",
        "Updated the dark theme with your colors",
        "red is #cc6666",
    ]
    assert texts("I've added a section to the README that covers:\n- Selecting") == [
        "I've added a section to the README",
        "Selecting",
    ]


def test_items_below_a_sentence_do_not_repeat_it() -> None:
    """A short heading becomes a prefix of the items below it, but a sentence does not."""
    assert texts("Now you can:\n- use `/theme`\n\n**Core colors**:\n- teal") == ["use /theme", "Core colors: teal"]


@given(
    st.lists(
        st.sampled_from(["- ", "1. ", "  - ", "# ", "| a | b |", "**x**", "`f.py`:", "Hi there. ", "```", "\t"])
        | st.text(max_size=30),
        max_size=30,
    ).map("\n".join)
)
def test_quotes_occur_in_the_turn(markdown: str) -> None:
    """Every quote is short, is on one line, and occurs verbatim in the turn."""
    for each in statements(turn(markdown)):
        assert each.quote in markdown
        assert "\n" not in each.quote
        assert len(each.quote) <= 120
        assert len(each.text) <= 420


def test_quotes_of_a_cleaned_copy_are_shortened() -> None:
    """A quote is shortened until it occurs in the turn. A statement without any match is dropped."""
    original = turn("Look at @cart.py first")
    tidied = list(statements(turn("Look at cart.py first"))) + list(statements(turn("Elsewhere it is fine")))

    assert [each.quote for each in with_valid_quotes(tidied, original)] == ["Look at"]


def test_headings_do_not_apply_after_a_gap() -> None:
    """After a gap, no earlier heading applies, and the parts of sentences next to the gap are omitted."""
    gap = "[… 918 characters left out …]"
    markdown = f"## Design of carts\n- Keep totals\n- Show the tax. Stor\n{gap}\nrd + TotalsCard)\n8. Run the tests"

    assert texts(markdown) == ["Design of carts: Keep totals", "Design of carts: Show the tax.", "Run the tests"]
    assert texts(f"{gap}\nhalf a line. Prices have two digits.") == ["Prices have two digits."]
    assert texts(f"Prices have two digits. Half a\n{gap}") == ["Prices have two digits."]


def test_paragraph_after_a_list_leaves_its_introduction() -> None:
    """A paragraph after a list starts a new section, and is not below the line that introduced the list."""
    found = list(statements(turn("Two of the changes in `cart.py`:\n\n- Added totals\n\nThe page now shows a total.")))

    assert [each.text for each in found] == ["cart.py: Added totals", "The page now shows a total."]
    assert found[0].section != found[1].section
    assert found[1].heading == ""


def test_headings_and_introductions_start_sections() -> None:
    """Statements below the same heading or introduction have the same section."""
    markdown = "It works.\n\n## Cause\n\nThe cache was stale.\n\n**Changes:**\n- Added totals\n- Removed it"
    found = [each.section for each in statements(turn(markdown))]

    assert len(set(found)) == 3
    assert found[-1] == found[-2]


def test_topic_is_above_the_list() -> None:
    """The topic of a nested item is the line that introduces the list, and its heading is the item above it."""
    found = list(statements(turn("Validation:\n- Real run:\n  - `shop refresh` read 412 rates")))

    assert [(each.heading, each.topic) for each in found] == [("Real run:", "Validation:")]


def test_counts_and_asides_are_no_subjects() -> None:
    """An introduction that only counts the items, and code in parentheses, are not a prefix of the items."""
    assert texts("Two new pages:\n- The cart shows totals") == ["The cart shows totals"]
    assert texts("Logged (with `shop debug`):\n- The cart shows totals") != ["shop debug: The cart shows totals"]
