"""Status of this machine in its team: what is shared, what waits, and what the server holds."""

from msgspec import Struct, field

from ...core.errors import TeamRefused, TeamUnreachable
from ...observe.archive import Archive
from ..protocol import ServerStatus
from .levels import SharedLevel, shared_levels
from .membership import connect, joined
from .offers import Offers
from .push import TeamPush

_SECONDS = 5.0


class TeamStatus(Struct):
    """Status of this machine.

    Attributes:
        memories: Number of memories that the user chose.
        waiting: Number of items that the next push sends.
        leaving: Number of items that the next push withdraws at most.
        refused: Number of items that the server refused, by reason.
        own: Number of items that the server holds of this person, from all machines, by kind.
        erasures: By when deleted bytes are gone from the server's disks.
        problem: Why the server did not answer or refused this machine, with the next step, or an empty text.
        is_refused: True if the server refused this machine.
    """

    team: str
    url: str
    person: str
    projects: list[SharedLevel]
    memories: int
    waiting: int
    leaving: int
    refused: dict[str, int]
    people: int = 0
    own: dict[str, int] = field(default_factory=dict[str, int])
    erasures: str = ""
    problem: str = ""
    is_refused: bool = False


def team_status(archive: Archive) -> TeamStatus:
    """Return the status, also if the server does not answer. Nothing is stored.

    Raises:
        InvalidInput: This machine belongs to no team.
    """
    store = archive.store
    membership = joined(store)
    preview = TeamPush(archive).preview()
    status = TeamStatus(
        membership.team_name, membership.url, membership.person_name,
        [*shared_levels(store, Offers(archive, membership))], len(store.team.choices().memories),
        preview.items.total(), preview.withdrawn, store.team.problems(),
    )  # fmt: skip
    try:
        with connect(archive.home, membership, _SECONDS) as server:
            reply = server.post("status", None, ServerStatus)
    except (TeamRefused, TeamUnreachable) as problem:
        status.problem, status.is_refused = problem.full_message, isinstance(problem, TeamRefused)
    else:
        status.people, status.own, status.erasures = reply.people, reply.own, reply.erasures
    return status
