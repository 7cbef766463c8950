"""Secrets covered by the rules are found in the places where users and agents write them."""

import random
from itertools import product

import pytest

from palaver.archiver.redaction import Redactor

from ...cases import for_each
from .planted import (
    AROUND_ACCESS_KEYS,
    AROUND_JOINED,
    AROUND_KEYS,
    AROUND_MENTIONS,
    AROUND_PASSWORDS,
    AROUND_TOKENS,
    MIXED,
    TOKENS,
    access_key,
    chars,
    joined,
    jwt,
    key,
    password,
    pem,
)

REDACTOR = Redactor(b"0123456789abcdef")
ROUNDS = range(5)


@for_each("kind, around", product(TOKENS, AROUND_TOKENS))
def test_tokens_are_found_by_form(kind: str, around: str) -> None:
    """A token of a known form is found in any context, with its kind."""
    for seed in ROUNDS:
        secret = TOKENS[kind](random.Random(seed))
        done = REDACTOR.redact(around.format(secret))

        assert secret not in done.text
        assert {finding.kind for finding in done.findings} == {kind}


@for_each("around", AROUND_PASSWORDS)
def test_passwords_are_found_after_their_names(around: str) -> None:
    """A password is found after its name, in every notation of files, programs and commands."""
    for seed in ROUNDS:
        secret = password(random.Random(seed))

        assert secret not in REDACTOR.redact(around.format(secret)).text


@for_each("around", AROUND_MENTIONS)
def test_passwords_are_found_in_sentences(around: str) -> None:
    """A password is found after its name in sentences, commands and code, in several languages."""
    for seed in ROUNDS:
        for secret in (password(random.Random(seed)), chars(random.Random(seed), MIXED, 11)):
            assert secret not in REDACTOR.redact(around.format(secret)).text


@for_each("around", AROUND_ACCESS_KEYS)
def test_keys_with_slashes_are_found(around: str) -> None:
    """A base64 key with slashes is found after its name, in every notation."""
    for seed in ROUNDS:
        secret = access_key(random.Random(seed))
        done = REDACTOR.redact(around.format(secret))

        assert str(REDACTOR.redact(f"api_key='{secret}'").findings[0]) in done.text
        assert not [piece for piece in secret.split("/") if piece in done.text]


@for_each("around, sign", product(AROUND_JOINED, ["&", ";", ","]))
def test_bare_passwords_are_redacted_completely(around: str, sign: str) -> None:
    """A password without quotes is redacted completely, even with characters that end other values."""
    for seed in ROUNDS:
        secret = joined(random.Random(seed), sign)
        done = REDACTOR.redact(around.format(secret))

        assert done.text == around.format(REDACTOR.redact(f"password='{secret}'").findings[0])


@for_each(
    "around",
    [
        "Server=x;Password={};Database=y",
        "Server=x;Pwd={};User Id=sa",
        "Server=x;Password={};Integrated Security=true",
        "https://shop.example/?user=bob&password={}&page=1",
        "user=bob&password={}&page=1",
        "connect(host=h,password={},port=1)",
        "{{user: bob, password: {}, port: 1}}",
        "DB_PASSWORD={}; make",
        "DB_PASSWORD={}&& make",
        "DB_PASSWORD={};make",
    ],
)
def test_password_ends_where_the_next_field_begins(around: str) -> None:
    """The text after the password stays in connection strings, queries, calls and commands."""
    for seed in ROUNDS:
        secret = chars(random.Random(seed), MIXED, 11)
        done = REDACTOR.redact(around.format(secret))

        assert done.text == around.format(done.findings[0])


@pytest.mark.parametrize("around", ["the api key is {} for now", "secret: {} (staging)", "use token={} and go on"])
def test_random_keys_are_found_in_sentences(around: str) -> None:
    """A random key is found after its name in sentences, commands and code."""
    for seed in ROUNDS:
        secret = key(random.Random(seed))

        assert secret not in REDACTOR.redact(around.format(secret)).text


def test_password_beside_a_token() -> None:
    """A secret that is recognised by its form does not hide another secret in the same sentence."""
    token, secret = TOKENS["github-pat"](random.Random(1)), password(random.Random(1))
    done = REDACTOR.redact(f"token {token} and password={secret} for the staging box")

    assert token not in done.text
    assert secret not in done.text


@for_each("sign", "!#$%&()*+,-./:;<=>?@[]^_{|}~é密")
def test_quoted_passwords_may_contain_any_character(sign: str) -> None:
    """A quoted password may contain any character except quotes, whitespace and backslashes."""
    for seed in ROUNDS:
        source = random.Random(seed)
        secret = f"{chars(source, MIXED, 4)}{sign}{chars(source, MIXED, 4)}"

        assert secret not in REDACTOR.redact(f'"password": "{secret}"').text


@for_each("around", AROUND_KEYS)
def test_random_keys_are_found_after_their_names(around: str) -> None:
    """A random key is found after its name and in headers."""
    for seed in ROUNDS:
        secret = key(random.Random(seed))

        assert secret not in REDACTOR.redact(around.format(secret)).text


@for_each("between, whole", product(["\n", "\\n", "\n     9→", '\\n" +\n  "', "\r\n    ", "\n> "], [True, False]))
def test_private_key(between: str, whole: bool) -> None:
    """Every full line of a private key is removed, even if lines are joined, numbered, quoted or truncated."""
    text = pem(random.Random(1), between)
    shown = text if whole else text[: len(text) // 2]
    done = REDACTOR.redact(f"cat key.pem\n{shown}\n")
    lines = [line for line in shown.split(between)[1:-1] if len(line) == 64]

    assert lines
    assert not [line for line in lines if line in done.text]


def test_putty_key() -> None:
    """The private lines of a PuTTY key are found, and its public lines stay."""
    source = random.Random(1)
    public, private = (chars(source, "ABCdef123+/", 64) for _ in range(2))
    done = REDACTOR.redact(f"Public-Lines: 1\n{public}\nPrivate-{'Lines'}: 1\n{private}\nPrivate-MAC: 12\n")

    assert public in done.text
    assert private not in done.text


@pytest.mark.parametrize(
    "form", ["$6${salt}${hash}", "$2y$12${hash}", "$apr1${salt}${hash}", "$argon2id${salt},t=3,p=4${hash}"]
)
def test_password_hash(form: str) -> None:
    """The hash of a password is found in listings and dumps."""
    source = random.Random(1)
    hashed = form.replace("{salt}", chars(source, MIXED_HASH, 16)).replace("{hash}", chars(source, MIXED_HASH, 53))
    done = REDACTOR.redact(f"(1, 'anna', '{hashed}', 1),")

    assert hashed not in done.text
    assert done.findings[0].kind == "password-hash"


MIXED_HASH = "abcdefghijkLMNOPQRST0123456789./"


def test_unsigned_and_encrypted_jwt() -> None:
    """Tokens without a signature and tokens of five parts are also found."""
    head, body, signature = jwt(random.Random(1)).split(".")
    encrypted = f"{head}.{signature}.{signature[:16]}.{signature}.{signature[:22]}"

    assert body not in REDACTOR.redact(f"{head}.{body}.").text
    assert signature not in REDACTOR.redact(encrypted).text
