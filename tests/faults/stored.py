"""Functions that list stored items, including duplicates."""

from palaver.archiver.store import Store
from palaver.core.home import Home


def memories(home: Home) -> list[str]:
    """Return the content of every stored memory, including duplicates."""
    with Store.open(home.database) as store:
        return [stored.memory.content for stored in store.memories.load(store.items.all_keys()).values()]


def prompts(home: Home) -> list[str]:
    """Return every stored prompt, including duplicates."""
    with Store.open(home.database) as store:
        return [each.exchange.prompt for each in store.exchanges.load(store.items.all_keys()).values()]
