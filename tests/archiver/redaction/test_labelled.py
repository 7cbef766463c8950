"""Labelled secrets are found, and similar texts stay unchanged."""

from collections import Counter

import pytest

from palaver.archiver.redaction import Redactor

from .labelled import labelled

REDACTOR = Redactor(b"0123456789abcdef")
SEEDS = range(1, 4)


@pytest.mark.parametrize("name", ["first", "second"])
def test_labelled_secrets_are_found(name: str) -> None:
    """At least 95 % of the labelled secrets are removed completely, for any generated values."""
    entries = [entry for seed in SEEDS for entry in labelled(name, seed)]
    missed = Counter(entry.kind for entry in entries if not entry.is_found())

    assert len(entries) >= 80 * len(SEEDS)
    assert missed.total() <= 0.05 * len(entries), missed


@pytest.mark.parametrize("seed", SEEDS)
def test_look_alikes_stay(seed: int) -> None:
    """Hashes, identifiers, placeholders, code and prose that resemble secrets stay unchanged."""
    entries = labelled("innocent", seed)

    assert len(entries) >= 60
    assert [entry.text for entry in entries if REDACTOR.redact(entry.text).findings] == []
