"""Limits of one question to a language model."""

from msgspec import Struct


class LoopLimits(Struct, frozen=True):
    """Limits of one question: messages of the model, tokens of all its calls, seconds, and dollars.

    `cost` also serves as the budget, so it enables the model. If `cost` is None, the settings must contain a budget.
    """

    turns: int = 8
    tokens: int = 100_000
    seconds: float = 180
    cost: float | None = None
