"""Fixtures for tests of the synchronisation."""

import pytest

from palaver.observe.sync import keyring


@pytest.fixture(autouse=True)
def cheap_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Derive keys from passphrases quickly."""
    monkeypatch.setattr(keyring, "COST", 1 << 10)
