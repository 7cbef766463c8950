"""Is a secret that somebody looks for found by its placeholder, and repeated nowhere?"""

import random
from pathlib import Path

import pytest

from palaver.archiver.redaction import Redactor
from palaver.core.home import Home
from palaver.core.query import Filters, Query
from palaver.search.query.secret_placeholders import redacted, without_secrets

from ...archiver.redaction.planted import AROUND_ACCESS_KEYS, AROUND_TOKENS, TOKENS, access_key

ALONE = sorted(TOKENS.keys() - {"private-key"})


@pytest.fixture
def place(tmp_path: Path) -> Home:
    """A home with a key."""
    home = Home(tmp_path)
    home.key()
    return home


@pytest.mark.parametrize("kind", ALONE)
def test_a_secret_is_asked_for_by_its_placeholder(kind: str, place: Home) -> None:
    """As a phrase, by the archive's own key."""
    secret = TOKENS[kind](random.Random(1))
    [finding] = Redactor(place.key()).redact(secret).findings

    assert redacted(secret, place) == f'"{finding}"'
    assert without_secrets(Query.parse(secret), place) == Query.parse(f'"{finding}"')


@pytest.mark.parametrize("around", [*AROUND_TOKENS, *AROUND_ACCESS_KEYS, "the password is {}"])
def test_the_quick_look_misses_nothing(around: str, place: Home) -> None:
    """What the rules find in a question is found, in whatever words it stands."""
    for secret in (TOKENS["github-pat"](random.Random(1)), access_key(random.Random(1))):
        text = around.format(secret)
        placeholders = {str(finding) for finding in Redactor(place.key()).redact(text).findings}

        assert all(placeholder in redacted(text, place) for placeholder in placeholders)


def test_each_concept_is_looked_at(place: Home) -> None:
    """Of several concepts only the one that holds a secret is another."""
    secret = TOKENS["gitlab-pat"](random.Random(1))
    asked = without_secrets(Query.parse(["slow remote", secret]), place).concepts

    assert asked[0] == "slow remote"
    assert secret not in asked[1]


def test_a_filter_names_what_the_archive_has(place: Home) -> None:
    """A secret in the name of a project, a file, a session or a branch becomes its placeholder, without quotes."""
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


def test_quotes_stay_as_they_were_typed(place: Home) -> None:
    """A placeholder within quotes gets none of its own."""
    secret = TOKENS["npm-access-token"](random.Random(1))

    assert redacted(f'"{secret}"', place) == f'"{Redactor(place.key()).redact(secret).findings[0]}"'


@pytest.mark.parametrize(
    "query",
    ["0b6f21c4-3d0e-4f57-9a41-2c7d5e8f1a01", "why does test_parse_of_lines_2 fail", "token expired", "key = value"],
)
def test_a_question_without_secrets_stays(query: str, place: Home) -> None:
    """It comes back itself."""
    asked = Query.parse(query)

    assert without_secrets(asked, place) == asked


def test_where_the_key_is_gone_none_is_made(tmp_path: Path) -> None:
    """The secret is not repeated all the same."""
    secret = TOKENS["github-pat"](random.Random(1))

    assert secret not in redacted(secret, Home(tmp_path))
    assert list(tmp_path.iterdir()) == []
