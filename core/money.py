"""Money, in whole billionths of a dollar."""

DOLLAR = 1_000_000_000


def dollars(cost: int) -> str:
    """An amount for a person: cents, and for less than a cent as many digits as it takes to see it."""
    amount = cost / DOLLAR
    return f"${amount:.2f}" if amount >= 0.01 or not cost else f"${amount:.6f}"
