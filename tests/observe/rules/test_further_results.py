"""A section of an answer that states a result of its own becomes an observation."""

import pytest

from palaver.core.observation import Observation
from palaver.observe.rules.further_results import RESULTS_MAX, is_further_result
from palaver.observe.rules.rule_extractor import observe

from .exchange_script import Script, session

CART = """The cart total ignored the voucher because `Cart.total` summed the items before the discount.

## Cache

`TotalCache` kept the total of the previous cart, since its key contained only the session. The key is now the cart \
and its version, so a changed cart never reads an old total.

## {heading}

`make check` passes because `CartTest` and `VoucherTest` now create their own `Cart`, instead of sharing one.
"""


def results(
    answer: str,
    request: str = "Fix the wrong total in the cart after a voucher",
    *,
    edits: tuple[str, ...] = ("shop/cart.py",),
) -> list[Observation]:
    script = Script().asked(request)
    for path in edits:
        script.edited(path)
    return list(observe(script.said(answer).exchange, session()).observations)


def test_section_has_its_own_title_and_facts() -> None:
    """A section with another result has an observation of its own, and the outcome does not repeat its facts."""
    outcome, cache = results(CART.format(heading="Verification"))

    assert "voucher" in outcome.title
    assert "TotalCache" in cache.title
    assert cache.subtitle == f"Part of: {outcome.title}"
    assert any("old total" in each for each in (cache.narrative, *cache.facts))
    assert not any("TotalCache" in fact for fact in outcome.facts)


@pytest.mark.parametrize("heading", ["Verification", "Next steps", "1. Tests", "Your options", "Open questions"])
def test_checks_and_next_steps_are_no_results(heading: str) -> None:
    """Sections about checks, options and next steps belong to the outcome."""
    assert len(results(CART.format(heading=heading))) == 2


def test_words_of_the_user_make_no_further_result() -> None:
    """An outcome stays an outcome if the request begins like the subtitle of a further result."""
    outcome, cache = results(
        CART.format(heading="Verification"), "Part of: the wrong total in the cart after a voucher, which you fix"
    )
    written = Observation(type=cache.type, title=cache.title, subtitle=cache.subtitle, extractor="claude-sonnet-4-5")

    assert [is_further_result(each) for each in (outcome, cache, written)] == [False, True, False]


def test_short_answer_has_one_observation() -> None:
    """A section with little to say belongs to the outcome."""
    assert len(results("`Cart.total` now subtracts the voucher.\n\n## Note\n\nIt was `shop/cart.py`.")) == 1


def test_checks_are_no_facts_beside_further_results() -> None:
    """An outcome whose changes are further results does not keep only the checks as facts."""
    answer = (
        "The voucher of the cart is now applied once.\n\n**Changes:**\n"
        "- `shop/cart.py`: `Cart.total` now subtracts the voucher after the discount, because it was applied twice\n\n"
        "Verification:\n- `make check` reported 412 passed for `shop/cart.py`\n- `make speed` took 3 s for 412 carts\n"
    )
    outcome, change = results(answer)

    assert "Cart.total" in change.title
    assert not any("412" in fact for fact in outcome.facts)


def test_labels_of_a_list_are_the_title() -> None:
    """A section with labelled items has its heading, without parentheses, and all labels as the title."""
    answer = (
        "The total of the cart was wrong because `Cart.total` summed the items before the voucher.\n\n"
        "## Limitations of vouchers (all known)\n\n"
        "- **Old carts**: `Cart.version` is missing, so that `TotalCache` never notices a voucher\n"
        "- **Gift cards**: `GiftCard.apply` always comes after `Voucher.apply`\n"
        "- **Foreign prices**: `Rate.convert` rounds before the discount of the cart\n"
    )

    assert results(answer)[1].title.endswith("Limitations of vouchers: Old carts; Gift cards; Foreign prices")


def test_list_without_heading_is_part_of_the_outcome() -> None:
    """A list without a heading or an introduction, such as the options of a recommendation, is no further result."""
    answer = (
        "The cart can keep its total in two ways.\n\n"
        "- **Cache**: `TotalCache` now keeps the total of every cart, because `Cart.total` is never slow to read then\n"
        "- **Column**: `cart.total` now keeps it in the database, so that no cart of the shop is read twice\n\n"
        "I recommend the column, because a voucher changes the total of a cart and `TotalCache` would never notice it."
    )

    assert len(results(answer, edits=())) == 1
    assert len(results(answer.replace("in two ways.", "with:"), edits=())) == 2


def test_number_of_results_is_limited() -> None:
    """An answer with many sections has a limited number of observations."""
    section = (
        "## Module {0}\n\n`module_{0}.py` silently ignored `option_{0}` because `read_{0}` was never called. It now "
        "calls `read_{0}` for every request of the shop, instead of once at the start.\n"
    )
    answer = "\n".join(section.format(name) for name in ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta"))

    assert len(results(answer)) == 1 + RESULTS_MAX


def test_section_about_a_changed_file_has_the_type_of_the_outcome() -> None:
    """A section that names a changed file is part of the change, and lists only this file."""
    answer = (
        "Fixed the total of the cart: the voucher was applied twice because `Cart.total` called `discount` again.\n\n"
        "**Changes:**\n"
        "- `shop/voucher.py`: a voucher now remembers the cart that used it, so `discount` never runs twice\n"
        "- `shop/voucher.py`: `Voucher.used` replaced the flag `applied` in the session\n"
    )
    outcome, voucher = results(answer, edits=("shop/cart.py", "shop/voucher.py"))

    assert voucher.type == outcome.type
    assert voucher.files_modified == ("shop/voucher.py",)


def test_finding_of_a_review_names_the_review() -> None:
    """Each finding of a review has a title that begins with the reviewed pull request."""
    script = (
        Script()
        .asked("Review this PR: https://example.com/shop/pull/12")
        .said(
            "## Findings\n\n### 1. The cache key ignores the voucher\n\n`TotalCache.key` is built from the session, so "
            "a total is stale after `add_voucher` because nothing clears it.\n\n"
            "### 2. The discount is applied twice\n\n`Cart.total` calls `discount` although `Voucher.apply` did so "
            "already, which means a voucher of 10 % reduces the total by 19 %.\n"
        )
    )
    titles = [each.title for each in observe(script.exchange, session()).observations]

    assert len(titles) == 2
    assert all(title.startswith("Review of PR #12: ") for title in titles)
    assert "Voucher.apply" in titles[1]
