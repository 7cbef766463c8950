"""Membership of this machine: join a team by a code, and leave it.

The key of the machine is in a file that is useless in a copy of the home, so two machines never push as one.
"""

import socket
from typing import Final
from uuid import uuid4

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec.structs import replace

from ...archiver.store import Store
from ...archiver.store.team_table import Membership
from ...core.errors import InvalidInput, TeamRefused
from ...core.home import Home
from ...observe.sync.keyring import DeviceKey
from ..protocol import Join, Joined, Leave, Left
from .server_connection import SECONDS, ServerConnection, checked_url, join_again

JOIN_HINT: Final = "To join: palaver team join URL CODE"


def joined(store: Store) -> Membership:
    """Return the team of this machine. Raises `InvalidInput` if it belongs to none."""
    membership = store.team.joined()
    if membership is None:
        raise InvalidInput("This machine belongs to no team", hint=JOIN_HINT)
    return membership


def connect(home: Home, membership: Membership, seconds: float = SECONDS) -> ServerConnection:
    """Return a connection to the server that this machine joined.

    Raises:
        TeamRefused: The key of this machine is missing, for example because the home was copied from another machine.
    """
    key = DeviceKey(home.team_key).load()
    if key is None:
        raise TeamRefused(
            "The key of this machine is missing, or the home was copied from another machine or disk",
            hint=join_again(membership.url),
        )
    tokens = None if home.read_only else home.team_key.with_name("token")
    return ServerConnection(membership.url, membership.device, key, tokens, seconds)


def join(home: Home, store: Store, url: str, code: str) -> Membership:
    """Join a team with a code that its administrator gave. Nothing is shared until a project gets a level.

    A machine that lost its key, or was revoked, joins again with the same levels, and sends everything again.

    Raises:
        InvalidInput: The URL is invalid, or this machine belongs to a team on another server.
        TeamRefused: The code is unknown, used or expired.
        TeamUnreachable: The server did not answer.
    """
    url, before = checked_url(url), store.team.membership()
    if before is not None and before.device and url != before.url:
        name = f"{before.team_name} at {before.url}"
        raise InvalidInput(f"This machine belongs to the team {name}", hint="To leave it: palaver team leave")
    key, epoch = Ed25519PrivateKey.generate(), str(uuid4())
    with ServerConnection(url) as server:
        server.hello()
        public = key.public_key().public_bytes_raw().hex()
        reply = server.open_post("join", Join(code.strip(), public, socket.gethostname()[:200], epoch), Joined)
    membership = Membership(
        url, reply.team, reply.team_name, reply.person, reply.person_name, reply.device, epoch,
        last=before.last if before else 0,
    )  # fmt: skip
    same_person = before is not None and (before.team, before.person) == (reply.team, reply.person)
    DeviceKey(home.team_key).store(key)
    with store.transaction():
        store.team.start_again(same_person=same_person)
        store.team.save(membership)
    return membership


def leave(home: Home, store: Store, *, withdraw: bool = False, only_here: bool = False) -> int:
    """Leave the team. Return the number of items that the server deleted.

    With `withdraw`, the server deletes everything that this person shares, from all machines. With `only_here`, the
    server is not asked, so what this machine shared stays there.

    Raises:
        TeamRefused: The server refused the request.
        TeamUnreachable: The server did not answer.
    """
    membership, deleted = joined(store), 0
    if not only_here:
        with connect(home, membership) as server:
            deleted = server.post("leave", Leave(withdraw), Left).deleted
    with store.transaction():
        store.team.leave(withdrawn=withdraw)
    for name in ("token", "device.key"):
        home.team_key.with_name(name).unlink(missing_ok=True)
    return deleted


def advanced(membership: Membership, cursor: int) -> Membership:
    """Return the membership after the server acknowledged all changes up to a number."""
    return replace(membership, cursor=cursor, sent=cursor, last=max(membership.last, cursor))
