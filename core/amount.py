"""Formatting of amounts: counts with their nouns, sizes, and money."""

from typing import Annotated, Final, TypeAlias

DOLLAR: Final = 1_000_000_000
"""Number of internal money units per US dollar. One unit is a billionth of a dollar."""
MONEY: Final = "money"
"""Annotation of the type `NanoDollars`. It marks an integer as an amount of money."""
NanoDollars: TypeAlias = Annotated[int, MONEY]


def many(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun, for example `1 entry` or `2,689 entries`. The default plural adds an `s`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def grouped(number: int) -> str:
    """Return a number with thousands separators."""
    return f"{number:,}"


def size(count: int) -> str:
    """Format a number of bytes, for example `12 bytes`, `40 kB`, `0.4 MB` or `1.5 GB`."""
    if count >= 1e9:
        return f"{count / 1e9:.1f} GB"
    if count >= 1e5:
        return f"{count / 1e6:.1f} MB"
    return f"{count / 1e3:.0f} kB" if count >= 1e3 else many(count, "byte")


def dollars(cost: NanoDollars) -> str:
    """Format an amount of money: two decimals, or six decimals for less than a cent."""
    amount = cost / DOLLAR
    return f"${amount:.2f}" if amount >= 0.01 or not cost else f"${amount:.6f}"
