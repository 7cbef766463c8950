"""Bounded cache of computed values."""

from collections.abc import Callable
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Memo(dict[Key, Value]):
    """Cache of computed values by key, with at most `most` entries. A full cache is emptied.

    Unlike `lru_cache`, this cache does not keep a reference to a bound method, so its owner is freed without garbage
    collection.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def get_or_make(self, key: Key, make: Callable[[Key], Value]) -> Value:
        """Return the cached value for a key, or compute and cache it."""
        if key not in self:
            self.put(key, make(key))
        return self[key]

    def put(self, key: Key, value: Value) -> None:
        """Cache a value."""
        if len(self) >= self._most:
            self.clear()
        self[key] = value
