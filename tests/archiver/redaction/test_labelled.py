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


def test_secrets_apart_from_their_name_are_found() -> None:
    """A secret on the next line, in a cell, a call, a command or an encoded text is removed completely."""
    entries = [entry for seed in SEEDS for entry in labelled("kinds", seed)]

    assert {entry.kind: entry.text for entry in entries if not entry.is_hidden(REDACTOR.redact(entry.text).text)} == {}


@pytest.mark.parametrize("part", ["development", "held_out", "later"])
def test_secrets_in_the_style_of_vendors_documentation_are_found(part: str) -> None:
    """At least 92 % of the secrets of each part are removed."""
    secrets = [entry for seed in SEEDS for entry in labelled(f"vendors_{part}", seed)]
    missed = Counter(entry.kind for entry in secrets if not entry.is_hidden(REDACTOR.redact(entry.text).text))

    assert missed.total() <= 0.08 * len(secrets), missed


@pytest.mark.parametrize("half", ["development", "held_out"])
def test_examples_of_vendors_without_a_secret_stay(half: str) -> None:
    """At most 4 % of the harmless examples of each half change."""
    harmless = [entry for seed in SEEDS for entry in labelled(f"vendors_harmless_{half}", seed)]
    changed = Counter(entry.kind for entry in harmless if REDACTOR.redact(entry.text).findings)

    assert changed.total() <= 0.04 * len(harmless), changed


@pytest.mark.parametrize("part", ["everyday", "everyday_later"])
def test_secrets_of_every_day_are_found(part: str) -> None:
    """At least 90 % of the secrets in conversations and files of every day are removed, in many languages."""
    secrets = [entry for seed in SEEDS for entry in labelled(part, seed)]
    missed = Counter(entry.kind for entry in secrets if not entry.is_hidden(REDACTOR.redact(entry.text).text))

    assert missed.total() <= 0.1 * len(secrets), missed


def test_texts_of_every_day_without_a_secret_stay() -> None:
    """At most 2 % of the harmless texts of every day change."""
    harmless = [entry for seed in SEEDS for entry in labelled("harmless_everyday", seed)]
    changed = Counter(entry.kind for entry in harmless if REDACTOR.redact(entry.text).findings)

    assert changed.total() <= 0.02 * len(harmless), changed
