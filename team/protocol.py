"""Messages between a machine and the server of a team, as JSON over HTTPS.

All requests are `POST /v1/<name>`, except `GET /v1/hello`. A refused request is answered with a `Refusal`.

| Name | Request | Reply | Needs |
| --- | --- | --- | --- |
| hello | | `Hello` | |
| join | `Join` | `Joined` | a join code |
| challenge | `ChallengeRequest` | `Challenge` | |
| token | `SignedChallenge` | `AccessToken` | |
| push | `Batch` | `Pushed`, or 409 with `Position` | a token with the scope `push` |
| shared | `SharedRequest` | `SharedPage` | a token with the scope `push` |
| status | | `ServerStatus` | a token |
| leave | `Leave` | `Left` | a token with the scope `push` |
| search | `TeamQuery` | `TeamHits` | a token with the scope `read` |

A machine whose epoch was replaced by a newer one is a copy of another machine. It gets 409 with a `Refusal`, and has to
join again.

The numbers of changes, `seq`, are given by one machine, and grow. They order the changes, never clocks.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Final, TypeAlias

from msgspec import Meta, Raw, Struct

from ..core.conversation import Milliseconds

PROTOCOL: Final = 1
ITEMS_MAX: Final = 500
"""Maximum items, and deletions, of one batch."""
BYTES_MAX: Final = 4_000_000
"""Maximum bytes of one batch. A single larger item is sent alone."""
OUTPUT_MAX: Final = 2_000
"""Maximum characters of an output that leave a machine. Archived outputs are shortened to less."""
TOKEN_SECONDS: Final = 900
CODE_SECONDS: Final = 900


class Level(StrEnum):
    """What of a project a team may see. Each level includes those before it."""

    PRIVATE = "private"
    """Nothing."""
    METRICS = "metrics"
    """Counts, tokens and costs by day, agent and model, which the administrator sees for groups of three people."""
    TEAM = "team"
    """Exchanges without secrets, session cards, observations, golden rules and chosen memories."""
    RAW = "raw"
    """Full copies of the exchanges too, with complete outputs, in the encrypted store of the server."""

    @property
    def shows_conversations(self) -> bool:
        """True if the team sees conversations."""
        return self in {Level.TEAM, Level.RAW}


class Scope(StrEnum):
    """Right that a token grants."""

    READ = "read"
    PUSH = "push"


class ItemKind(StrEnum):
    """Kind of an item, with the type of `SharedItem.body`."""

    SESSION = "session"
    """`core.conversation.Session`, without its folder and its links."""
    EXCHANGE = "exchange"
    """`core.conversation.Exchange`"""
    OBSERVATION = "observation"
    """`core.observation.Observation`, also of a session card"""
    MEMORY = "memory"
    """`core.memory.Memory`"""
    USAGE = "usage"
    """`UsageDay`"""
    RAW = "raw"
    """`core.conversation.Exchange` with all turns and complete texts: the full copy of the exchange `event`"""


class SharedProject(Struct, frozen=True):
    """Project of an item: a hash of its normalised Git remote (or of the person and its name), and its name."""

    id: str
    name: str


Count: TypeAlias = Annotated[int, Meta(ge=0, le=1 << 53)]
"""Number of which PostgreSQL can add many."""


class UsageDay(Struct, frozen=True):
    """Use of one model of one agent in a project on one day (UTC, `YYYY-MM-DD`)."""

    day: str
    agent: str
    model: str
    sessions: Count
    exchanges: Count
    tokens_in: Count
    tokens_out: Count
    nano_dollars: Count


class SharedVector(Struct, frozen=True):
    """Embedding of one text of an item, in the format of `archiver.store.StoredVector`, in Base64."""

    part: int
    data: str
    token_bits: str = ""


class SharedItem(Struct, frozen=True):
    """Item that a person shares with a team.

    Attributes:
        id: UUID of the item. It is derived from the person and the content's place, so all machines of a person give
            the same item the same ID.
        seq: Number of the change with which the machine offered this state.
        session: ID of the item with the session, or empty for a memory and for usage.
        event: ID of the exchange to which an observation belongs. Otherwise equal to `id`.
        path: Name of the transcript, without folders, for an exchange and its observations.
        hash: SHA-256 of `body` in hexadecimal.
    """

    id: str
    kind: ItemKind
    seq: int
    project: SharedProject
    hash: str
    body: Raw
    session: str = ""
    event: str = ""
    at: Milliseconds | None = None
    path: str = ""
    vectors: tuple[SharedVector, ...] = ()


class Withdrawn(Struct, frozen=True):
    """Item that is no longer shared: forgotten, made private, or without the text that it was made of."""

    id: str
    seq: int


class Hello(Struct, frozen=True):
    """What a server is. `rules` is the version of its redaction rules, `model` its embedding model.

    `raw` is true if it stores full copies.
    """

    protocol: int
    schema: int
    version: str
    rules: str
    model: str
    raw: bool = False


class Join(Struct, frozen=True):
    """Request of a machine to join. `key` is its public Ed25519 key in hexadecimal."""

    code: str
    key: str
    device_name: str
    epoch: str


class Joined(Struct, frozen=True):
    """IDs and names after joining."""

    team: str
    team_name: str
    person: str
    person_name: str
    device: str


class ChallengeRequest(Struct, frozen=True):
    """Request for a challenge to a machine."""

    device: str


class Challenge(Struct, frozen=True):
    """Text that the machine signs. It can be used once, for one minute."""

    nonce: str


class SignedChallenge(Struct, frozen=True):
    """Proof of a machine: its signature of `palaver-team:<nonce>` in hexadecimal."""

    device: str
    nonce: str
    signature: str


class AccessToken(Struct, frozen=True):
    """Bearer token with the scopes `read` and `push`, valid for `TOKEN_SECONDS`."""

    token: str
    seconds: int


class Batch(Struct, frozen=True):
    """Changes of one machine, in one transaction of the server.

    Attributes:
        epoch: UUID of the machine's list of offered items. A machine that lost part of this list begins a new epoch.
        start: Number of the last change that the machine believes to be on the server.
        end: Number of the last change in this batch.
        model: Name of the embedding model that computed the vectors.
    """

    epoch: str
    start: int
    end: int
    model: str = ""
    items: tuple[SharedItem, ...] = ()
    withdrawn: tuple[Withdrawn, ...] = ()


class Position(Struct, frozen=True):
    """Epoch of a machine, and the number of its last change, as the server knows them."""

    epoch: str
    cursor: int


class Pushed(Struct, frozen=True):
    """Reply to a batch.

    Attributes:
        known: True if the server had the batch already.
        refused: IDs of refused items, with reasons.
        deleted: Number of items that were deleted. Withdrawals of other items are only recorded.
    """

    cursor: int
    known: bool = False
    refused: dict[str, str] = {}
    deleted: int = 0


class SharedRequest(Struct, frozen=True):
    """Request for the items of this machine after an ID, and optionally the start of a new epoch."""

    after: str = ""
    epoch: str = ""


class SharedPage(Struct, frozen=True):
    """IDs and hashes of the items that this machine sent last, by ID. The last page is empty."""

    items: Sequence[tuple[str, str]]


class ServerStatus(Struct, frozen=True):
    """What the server holds of this person, by kind. `erasures` states by when deleted bytes are gone from disks."""

    team: str
    person: str
    position: Position
    own: dict[str, int]
    people: int
    erasures: str = ""


class Leave(Struct, frozen=True):
    """Request to remove this machine. With `withdraw`, everything that the person shares is deleted first."""

    withdraw: bool


class Left(Struct, frozen=True):
    """Number of items that were deleted."""

    deleted: int


class TeamQuery(Struct, frozen=True):
    """Search in what the team shares. `filters` are those of `core.query.Filters`, as JSON.

    With `others`, hits that the asking person shares are left out, because a machine finds them itself.
    """

    text: str
    limit: int = 5
    filters: Raw = Raw(b"{}")
    others: bool = False


class TeamHit(Struct, frozen=True):
    """Hit in what the team shares."""

    id: str
    kind: str
    type: str
    title: str
    person: str
    project: str
    at: Milliseconds | None
    session: str
    score: float
    facts: tuple[str, ...] = ()
    snippet: str = ""


class TeamHits(Struct, frozen=True):
    """Hits, best first, and a sentence about items that were not searched completely, or an empty text."""

    hits: tuple[TeamHit, ...]
    note: str = ""


class Refusal(Struct, frozen=True):
    """Reason why a request was refused, and what to do next."""

    error: str
    hint: str = ""
