"""People, their machines and their tokens.

A machine proves itself with its Ed25519 key, and gets a token of 15 minutes. Secrets are stored as SHA-256 only.
"""

import secrets
from base64 import b32encode
from collections.abc import Sequence
from hashlib import sha256
from typing import Final, LiteralString
from uuid import UUID, uuid4

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from msgspec import Struct

from ...core.errors import InvalidInput, TeamRefused
from ..protocol import (
    CODE_SECONDS,
    TOKEN_SECONDS,
    AccessToken,
    Challenge,
    ChallengeRequest,
    Join,
    Joined,
    Scope,
    SignedChallenge,
)
from .database import Database, TeamDatabase, scope

_CHALLENGE_SECONDS: Final = 60
_CODE_BYTES: Final = 10
"""Bytes of a join code: 80 bits, which nobody guesses in 15 minutes."""
_JOIN_AGAIN: Final = "Ask for a new code, and run `palaver team join URL CODE`."


class Caller(Struct, frozen=True):
    """Person who sent a request, with the rights of the token. `device` is None for a token of `palaver team token`."""

    team: UUID
    person: UUID
    device: UUID | None
    scopes: frozenset[Scope]
    audience: str
    expires: int
    """Time at which the token expires, in seconds since 1970."""


class Person(Struct, frozen=True):
    """Member of a team.

    Attributes:
        devices: Names of the machines that are not revoked.
        tokens: Days (UTC) on which the tokens of `palaver team token` expire.
        removed: True after `palaver team remove`, until a new invitation.
    """

    id: UUID
    name: str
    devices: Sequence[str]
    tokens: Sequence[str]
    removed: bool


def digest(secret: str) -> bytes:
    """Return the SHA-256 of a secret."""
    return sha256(secret.encode()).digest()


def uuid_of(text: str, what: str) -> UUID:
    """Return a UUID.

    Raises:
        TeamRefused: The text is not a UUID in its usual form.
    """
    try:
        number = UUID(text)
    except ValueError:
        number = None
    if number is None or str(number) != text:
        raise TeamRefused(f"The {what} is not a UUID: {text[:40]!r}", hint="Update Palaver.", status=422)
    return number


def join(database: TeamDatabase, request: Join) -> Joined:
    """Register a machine by a code, which can be used once.

    Raises:
        TeamRefused: The code is unknown, used or expired, or the key is invalid.
    """
    device, epoch = uuid4(), uuid_of(request.epoch, "epoch")
    name = "".join(filter(str.isprintable, request.device_name))[:200]
    key = _public_key(request.key)
    with database.transaction() as connection:
        hashed = digest(normal_code(request.code))
        team = _team(connection, "SELECT palaver.team_of_invitation(%s)", hashed)
        row = None
        if team:
            scope(connection, team)
            row = connection.execute(
                "DELETE FROM palaver.invitation WHERE team = %s AND hash = %s RETURNING person, expires > now()",
                (team, hashed),
            ).fetchone()
        if team is None or row is None or not row[1]:
            raise TeamRefused("The code is unknown, used or expired", hint=_JOIN_AGAIN, status=403)
        person: UUID = row[0]
        connection.execute(
            "INSERT INTO palaver.device (team, id, person, name, key, epoch) VALUES (%s, %s, %s, %s, %s, %s)",
            (team, device, person, name, key, epoch),
        )
        record(connection, team, person, "join", name)
        team_name, person_name = member_names(connection, team, person)
        return Joined(str(team), team_name, str(person), person_name, str(device))


def challenge(database: TeamDatabase, request: ChallengeRequest) -> Challenge:
    """Return a text for a machine to sign.

    Raises:
        TeamRefused: The machine is unknown or revoked.
    """
    device, nonce = uuid_of(request.device, "machine"), secrets.token_urlsafe(32)
    with database.transaction() as connection:
        team = _team_of_device(connection, device)
        connection.execute(
            "DELETE FROM palaver.challenge WHERE team = %s AND device = %s AND expires < now()", (team, device)
        )
        connection.execute(
            """INSERT INTO palaver.challenge (team, hash, device, expires)
            VALUES (%s, %s, %s, now() + make_interval(secs => %s))""",
            (team, digest(nonce), device, _CHALLENGE_SECONDS),
        )
    return Challenge(nonce)


def token(database: TeamDatabase, request: SignedChallenge, audience: str) -> AccessToken:
    """Return a token for a machine that signed its challenge. Each challenge can be used once.

    Raises:
        TeamRefused: The challenge is unknown or expired, the signature is wrong, or the machine is revoked.
    """
    device = uuid_of(request.device, "machine")
    with database.transaction() as connection:
        team = _team_of_device(connection, device)
        asked = connection.execute(
            "DELETE FROM palaver.challenge WHERE team = %s AND hash = %s AND device = %s RETURNING expires > now()",
            (team, digest(request.nonce), device),
        ).fetchone()
        row = connection.execute(
            "SELECT person, key FROM palaver.device WHERE team = %s AND id = %s", (team, device)
        ).fetchone()
        assert row is not None
        person, key = row
    # The challenge is deleted even if the signature is wrong.
    if asked is None or not asked[0] or not _is_signed(key, request):
        raise TeamRefused("The signature of this machine is wrong or late", hint="Try again.", status=401)
    access = secrets.token_urlsafe(32)
    with database.transaction(team, person) as connection:
        connection.execute(
            "DELETE FROM palaver.token WHERE team = %s AND device = %s AND expires < now()", (team, device)
        )
        connection.execute(
            """INSERT INTO palaver.token (team, hash, person, device, scopes, audience, expires)
            VALUES (%s, %s, %s, %s, %s, %s, now() + make_interval(secs => %s))""",
            (team, digest(access), person, device, [*Scope], audience, TOKEN_SECONDS),
        )
    return AccessToken(access, TOKEN_SECONDS)


def caller(database: TeamDatabase, access: str) -> Caller | None:
    """Return who a token belongs to, or None for a token that is unknown, expired, or of a revoked machine."""
    with database.transaction() as connection:
        team = _team(connection, "SELECT palaver.team_of_token(%s)", digest(access))
        if team is None:
            return None
        scope(connection, team)
        row = connection.execute(
            """SELECT t.person, t.device, t.scopes, t.audience, extract(epoch FROM t.expires)::bigint
            FROM palaver.token t LEFT JOIN palaver.device d ON d.team = t.team AND d.id = t.device
            WHERE t.team = %s AND t.hash = %s AND t.expires > now() AND d.revoked IS NULL""",
            (team, digest(access)),
        ).fetchone()
    if row is None:
        return None
    person, device, scopes, audience, expires = row
    return Caller(team, person, device, frozenset(map(Scope, scopes)), audience, expires)


def member_names(connection: Database, team: UUID, person: UUID) -> tuple[str, str]:
    """Return the name of a team, and that of a person in it."""
    row = connection.execute(
        """SELECT t.name, p.name FROM palaver.team t JOIN palaver.person p ON p.team = t.id
        WHERE t.id = %s AND p.id = %s""",
        (team, person),
    ).fetchone()
    assert row is not None
    return row[0], row[1]


def record(connection: Database, team: UUID, person: UUID | None, action: str, target: str) -> None:
    """Write a line of the audit log."""
    connection.execute(
        "INSERT INTO palaver.audit (team, person, action, target) VALUES (%s, %s, %s, %s)",
        (team, person, action, target),
    )


def revoke_device(connection: Database, team: UUID, device: UUID) -> None:
    """Refuse a machine from now on, and delete its tokens."""
    connection.execute(
        "UPDATE palaver.device SET revoked = now() WHERE team = %s AND id = %s AND revoked IS NULL", (team, device)
    )
    connection.execute("DELETE FROM palaver.token WHERE team = %s AND device = %s", (team, device))


# The functions below serve the commands of an administrator, within `administering`.


def create_team(connection: Database, name: str) -> UUID:
    """Create a team.

    Raises:
        InvalidInput: The name is empty or in use.
    """
    team = uuid4()
    if not name.strip():
        raise InvalidInput("The name of the team is empty", hint="Give a name.")
    created = connection.execute(
        "INSERT INTO palaver.team (id, name) VALUES (%s, %s) ON CONFLICT (name) DO NOTHING RETURNING id", (team, name)
    ).fetchone()
    if created is None:
        raise InvalidInput(f"There is a team named {name}", hint="Choose another name, or invite people to it.")
    record(connection, team, None, "create", name)
    return team


def find_team(connection: Database, name: str) -> UUID:
    """Return the ID of a team. An empty name selects the only team.

    Raises:
        InvalidInput: There is no such team, or the name is needed.
    """
    teams: dict[str, UUID] = dict(connection.execute("SELECT name, id FROM palaver.team ORDER BY name").fetchall())
    if not teams:
        raise InvalidInput("There is no team", hint="Create one: palaver team create NAME")
    if not name and len(teams) == 1:
        return next(iter(teams.values()))
    if name not in teams:
        problem = f"No team {name}" if name else "There are several teams"
        raise InvalidInput(problem, hint=f"Choose one with --team: {', '.join(teams)}")
    return teams[name]


def invite(connection: Database, team: UUID, name: str) -> str:
    """Return a code with which a machine of this person can join once. Add a person who is not yet in the team.

    Raises:
        InvalidInput: The name is empty.
    """
    if not name.strip():
        raise InvalidInput("The name of the person is empty", hint="Give a name.")
    connection.execute(
        """INSERT INTO palaver.person (team, id, name) SELECT %(team)s, %(id)s, %(name)s
        WHERE NOT EXISTS (SELECT FROM palaver.person WHERE team = %(team)s AND lower(name) = lower(%(name)s))
        ON CONFLICT (team, name) DO NOTHING""",
        {"team": team, "id": uuid4(), "name": name},
    )
    person = find_person(connection, team, name)
    connection.execute("UPDATE palaver.person SET removed = NULL WHERE team = %s AND id = %s", (team, person))
    letters = b32encode(secrets.token_bytes(_CODE_BYTES)).decode()
    code = "-".join(letters[start : start + 4] for start in range(0, len(letters), 4))
    connection.execute("DELETE FROM palaver.invitation WHERE team = %s AND expires < now()", (team,))
    connection.execute(
        """INSERT INTO palaver.invitation (team, person, hash, expires)
        VALUES (%s, %s, %s, now() + make_interval(secs => %s))""",
        (team, person, digest(normal_code(code)), CODE_SECONDS),
    )
    record(connection, team, person, "invite", name)
    return code


def find_person(connection: Database, team: UUID, name: str) -> UUID:
    """Return the ID of a person. Upper and lower case only matter if several people have this name.

    Raises:
        InvalidInput: The team has no such person.
    """
    return _person(connection, team, name)[0]


def spelling(connection: Database, team: UUID, name: str) -> str:
    """Return the name of a person as the team spells it. Raises the errors of `find_person`."""
    return _person(connection, team, name)[1]


def _person(connection: Database, team: UUID, name: str) -> tuple[UUID, str]:
    rows: list[tuple[UUID, str]] = connection.execute(
        "SELECT id, name FROM palaver.person WHERE team = %s AND lower(name) = lower(%s)", (team, name)
    ).fetchall()
    people = [row for row in rows if row[1] == name] or rows
    if len(people) != 1:
        raise InvalidInput(f"No person {name} in this team", hint="List them: palaver team people")
    return people[0]


def people(connection: Database, team: UUID) -> list[Person]:
    """Return the members of a team, by name."""
    rows = connection.execute(
        """SELECT p.id, p.name, coalesce(array_agg(d.name ORDER BY d.name) FILTER (WHERE d.id IS NOT NULL), '{}'),
            ARRAY(SELECT to_char(expires AT TIME ZONE 'UTC', 'YYYY-MM-DD') FROM palaver.token
                WHERE team = p.team AND person = p.id AND device IS NULL AND expires > now() ORDER BY expires),
            p.removed IS NOT NULL
        FROM palaver.person p
        LEFT JOIN palaver.device d ON d.team = p.team AND d.person = p.id AND d.revoked IS NULL
        WHERE p.team = %s GROUP BY p.team, p.id, p.name, p.removed ORDER BY p.name""",
        (team,),
    )
    return [Person(*row) for row in rows]


def issue_token(
    connection: Database, team: UUID, person: UUID, scopes: Sequence[Scope], audience: str, days: int
) -> str:
    """Return a token of a person for MCP clients at the server with the URL `audience`."""
    access = secrets.token_urlsafe(32)
    connection.execute(
        """INSERT INTO palaver.token (team, hash, person, device, scopes, audience, expires)
        VALUES (%s, %s, %s, NULL, %s, %s, now() + make_interval(days => %s))""",
        (team, digest(access), person, [*scopes], audience, days),
    )
    record(connection, team, person, "token", " ".join(scopes))
    return access


def revoke(connection: Database, team: UUID, name: str, device: str = "") -> int:
    """Revoke the machines and tokens of a person, or one machine. Return the number of revoked machines.

    Raises:
        InvalidInput: There is no such person or machine.
    """
    person = find_person(connection, team, name)
    if not device:  # first, so that a machine that joins meanwhile is among the revoked ones
        connection.execute("DELETE FROM palaver.invitation WHERE team = %s AND person = %s", (team, person))
    rows = connection.execute(
        """SELECT id FROM palaver.device
        WHERE team = %s AND person = %s AND revoked IS NULL AND (%s = '' OR name = %s)""",
        (team, person, device, device),
    ).fetchall()
    if device and not rows:
        raise InvalidInput(f"{name} has no machine {device}", hint="List them: palaver team people")
    for row in rows:
        revoke_device(connection, team, row[0])
    if not device:
        connection.execute("DELETE FROM palaver.token WHERE team = %s AND person = %s", (team, person))
    record(connection, team, person, "revoke", device or name)
    return len(rows)


def normal_code(code: str) -> str:
    """Return a join code without hyphens and spaces, in capitals."""
    return "".join(filter(str.isalnum, code)).upper()


def _team(connection: Database, query: LiteralString, key: object) -> UUID | None:
    row = connection.execute(query, (key,)).fetchone()
    team: UUID | None = row[0] if row else None
    return team


def _team_of_device(connection: Database, device: UUID) -> UUID:
    """Restrict the transaction to the team of a machine, and return it."""
    team = _team(connection, "SELECT palaver.team_of_device(%s)", device)
    row = None
    if team is not None:
        scope(connection, team)
        row = connection.execute(
            "SELECT FROM palaver.device WHERE team = %s AND id = %s AND revoked IS NULL", (team, device)
        ).fetchone()
    if team is None or row is None:
        raise TeamRefused("This machine is not a member of the team, or was revoked", hint=_JOIN_AGAIN, status=401)
    return team


def _public_key(text: str) -> bytes:
    try:
        key = bytes.fromhex(text)
        Ed25519PublicKey.from_public_bytes(key)
    except ValueError:
        raise TeamRefused("The key of the machine is invalid", hint="Update Palaver.", status=422) from None
    return key


def _is_signed(key: bytes, request: SignedChallenge) -> bool:
    try:
        signature = bytes.fromhex(request.signature)
        Ed25519PublicKey.from_public_bytes(key).verify(signature, f"palaver-team:{request.nonce}".encode())
    except (ValueError, InvalidSignature):
        return False
    return True
