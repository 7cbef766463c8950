"""Called: what a hit can be, so that each thing is called what it is."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from ..core.amount import many
from ..core.query import HitKind
from ..core.results import Detail, Hit
from .quote import line

_MANY: Final = {
    HitKind.OBSERVATION: ("observation", "observations"),
    HitKind.EXCHANGE: ("exchange", "exchanges"),
    HitKind.MEMORY: ("memory", "memories"),
    HitKind.DOCUMENT: ("document passage", "document passages"),
    HitKind.CODE: ("code passage", "code passages"),
}


def counted(items: Sequence[Hit] | Sequence[Detail]) -> str:
    """How many there are of each kind, as in `2 observations, 1 exchange`."""
    found = Counter(HitKind(item.kind) for item in items) or Counter({HitKind.OBSERVATION: 0})
    return ", ".join(many(found[kind], *_MANY[kind]) for kind in HitKind if kind in found)


def sought(kinds: Sequence[str]) -> str:
    """What a search was for that found nothing: the one kind that was asked for, or observations."""
    return _MANY[HitKind(kinds[0])][1] if len(kinds) == 1 else _MANY[HitKind.OBSERVATION][1]


def was_said(item: Hit | Detail) -> bool:
    """Whether a transcript proves it; a memory and a passage of a document have none that could be read."""
    return item.kind in (HitKind.OBSERVATION, HitKind.EXCHANGE)


def called(item: Hit | Detail) -> str:
    """What one of them is: an observation by its type, a memory by that it is one, others by their kind."""
    kind, type_ = item.kind, item.type if isinstance(item, Hit) else item.observation.type
    match kind:
        case HitKind.EXCHANGE:
            return "exchange"
        case HitKind.MEMORY:
            return f"{line(type_)} memory" if isinstance(item, Hit) else "memory"
        case HitKind.DOCUMENT | HitKind.CODE:
            return kind
        case _:
            return line(type_)
