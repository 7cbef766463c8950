"""Limits of one question to a language model."""

from msgspec import Struct


class LoopLimits(Struct, frozen=True):
    """Limits of one question: messages of the model, tokens of all its calls, and seconds."""

    turns: int = 8
    tokens: int = 100_000
    seconds: float = 180
