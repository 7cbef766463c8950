"""Tests of observe/rules/titles.py."""

import pytest

from palaver.observe.rules.exchange_analysis import ExchangeAnalysis, analyze_exchange
from palaver.observe.rules.rule_extractor import observe
from palaver.observe.rules.titles import WEIGHTS, Source, bottom_line, features, title_candidates

from .exchange_script import Script, session

REASON = "The cache in `rates.py` was never cleared, because `refresh()` returned before it."


def analysis(script: Script) -> ExchangeAnalysis:
    """Return the analysis of the exchange of a script."""
    return analyze_exchange(script.exchange)


def title(script: Script) -> str:
    """Return the title of the outcome, or else of the verdict."""
    found = observe(script.exchange, session()).observations
    return found[0].title if found else ""


def test_an_answer_comes_before_a_question() -> None:
    """A question is not the title if its answer is known."""
    script = Script().asked("Why are the exchange rates wrong?").said(REASON)

    assert title(script) == REASON.replace("`", "").rstrip(".")


def test_a_commit_subject_comes_first() -> None:
    """A commit with more than tests or documents is the title."""
    script = (
        Script()
        .asked("Why are the exchange rates wrong?")
        .said(REASON)
        .ran("git commit -m 'Clear cached rates on refresh'")
    )

    assert title(script) == "Clear cached rates on refresh"


@pytest.mark.parametrize(
    "reply", ["I fixed it for you.", "Done and pushed to origin/main.", "All tests pass.", "All gates are green."]
)
def test_status_reports_are_no_titles(reply: str) -> None:
    """A sentence about the state of the work is not the title if the answer contains its result."""
    script = Script().asked("Why are the exchange rates wrong?").said(f"{reply} {REASON}")

    assert title(script) == REASON.replace("`", "").rstrip(".")


@pytest.mark.parametrize("reply", ["All four fixed and verified on the rates page.", "Fixed, amended into the commit."])
def test_work_without_a_name_is_the_last_choice(reply: str) -> None:
    """The observation keeps its facts under this title if nothing states the result better."""
    asked = Script().asked("It still shows the rates of yesterday, can you look again please?")
    script = asked.wrote("/shop/rates.py", "")

    assert title(script.said(reply)) == reply.rstrip(".")
    script = asked.wrote("/shop/rates.py", "").said(f"{reply} `refresh()` now clears the cache in `rates.py`.")
    assert title(script) == "refresh() now clears the cache in rates.py"


def test_a_recommendation_comes_before_the_options() -> None:
    """The title of a comparison is what the answer recommends."""
    script = (
        Script()
        .asked("Should the shop keep its exchange rates in a file or in a table?")
        .said(
            "- **File**: simple to read, but `rates.py` needs one exchange rate at a time.\n- **Table**: one more file."
        )
        .said("I recommend a table, because `rates.py` asks for one exchange rate.")
    )

    assert title(script) == "Recommend a table, because rates.py asks for one exchange rate"


def test_an_introduction_comes_before_its_first_item() -> None:
    """The sentence that introduces a list stands for all items, and the first item only for itself."""
    script = (
        Script()
        .asked("Draft the five :)")
        .edited("prices/summer.json")
        .said("Drafted the five price lists in `prices/`:\n\n- `summer.json` — sorted by name\n- `winter.json` — short")
    )

    assert title(script) == "Drafted the five price lists in prices/"


def test_a_labelled_cause_comes_before_one_of_the_changes() -> None:
    """The sentence after the label `Root cause` explains all changes of the answer."""
    script = (
        Script()
        .asked("The exchange rates of the shop are old")
        .edited("page.py")
        .said(
            "**Root cause**: The exchange rates stay in `rates.py`, because `refresh()` returns before it.\n\n"
            "1. **`page.py`**: Added a `clear()` call on load — so that the page does not get stuck on an error."
        )
    )

    assert title(script) == "The exchange rates stay in rates.py, because refresh() returns before it"


def test_a_remark_is_no_title() -> None:
    """A remark beside the result is not the title of an order that was carried out."""
    script = (
        Script()
        .asked("The shop page is slow, can you store the exchange rates?")
        .edited("rates.py")
        .said("Worth noting: the `prices` of `cart.py` could be cached in the same way, because they rarely change.")
    )

    assert title(script) == "Store the exchange rates"


@pytest.mark.parametrize("heading", ["Validation:", "**Verification**:", "## Next steps"])
def test_checks_are_no_titles(heading: str) -> None:
    """A line below a heading of checks or next steps is not the title, even if it names more."""
    script = (
        Script()
        .asked("Why are the rates wrong?")
        .said(
            "Changed:\n- `rates.py`: `refresh` now clears the cache\n\n"
            f"{heading}\n- Real refresh: `shop refresh --all` in `rates.db` read 412 rates in 3 s\n"
        )
    )

    assert "refresh --all" not in title(script)


def test_candidates_are_distinct() -> None:
    """A line that occurs in several parts of an exchange is one candidate."""
    script = (
        Script()
        .asked("Clear cached rates on refresh")
        .said(REASON)
        .ran("git commit -m 'Clear cached rates on refresh'")
    )
    texts = [each.text for each in title_candidates(analysis(script))]

    assert len(texts) == len(set(texts))


def test_every_weight_belongs_to_a_property() -> None:
    """Each name in the table of weights is the name of a property."""
    scripts = [
        Script()
        .asked("Why?")
        .said("It was. " + REASON * 2)
        .ran("git commit -m 'test: add tests'")
        .ran("git commit -m 'Clear the rates'"),
        Script().asked("Implement the following plan:\n\n# Plan: Cache exchange rates\n\n## Context\n\nSlow pages."),
        Script()
        .asked("Check why `rates.py` and `cache.py` return old exchange rates today")
        .said("It depends on you.\n\n- Short item here\n- The old exchange rates in `rates.py` return: check today?")
        .said("If you want, run the tests.")
        .said(f"{REASON} Then I pushed to origin/main. Also, `cache.py` is unused now, I think, and can be removed."),
        Script()
        .asked("Why are the exchange rates of the shop wrong today?")
        .said("Changed the exchange rates of the shop page, which were wrong today.")
        .said("Maybe the `shop` cache is the cause, since it keeps prices.")
        .said("Checked the exchange rates of the shop page."),
        Script()
        .asked("Is the shop page wrong?")
        .said("## Root cause\n\nYes, the cache of the shop page was never cleared."),
        Script().asked("Which cache is better?").said("I recommend `shop` as the cache of the exchange rates."),
        Script().asked("Committed and pushed the branch to origin/main").said(REASON),
        Script()
        .asked("Why does the shop return old exchange rates today?")
        .said('The page reads the "old table of exchange rates. It was applied to all the changes in the shop today.'),
        Script().asked("Keep the exchange rates in a table").said("Moved the exchange rates to one table:\n\n- a"),
        Script()
        .asked("Review the shop")
        .said(
            "## Verdict: good\n\nThe exchange rates of `shop` are unchanged. Note that rates change often. "
            "The exchange rates are old, so first I have to read them."
            "\n\n## Overview\n\nAdds exchange rates to the shop.\n\nThe page and the cart now share:\n\n- rates"
            "\n\nThe page and the cart now share exchange rates:\n\n- rates"
        ),
        Script().asked("Is it slow?").said("Verification:\n\n- The exchange rates of `shop` are read once."),
        Script().asked("Is it slow?").said("Done — the exchange rates of the shop are read once."),
        Script()
        .asked("Is it slow?")
        .said(f"When the exchange rates of the shop change {'very ' * 40}often, it waits."),
        Script()
        .asked("Why are the exchange rates of the shop page so old today?")
        .said(
            "Both files of the shop page read old exchange rates. It probably keeps `rates`. "
            "All tests of the shop pass. Maybe the cache of the shop keeps the rates?\n\n- Is the `shop` page old?"
        ),
    ]
    found = {
        name
        for script in scripts
        for candidate in title_candidates(analysis(script))
        for name in features(candidate, analysis(script))
    }

    assert set(WEIGHTS) - found - {source.value for source in Source} == set()


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("The fix is simple: clear the cache before refreshing.", "clear the cache before refreshing."),
        ("I have added a cache of exchange rates.", "added a cache of exchange rates."),
        ("rates.py: clears the cache before refreshing.", "clears the cache before refreshing."),
        ("The fix is: no.", "The fix is: no."),
        ("Done — the cache is cleared before refreshing.", "the cache is cleared before refreshing."),
        ("Cleared the cache before refreshing, amended into 21feffed", "Cleared the cache before refreshing"),
    ],
)
def test_introductions_are_stripped(sentence: str, expected: str) -> None:
    """The title begins with the result, unless too little would be left."""
    assert bottom_line(sentence) == expected
