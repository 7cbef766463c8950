"""Labels for the kinds of hits in lists and headings."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from ..core.amount import many
from ..core.query import HitKind
from ..core.results import Detail, Hit
from .quote import brief, line

_SESSION: Final = "session"
"""Kind of a hit that represents a whole session."""
_PLURALS: Final[Mapping[str, tuple[str, str]]] = {
    _SESSION: ("session", "sessions"),
    HitKind.OBSERVATION: ("observation", "observations"),
    HitKind.EXCHANGE: ("exchange", "exchanges"),
    HitKind.MEMORY: ("memory", "memories"),
    HitKind.DOCUMENT: ("document passage", "document passages"),
    HitKind.CODE: ("code passage", "code passages"),
}
SESSIONS: Final = 3
"""Maximum number of other session IDs in a reply. Each costs about 25 tokens."""
_ID_TOKENS: Final = 40


def counted(items: Sequence[Hit] | Sequence[Detail]) -> str:
    """Return the number of items of each kind, for example `2 observations, 1 exchange`."""
    found = Counter(item.kind for item in items) or Counter({str(HitKind.OBSERVATION): 0})
    return ", ".join(many(found[kind], *plurals) for kind, plurals in _PLURALS.items() if kind in found)


def plural_of(kinds: Sequence[str]) -> str:
    """Return the plural name of the kind that was searched, or `observations` if several kinds were searched."""
    return _PLURALS[HitKind(kinds[0]) if len(kinds) == 1 else HitKind.OBSERVATION][1]


def has_transcript(item: Hit | Detail) -> bool:
    """Return whether an item has a transcript to read. Memories and documents have no transcript."""
    return item.kind in (HitKind.OBSERVATION, HitKind.EXCHANGE, _SESSION)


def label(item: Hit | Detail) -> str:
    """Return the type of an observation or memory, or the kind of any other item."""
    kind, type_ = item.kind, item.type if isinstance(item, Hit) else item.observation.type
    if isinstance(item, Detail) and item.observation.is_summary:
        return _SESSION
    match kind:
        case HitKind.EXCHANGE:
            return "exchange"
        case HitKind.MEMORY:
            return f"{line(type_)} memory" if isinstance(item, Hit) else "memory"
        case HitKind.DOCUMENT | HitKind.CODE | "session":
            return kind
        case _:
            return line(type_)


def other_sessions(sessions: Sequence[str]) -> str:
    """Return the number and the first IDs of other sessions with the same text, or an empty text if there are none."""
    if not sessions:
        return ""
    named = ", ".join(brief(name, _ID_TOKENS) for name in sessions[:SESSIONS])
    return f"{many(len(sessions), 'session')}: {named}{', …' if len(sessions) > SESSIONS else ''}"
