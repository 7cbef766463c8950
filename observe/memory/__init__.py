"""The memory core: what is held to be true, how sure it is, and how it hangs together. Every surface stands on it."""

from .changes import Revision
from .comparing import Compared
from .confidence import proven
from .conflicts import Conflict, Conflicts
from .context import EVERYWHERE, Context, Contexts, ContextSection
from .core import MemoryCore
from .expanding import Expanded, Expanding
from .graph import Backfilled, Graph, GraphNode, GraphPath, Neighbourhood, relation_of
from .health import Contradiction, Health, HealthCheck
from .judging import Judge, Judgement, Judging, OfflineJudge, Pair, Verdict
from .learning import Learning, Outcome, Validation
from .memories import LIST_MAX, Forgotten, Memories, Undone
from .recalling import Recalled, Recalling, near_the_best
from .remembering import Remembered, Remembering

__all__ = [
    "EVERYWHERE",
    "LIST_MAX",
    "Backfilled",
    "Compared",
    "Conflict",
    "Conflicts",
    "Context",
    "ContextSection",
    "Contexts",
    "Contradiction",
    "Expanded",
    "Expanding",
    "Forgotten",
    "Graph",
    "GraphNode",
    "GraphPath",
    "Health",
    "HealthCheck",
    "Judge",
    "Judgement",
    "Judging",
    "Learning",
    "Memories",
    "MemoryCore",
    "Neighbourhood",
    "OfflineJudge",
    "Outcome",
    "Pair",
    "Recalled",
    "Recalling",
    "Remembered",
    "Remembering",
    "Revision",
    "Undone",
    "Validation",
    "Verdict",
    "near_the_best",
    "proven",
    "relation_of",
]
