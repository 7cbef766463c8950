"""The judge of the injection benchmark compares a line with what the session did afterwards."""

from bench.bearing import BearingJudge, Followed, file_bears, followed

from ..search.history import Said

CART = Said("Round the discounts in the cart", writes=("/home/ann/shop/src/cart.py",)).exchange(0)
MAIL = Said("Translate the letters to customers").exchange(0)
TILL = Said("Translate the till").exchange(0)
JUDGE = BearingJudge([[CART], [MAIL], [TILL]])


def test_a_file_bears_if_it_was_touched_or_named() -> None:
    """A file with the same folder and name was touched; prompts and answers can name it too."""
    after = followed([CART, Said("Why does till.py fail?").exchange(1)])

    assert file_bears("src/cart.py", after)
    assert file_bears("till.py", after)
    assert not file_bears("tests/cart.py", after)
    assert not file_bears("src/mail.py", after)


def test_a_line_bears_if_it_has_rare_words_of_the_session() -> None:
    """Words that few sessions contain count more than words of many sessions."""
    assert JUDGE.bears("The discounts in the cart", (), followed([CART]))
    assert not JUDGE.bears("Translate numbers of receipts", (), followed([TILL]))
    assert not JUDGE.bears("", (), followed([TILL]))


def test_a_line_bears_if_half_of_its_files_were_touched() -> None:
    """A line whose files the session touched bears, whatever its words are."""
    after = followed([CART])

    assert JUDGE.bears("Prices", ("src/cart.py", "src/mail.py"), after)
    assert not JUDGE.bears("Prices", ("src/cart.py", "src/mail.py", "src/till.py"), after)


def test_a_prompt_is_not_its_own_outcome() -> None:
    """A line for a prompt is compared with what follows the prompt, not with its words."""
    assert followed([MAIL], without_prompt=True) == Followed(frozenset(), frozenset())
    assert "letters" in followed([TILL, MAIL], without_prompt=True).words
