"""A memo: what was made of the same thing before, so that it is made once."""

from collections.abc import Callable
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Memo(dict[Key, Value]):
    """`memo[key]` is what `make(key)` gave; `memo.get(key)` makes nothing.

    It never holds more than `most` values: where another comes to a full one, all go. What comes again and again is
    soon there anew, and nothing is spent on which was asked for last, as `lru_cache` does.
    """

    def __init__(self, make: Callable[[Key], Value], most: int) -> None:
        super().__init__()
        self._make, self._most = make, most

    def __missing__(self, key: Key) -> Value:
        value = self._make(key)
        if len(self) >= self._most:
            self.clear()
        self[key] = value
        return value
