"""Amounts of money in billionths of a US dollar."""

from typing import Annotated, Final, TypeAlias

DOLLAR: Final = 1_000_000_000
MONEY: Final = "money"
"""Mark of a type whose values are amounts of money."""
NanoDollars: TypeAlias = Annotated[int, MONEY]


def dollars(cost: NanoDollars) -> str:
    """Return an amount as text: whole cents, or six decimals for less than a cent."""
    amount = cost / DOLLAR
    return f"${amount:.2f}" if amount >= 0.01 or not cost else f"${amount:.6f}"
