"""Do lists of phrases find whole words only?"""

from palaver.observe.rules.phrases import all_of_it, anywhere, opening


def test_blanks_around_bars_and_line_ends_mean_nothing() -> None:
    """A list may be spread over lines; blanks inside a phrase count."""
    phrases = anywhere("""
        root cause | turns?
        out
        | because
    """)

    assert phrases.search("it TURNS out")
    assert phrases.search("the root cause.")
    assert not phrases.search("the root  causes")


def test_words_are_whole() -> None:
    """`fix` is not found in `prefix` or `fixture`."""
    assert anywhere("fix").search("a fix.")
    assert not anywhere("fix").search("prefix fixture")
    assert opening("fix | add").match("add it")
    assert not opening("fix | add").match("to add")
    assert all_of_it("done | ok").match("Done!")
    assert not all_of_it("done | ok").match("done it")
