"""Members of a team in tests: machines that speak HTTP with a running server, and the items that they share."""

import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from time import sleep
from typing import Any, TypeVar
from uuid import UUID, uuid4, uuid5

import httpx2
import uvicorn
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec import Raw, Struct, json
from msgspec.structs import replace

from palaver.archiver.redaction.redactor import Redactor
from palaver.core.conversation import Exchange, Kind, Session, Span, Speaker, Turn
from palaver.core.memory import Memory
from palaver.search.model.embedding import Embedder
from palaver.team.protocol import (
    AccessToken,
    Batch,
    Challenge,
    ChallengeRequest,
    ItemKind,
    Join,
    Joined,
    Leave,
    Left,
    Position,
    Pushed,
    Refusal,
    ServerStatus,
    SharedItem,
    SharedPage,
    SharedProject,
    SharedRequest,
    SignedChallenge,
    UsageDay,
    Withdrawn,
)
from palaver.team.server import identity
from palaver.team.server.app import ServerSettings, TeamServer
from palaver.team.server.database import TeamDatabase, administering
from palaver.team.server.raw_store import RawStore
from palaver.team.server.serving import listening
from palaver.team.server.site import site

from .postgres import DatabaseUrls

_Reply = TypeVar("_Reply")
SPOON = SharedProject("spoon-id", "spoon")


class Refused(Exception):
    """Refused request, with its status and its reason."""

    def __init__(self, status: int, body: bytes) -> None:
        self.status = status
        self.position = json.decode(body, type=Position) if status == 409 and b'"cursor"' in body else None
        self.reason = "" if self.position else json.decode(body, type=Refusal).error
        super().__init__(status, self.reason)


@contextmanager
def serving(
    database: TeamDatabase,
    embedder: Embedder | None = None,
    redactor: Redactor | None = None,
    raw_store: RawStore | None = None,
    **settings: Any,
) -> Generator[str]:
    """Run the application on a free port, and yield its URL."""
    listener = listening("127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    redactor = redactor or Redactor(b"k" * 16)
    app = site(TeamServer(database, ServerSettings(url, "test", **settings), redactor, embedder, raw_store))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started and thread.is_alive():
        sleep(0.01)
    try:
        yield url
    finally:
        server.should_exit = True
        thread.join(10)


def request(url: str, name: str, message: Struct | bytes | None, reply: type[_Reply], token: str = "") -> _Reply:
    """Send a request, and return its reply. Raise `Refused` for another status than 200."""
    body = message if isinstance(message, bytes) else json.encode(message) if message is not None else b""
    headers = {"authorization": f"Bearer {token}"} if token else {}
    with httpx2.Client(timeout=30, trust_env=False) as client:
        response = client.post(f"{url}/v1/{name}", content=body, headers=headers)
    if response.status_code != 200:
        raise Refused(response.status_code, response.content)
    return json.decode(response.content, type=reply)


class Machine:
    """Machine of a person, which gives its changes numbers and sends them in order."""

    def __init__(self, url: str, code: str, name: str = "laptop") -> None:
        self.url, self.key, self.epoch, self.cursor = url, Ed25519PrivateKey.generate(), str(uuid4()), 0
        key = self.key.public_key().public_bytes_raw().hex()
        self.joined = request(url, "join", Join(code, key, name, self.epoch), Joined)
        self.access = ""

    @property
    def token(self) -> str:
        """Access token, requested at its first use."""
        if not self.access:
            self.access = self.new_token()
        return self.access

    def new_token(self, key: Ed25519PrivateKey | None = None) -> str:
        """Return a token for the signature of a challenge."""
        device = self.joined.device
        nonce = request(self.url, "challenge", ChallengeRequest(device), Challenge).nonce
        signature = (key or self.key).sign(f"palaver-team:{nonce}".encode()).hex()
        return request(self.url, "token", SignedChallenge(device, nonce, signature), AccessToken).token

    def post(self, name: str, message: Struct | bytes | None, reply: type[_Reply]) -> _Reply:
        """Send a request with the token of this machine."""
        return request(self.url, name, message, reply, self.token)

    def batch(self, items: Sequence[SharedItem] = (), withdrawn: Sequence[str] = ()) -> Batch:
        """Return a batch with new numbers for these changes."""
        numbers = iter(range(self.cursor + 1, self.cursor + 1 + len(items) + len(withdrawn)))
        offered = tuple(shared_again(item, next(numbers)) for item in items)
        gone = tuple(Withdrawn(name, next(numbers)) for name in withdrawn)
        return Batch(self.epoch, self.cursor, self.cursor + len(offered) + len(gone), "", offered, gone)

    def push(self, items: Sequence[SharedItem] = (), withdrawn: Sequence[str] = ()) -> Pushed:
        """Send changes, and advance the cursor."""
        pushed = self.send(self.batch(items, withdrawn))
        self.cursor = pushed.cursor
        return pushed

    def send(self, batch: Batch) -> Pushed:
        """Send a batch."""
        return self.post("push", batch, Pushed)

    def status(self) -> ServerStatus:
        """Return what the server holds."""
        return self.post("status", None, ServerStatus)

    def shared(self, after: str = "", epoch: str = "") -> list[tuple[str, str]]:
        """Return a page of the items that this machine shares."""
        return [*self.post("shared", SharedRequest(after, epoch), SharedPage).items]

    def begin(self) -> list[tuple[str, str]]:
        """Begin a new epoch."""
        self.epoch, self.cursor = str(uuid4()), 0
        return self.shared(epoch=self.epoch)

    def leave(self, *, withdraw: bool = False) -> int:
        """Leave the team."""
        return self.post("leave", Leave(withdraw), Left).deleted


def shared_again(item: SharedItem, seq: int) -> SharedItem:
    """Return an item with another number."""
    return replace(item, seq=seq)


def item(kind: ItemKind, value: object, name: str, **fields: Any) -> SharedItem:
    """Return an item with a body. Its ID is derived from `name`."""
    body = value if isinstance(value, bytes) else json.encode(value)
    return SharedItem(item_id(name), kind, 0, SPOON, sha256(body).hexdigest(), Raw(body), **fields)


def item_id(name: str) -> str:
    """Return the ID of an item with this name."""
    return str(uuid5(UUID(int=7), name))


def exchange(text: str, name: str = "", at: int = 1_700_000_000_000, **fields: Any) -> SharedItem:
    """Return an exchange with a prompt."""
    turn = Turn(1, Speaker.HUMAN, Kind.PROMPT, text, at)
    value = Exchange(0, Span(1, 1, 0, 10), (turn,), at, at)
    return item(ItemKind.EXCHANGE, value, name or text, at=at, path="a.jsonl", **fields)


def full_copy(shared: SharedItem, output: str) -> SharedItem:
    """Return the full copy of an exchange of one line, with an output that the exchange lacks."""
    value = json.decode(shared.body, type=Exchange)
    result = Turn(1, Speaker.TOOL, Kind.RESULT, output, value.started)
    return item(
        ItemKind.RAW,
        replace(value, turns=(*value.turns, result)),
        f"raw {shared.id}",
        event=shared.id,
        session=shared.session,
        path=shared.path,
    )


def session(name: str) -> SharedItem:
    """Return a session."""
    return item(ItemKind.SESSION, Session("claude-code", name, title=name), name)


def memory(text: str, **fields: Any) -> SharedItem:
    """Return a memory."""
    return item(ItemKind.MEMORY, Memory(text, **fields), text)


def usage(day: str, name: str, tokens: int = 10) -> SharedItem:
    """Return the use of one day."""
    return item(ItemKind.USAGE, UsageDay(day, "claude-code", "opus", 1, 2, tokens, 1, 1000), f"{day} {name}")


def invited(urls: DatabaseUrls, person: str, team: str = "acme") -> str:
    """Return a code of a person, in a team that is created if needed."""
    with administering(urls.owner) as connection:
        row = connection.execute("SELECT id FROM palaver.team WHERE name = %s", (team,)).fetchone()
        return identity.invite(connection, row[0] if row else identity.create_team(connection, team), person)
