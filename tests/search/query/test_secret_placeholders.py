"""Tests of secrets in queries: each is replaced with its placeholder and never repeated."""

import random
from pathlib import Path

import pytest

from palaver.archiver.redaction import Redactor
from palaver.core.home import Home
from palaver.core.query import Filters, Query
from palaver.search.query.query_analysis import redacted, without_secrets

from ...archiver.redaction.planted import AROUND_ACCESS_KEYS, AROUND_TOKENS, TOKENS, access_key

ALONE = sorted(TOKENS.keys() - {"private-key"})


@pytest.fixture
def place(tmp_path: Path) -> Home:
    """Return a home with a key for placeholders."""
    home = Home(tmp_path)
    home.key()
    return home


@pytest.mark.parametrize("kind", ALONE)
def test_a_secret_is_replaced_with_its_placeholder(kind: str, place: Home) -> None:
    """The placeholder is a quoted phrase and depends on the archive's key."""
    secret = TOKENS[kind](random.Random(1))
    [finding] = Redactor(place.key()).redact(secret).findings

    assert redacted(secret, place) == f'"{finding}"'
    assert without_secrets(Query.parse(secret), place) == Query.parse(f'"{finding}"')
    assert without_secrets(Query.parse("kettle", also=[secret]), place).also == (f'"{finding}"',)


@pytest.mark.parametrize("around", [*AROUND_TOKENS, *AROUND_ACCESS_KEYS, "the password is {}"])
def test_the_fast_check_finds_every_secret(around: str, place: Home) -> None:
    """Every secret that the rules find is also found by the fast check, in any context."""
    for secret in (TOKENS["github-pat"](random.Random(1)), access_key(random.Random(1))):
        text = around.format(secret)
        placeholders = {str(finding) for finding in Redactor(place.key()).redact(text).findings}

        assert all(placeholder in redacted(text, place) for placeholder in placeholders)


def test_only_concepts_with_secrets_change(place: Home) -> None:
    """A concept without a secret is unchanged."""
    secret = TOKENS["gitlab-pat"](random.Random(1))
    asked = without_secrets(Query.parse(["slow remote", secret]), place).concepts

    assert asked[0] == "slow remote"
    assert secret not in asked[1]


def test_filters_replace_secrets(place: Home) -> None:
    """A secret in a project, file, session or branch filter becomes its placeholder, without quotes."""
    secret = TOKENS["github-pat"](random.Random(1))
    placeholder = Redactor(place.key()).redact(secret).text
    given = without_secrets(
        Query.parse(
            "timeout",
            projects=[f"shop-{secret}"],
            files=[f"/srv/{secret}/a.py"],
            sessions=[secret],
            branches=[secret],
        ),
        place,
    )

    assert given.filters == Filters.parse(
        projects=[f"shop-{placeholder}"],
        files=[f"/srv/{placeholder}/a.py"],
        sessions=[placeholder],
        branches=[placeholder],
    )


def test_quotes_are_kept(place: Home) -> None:
    """A placeholder within quotes is not quoted again."""
    secret = TOKENS["npm-access-token"](random.Random(1))

    assert redacted(f'"{secret}"', place) == f'"{Redactor(place.key()).redact(secret).findings[0]}"'


@pytest.mark.parametrize(
    "query",
    ["0b6f21c4-3d0e-4f57-9a41-2c7d5e8f1a01", "why does test_parse_of_lines_2 fail", "token expired", "key = value"],
)
def test_a_query_without_secrets_is_unchanged(query: str, place: Home) -> None:
    """A query without secrets is returned unchanged."""
    asked = Query.parse(query)

    assert without_secrets(asked, place) == asked


def test_without_a_key_the_secret_is_removed(tmp_path: Path) -> None:
    """If the key is missing, the query does not contain the secret."""
    secret = TOKENS["github-pat"](random.Random(1))

    assert secret not in redacted(secret, Home(tmp_path))
    assert list(tmp_path.iterdir()) == []
