"""A memo: what was made of the same thing before, so that it is made once."""

from collections.abc import Callable
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Memo(dict[Key, Value]):
    """Values by what they were made of. It never holds more than `most`: where another comes to a full one, all go.

    What comes again and again is soon there anew, and nothing is spent on which was asked for last, as `lru_cache`
    does. It holds no function: the method of whoever holds the memo would keep both until garbage is collected.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def made(self, key: Key, make: Callable[[Key], Value]) -> Value:
        """What was made of this before, or else is made now and kept."""
        if key not in self:
            value = make(key)
            if len(self) >= self._most:
                self.clear()
            self[key] = value
        return self[key]
