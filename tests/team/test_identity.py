"""Codes, keys, tokens and their rights."""

from uuid import UUID, uuid4

import httpx2
import psycopg
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from palaver.core.errors import InvalidInput
from palaver.team.protocol import (
    PROTOCOL,
    AccessToken,
    Challenge,
    ChallengeRequest,
    Hello,
    Join,
    Joined,
    Position,
    Scope,
    ServerStatus,
    SignedChallenge,
)
from palaver.team.server import identity
from palaver.team.server.database import administering
from palaver.team.server.migration import latest

from .members import Machine, Refused, exchange, invited, request
from .postgres import DatabaseUrls


def key() -> str:
    return Ed25519PrivateKey.generate().public_key().public_bytes_raw().hex()


def issue(urls: DatabaseUrls, person: str, scopes: list[Scope], audience: str) -> str:
    with administering(urls.owner) as connection:
        team = identity.find_team(connection, "acme")
        return identity.issue_token(
            connection, team, identity.find_person(connection, team, person), scopes, audience, 30
        )


def test_hello_needs_no_token(url: str) -> None:
    """Anybody can ask which versions a server has."""
    with httpx2.Client(trust_env=False) as client:
        response = client.get(f"{url}/v1/hello")

    hello = Hello(**response.json())
    assert (hello.protocol, hello.schema) == (PROTOCOL, latest())


def test_a_code_works_once(url: str, urls: DatabaseUrls) -> None:
    """A used code is refused."""
    code = invited(urls, "Ann")
    joined = request(url, "join", Join(code.lower().replace("-", " "), key(), "laptop", str(uuid4())), Joined)

    assert (joined.team_name, joined.person_name) == ("acme", "Ann")
    with pytest.raises(Refused) as refused:
        request(url, "join", Join(code, key(), "laptop", str(uuid4())), Joined)
    assert refused.value.status == 403


def test_a_code_expires(url: str, urls: DatabaseUrls) -> None:
    """A code is refused after its 15 minutes."""
    code = invited(urls, "Ann")
    with psycopg.connect(urls.owner) as connection:
        connection.execute("UPDATE palaver.invitation SET expires = expires - interval '15 minutes'")

    with pytest.raises(Refused) as refused:
        request(url, "join", Join(code, key(), "laptop", str(uuid4())), Joined)
    assert "expired" in refused.value.reason


def test_an_unknown_code_is_refused(url: str) -> None:
    """A guessed code opens nothing."""
    with pytest.raises(Refused) as refused:
        request(url, "join", Join("AAAA-BBBB-CCCC-DDDD", key(), "laptop", str(uuid4())), Joined)
    assert refused.value.status == 403


@pytest.mark.parametrize(("public", "epoch"), [("xyz", str(UUID(int=1))), ("00", str(UUID(int=1))), ("07" * 32, "one")])
def test_an_invalid_request_does_not_use_the_code(url: str, urls: DatabaseUrls, public: str, epoch: str) -> None:
    """After a refusal the code still works."""
    code = invited(urls, "Ann")

    with pytest.raises(Refused) as refused:
        request(url, "join", Join(code, public, "laptop", epoch), Joined)
    assert refused.value.status == 422
    assert request(url, "join", Join(code, key(), "laptop", str(uuid4())), Joined).team_name == "acme"


def test_only_the_key_of_the_machine_gets_a_token(url: str, urls: DatabaseUrls) -> None:
    """A signature by another key is refused."""
    machine = Machine(url, invited(urls, "Ann"))

    with pytest.raises(Refused) as refused:
        machine.new_token(Ed25519PrivateKey.generate())
    assert refused.value.status == 401
    assert machine.status().person == "Ann"


def test_a_challenge_works_once_for_its_machine(url: str, urls: DatabaseUrls) -> None:
    """A challenge that was answered, or that belongs to another machine, is refused."""
    one, other = (Machine(url, invited(urls, name)) for name in ("Ann", "Bob"))
    device = one.joined.device
    nonce = request(url, "challenge", ChallengeRequest(device), Challenge).nonce

    def sign(machine: Machine) -> AccessToken:
        signature = machine.key.sign(f"palaver-team:{nonce}".encode()).hex()
        return request(url, "token", SignedChallenge(machine.joined.device, nonce, signature), AccessToken)

    with pytest.raises(Refused):
        sign(other)
    assert sign(one).seconds == 900
    with pytest.raises(Refused) as refused:
        sign(one)
    assert refused.value.status == 401


def test_a_late_signature_is_refused(url: str, urls: DatabaseUrls) -> None:
    """A challenge expires after a minute."""
    machine = Machine(url, invited(urls, "Ann"))
    nonce = request(url, "challenge", ChallengeRequest(machine.joined.device), Challenge).nonce
    with psycopg.connect(urls.owner) as connection:
        connection.execute("UPDATE palaver.challenge SET expires = expires - interval '1 minute'")
    signature = machine.key.sign(f"palaver-team:{nonce}".encode()).hex()

    with pytest.raises(Refused) as refused:
        request(url, "token", SignedChallenge(machine.joined.device, nonce, signature), AccessToken)
    assert refused.value.status == 401


def test_an_expired_token_is_refused(url: str, urls: DatabaseUrls) -> None:
    """A token ends after 15 minutes. The machine gets a new one by its key."""
    machine = Machine(url, invited(urls, "Ann"))
    assert machine.status().person == "Ann"
    with psycopg.connect(urls.owner) as connection:
        connection.execute("UPDATE palaver.token SET expires = expires - interval '15 minutes'")

    with pytest.raises(Refused) as refused:
        machine.status()
    assert refused.value.status == 401
    assert request(url, "status", None, ServerStatus, machine.new_token()).person == "Ann"


def test_a_revoked_person_is_refused_at_once(url: str, urls: DatabaseUrls) -> None:
    """Revoking ends tokens, keys and codes of a person, and nobody else's."""
    cid, dan = (Machine(url, invited(urls, name)) for name in ("Cid", "Dan"))
    code = invited(urls, "Cid")
    assert (cid.status().person, dan.status().person) == ("Cid", "Dan")
    with administering(urls.owner) as connection:
        team = identity.find_team(connection, "acme")
        assert identity.revoke(connection, team, "Cid") == 1

    for refuse in (cid.status, cid.new_token, lambda: Machine(url, code)):
        with pytest.raises(Refused):
            refuse()
    assert dan.status().person == "Dan"


def test_one_machine_can_be_revoked(url: str, urls: DatabaseUrls) -> None:
    """Revoking one machine leaves the others of the person."""
    lost, kept = (Machine(url, invited(urls, "Eve"), name) for name in ("lost", "kept"))
    with administering(urls.owner) as connection:
        team = identity.find_team(connection, "acme")
        assert identity.revoke(connection, team, "Eve", "lost") == 1
        with pytest.raises(InvalidInput):
            identity.revoke(connection, team, "Eve", "lost")
        eve = next(person for person in identity.people(connection, team) if person.name == "Eve")

    with pytest.raises(Refused):
        lost.status()
    assert kept.status().person == "Eve"
    assert eve.devices == ["kept"]


def test_a_token_for_reading_cannot_push(url: str, urls: DatabaseUrls) -> None:
    """A token of `palaver team token --scope read` reads the status, and sends nothing."""
    machine = Machine(url, invited(urls, "Ann"))
    token = issue(urls, "Ann", [Scope.READ], f"{url}/mcp")

    assert request(url, "status", None, ServerStatus, token).position == Position("", 0)
    with pytest.raises(Refused) as refused:
        request(url, "push", machine.batch([exchange("one")]), Position, token)
    assert refused.value.status == 403


def test_a_token_without_machine_cannot_push(url: str, urls: DatabaseUrls) -> None:
    """Items need a machine, which orders them."""
    machine = Machine(url, invited(urls, "Ann"))
    token = issue(urls, "Ann", [Scope.PUSH], f"{url}/mcp")

    with pytest.raises(Refused) as refused:
        request(url, "push", machine.batch([exchange("one")]), Position, token)
    assert refused.value.status == 403


def test_a_token_for_another_server_is_refused(url: str, urls: DatabaseUrls) -> None:
    """The audience of a token is this server."""
    invited(urls, "Ann")
    token = issue(urls, "Ann", [Scope.READ], "https://other.example/mcp")

    with pytest.raises(Refused) as refused:
        request(url, "status", None, ServerStatus, token)
    assert refused.value.status == 401


@pytest.mark.parametrize("name", ["push", "shared", "status", "leave"])
@pytest.mark.parametrize("token", ["", "guess"])
def test_every_request_of_members_needs_a_token(url: str, name: str, token: str) -> None:
    """Without a valid token a request gets 401."""
    with pytest.raises(Refused) as refused:
        request(url, name, b"{}", Position, token)
    assert refused.value.status == 401


def test_secrets_are_stored_as_hashes_only(url: str, urls: DatabaseUrls) -> None:
    """The database contains neither codes nor tokens."""
    code = invited(urls, "Ann")
    machine = Machine(url, invited(urls, "Ann"))
    token = machine.token
    with psycopg.connect(urls.owner) as connection:
        rows = [
            str(row)
            for table in ("invitation", "device", "challenge", "token", "audit")
            for row in connection.execute(f"SELECT * FROM palaver.{table}".encode()).fetchall()
        ]

    assert rows
    assert not [row for row in rows if token in row or code in row or identity.normal_code(code) in row]


def test_unknown_paths_and_long_requests_get_a_reason(url: str) -> None:
    """A path of a later version, and a request without a token that is too long, get a refusal."""
    with pytest.raises(Refused) as unknown:
        request(url, "later", b"", Position)
    with pytest.raises(Refused) as long:
        request(url, "join", b" " * 200_000, Joined)

    assert (unknown.value.status, long.value.status) == (404, 413)
