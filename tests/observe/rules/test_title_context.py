"""A title can be understood without its conversation."""

import pytest

from palaver.core.sentences import TITLE_MAX
from palaver.observe.rules.exchange_analysis import analyze_exchange
from palaver.observe.rules.title_candidates import Source, TitleCandidate
from palaver.observe.rules.title_context import in_context, without_folders
from palaver.observe.rules.titles import best_title

from .exchange_script import Script

RESULT = "The token was refreshed twice"


def shown(title: str, session_title: str, script: Script, source: Source = Source.ANSWER) -> str:
    """Return the title with its context."""
    best = TitleCandidate(title, source, 0, title)
    return in_context(best, analyze_exchange(script.exchange), session_title)


@pytest.mark.parametrize(
    ("session_title", "request_text", "expected"),
    [
        ("Login redirect loop", "Why?", "Login redirect loop: the token was refreshed twice"),
        ("Plan: Login redirect loop", "Why?", "Login redirect loop: the token was refreshed twice"),
        (
            "why does it fail?",
            "Fix the login redirect loop",
            "Fix the login redirect loop: the token was refreshed twice",
        ),
        ("Refresh of tokens", "Why?", RESULT),
        ("Login redirect loop", "Fix the token", RESULT),
        ("https://example.com/issues/12", "Why?", RESULT),
        ("what do you think about my login", "Why?", RESULT),
        ("", "Green is wrong here", RESULT),
    ],
)
def test_subject_comes_first(session_title: str, request_text: str, expected: str) -> None:
    """A result that names neither the topic of the session nor of the request comes after that topic."""
    assert shown(RESULT, session_title, Script().asked(request_text)) == expected


def test_commit_subject_is_complete() -> None:
    """A commit subject needs no context."""
    script = Script().asked("Commit this")

    assert shown("Refresh the token once", "Login redirect loop", script, Source.COMMIT) == "Refresh the token once"


def test_points_of_a_list_follow_a_short_title() -> None:
    """A request that the answer fulfils in three or more points is followed by their labels."""
    script = (
        Script()
        .asked("Improve the checkout")
        .said(
            "- **Address lookup**: by postcode\n- **Saved cards** — encrypted\n"
            "- **`cart.py`** — split\n- **Guest orders**: no account"
        )
    )

    assert shown("Improve the checkout", "", script, Source.REQUEST) == (
        "Improve the checkout: Address lookup; Saved cards; Guest orders"
    )


def test_two_points_are_not_enough() -> None:
    """A title without three labelled points is unchanged."""
    script = (
        Script().asked("Improve the checkout").said("- **Address lookup**: by postcode\n- **Saved cards** — encrypted")
    )

    assert shown("Improve the checkout", "", script, Source.REQUEST) == "Improve the checkout"


def test_title_in_context_is_not_longer() -> None:
    """A title with its subject is at most as long as any title."""
    script = Script().asked("Why?")

    assert len(shown("word " * 31, "Login redirect loop", script)) <= TITLE_MAX


def test_a_session_that_changed_its_topic_is_not_the_subject() -> None:
    """The topic of the session does not come before a result if neither request nor answer mentions it."""
    script = Script().asked("Why does the invoice show two taxes?").said("The tax is added by both services.")
    on_topic = Script().asked("Why does the login ask two times?")

    assert shown(RESULT, "Login redirect loop", script) == RESULT
    assert shown(RESULT, "Login redirect loop", on_topic) == "Login redirect loop: the token was refreshed twice"


def test_a_verdict_has_its_subject() -> None:
    """A verdict comes after the topic of the session, even if it repeats a word of the request."""
    script = Script().asked("Check if it is possible to split the checkout").said("## Verdict: possible today\n\nYes.")
    best = TitleCandidate("Possible today", Source.HEADING, 0, "Verdict: possible today")

    title = in_context(best, analyze_exchange(script.exchange), "Split of the checkout")

    assert title == "Split of the checkout: Possible today"


def test_a_review_is_titled_by_its_findings() -> None:
    """The title of a review names the pull request and the findings in the headings, not the reviewed change."""
    reply = (
        "## Overview\n\nAdds a cache of `prices`, because the shop page was slow for all of the guests.\n\n"
        "### 1. `refresh()` never clears the cache (`rates.py`)\n\nIt returns before it.\n\n"
        "### 2. The cart has no test for guests\n\nOnly members are tested."
    )
    script = Script().asked("Review this PR: https://example.com/shop/pull/12").said(reply)
    analysis = analyze_exchange(script.exchange)
    best = best_title(analysis)

    assert best is not None
    assert in_context(best, analysis, "Cache of prices") == (
        "Review of PR #12: refresh() never clears the cache; The cart has no test for guests"
    )


def test_labels_above_lists_follow_a_short_title() -> None:
    """A first sentence is followed by the labels of the lists below it, in any language."""
    reply = "設定ファイルを最新の状態に更新しました。\n\n" + "\n\n".join(
        f"**{label}:**\n- 前の値を新しい値に置き換えました（{label}）"
        for label in ("価格の設定", "税金の設定", "言語の設定")
    )
    script = Script().asked("設定ファイルを更新してください").said(reply)

    title = shown("設定ファイルを最新の状態に更新しました", "", script)

    assert title == "設定ファイルを最新の状態に更新しました: 価格の設定; 税金の設定; 言語の設定"


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Fixed apps/shop/cart.py:12-30, which lost prices", "Fixed cart.py, which lost prices"),
        ("Moved docs/prices.md", "Moved docs/prices.md"),
        ("Run apps/shop/cart.py on data/shop/prices.csv", "Run apps/shop/cart.py on data/shop/prices.csv"),
        ("See https://example.com/shop/prices/list.html", "See https://example.com/shop/prices/list.html"),
    ],
)
def test_a_title_names_files_without_folders(title: str, expected: str) -> None:
    """The path of a file is shortened to its name. Addresses and commands with several paths are complete."""
    assert without_folders(title) == expected


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            "The token was refreshed twice. Changed `login.py` to call `refresh_token` once per redirect.",
            f"{RESULT}; changed login.py to call refresh_token once per redirect",
        ),
        ("The token was refreshed twice. Updated the tests of `login.py` for the redirect of the login.", RESULT),
        ("The token was refreshed twice. The login page is served by `login.py`.", RESULT),
    ],
)
def test_change_follows_the_problem(said: str, expected: str) -> None:
    """A title that states only the problem is followed by the change, if the exchange changed files."""
    script = Script().asked("Why is the token refreshed twice?").said(said)
    best = TitleCandidate(RESULT, Source.ANSWER, 0, f"{RESULT}.")
    analysis = analyze_exchange(script.exchange)

    assert in_context(best, analysis, "", changed=True) == expected
    assert in_context(best, analysis, "") == RESULT


REPLACED = "Replaced `TokenStore.load` with `TokenStore.refresh`, because the login redirect read the old token"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (f"{REPLACED}.", f"Fix the login redirect: {REPLACED.replace('`', '')}"),
        ("Done. All checks pass.", "Fix the login redirect"),
        (f"- {REPLACED}\n- Done", f"Fix the login redirect: {REPLACED.replace('`', '')}"),
        (f"{REPLACED} in all tests.", "Fix the login redirect"),
    ],
)
def test_result_follows_the_task(said: str, expected: str) -> None:
    """A title that only names the task is followed by the best line of the answer, if the exchange changed files."""
    script = Script().asked("Fix the login redirect").said(said)
    best = TitleCandidate("Fix the login redirect", Source.REQUEST, 0, "Fix the login redirect")
    analysis = analyze_exchange(script.exchange)

    assert in_context(best, analysis, "", changed=True) == expected
    assert in_context(best, analysis, "") == best.text
    assert in_context(best, analysis, "", changed=True, apart=analysis.conclusion) == best.text


@pytest.mark.parametrize(("subject", "followed"), [("Speed up the shop", True), ("Fix the old login redirect", False)])
def test_result_follows_the_subject_of_a_commit(subject: str, *, followed: bool) -> None:
    """The subject of a commit is followed by the best line of the answer, unless this line repeats it."""
    script = Script().asked("Continue").said(f"{REPLACED}.")
    best = TitleCandidate(subject, Source.COMMIT, 0, subject)
    result = f"{subject}: {REPLACED.replace('`', '')}"

    assert in_context(best, analyze_exchange(script.exchange), "", changed=True) == (result if followed else subject)
