"""Memories that users and agents store.

`MemoryCore` is the entry point, and `Memories` the protocol that it implements. A new memory is redacted, compared with
similar memories (`contradictions.py`) and linked to them (`supersession.py`). Feedback
changes its confidence. `session_context.py` selects memories for a new session.
"""

from .contradictions import Judge, JudgeFactory, Judgement, MemoryPair, RuleJudge, Verdict
from .feedback import is_proven
from .memory_core import LIST_MAX, Memories, MemoryCore
from .memory_graph import MemoryNeighborhood, parse_relation
from .memory_writer import RememberResult, UndoneChange
from .recall import RecalledMemory, SimilarMemory, near_the_best
from .session_context import GLOBAL_NAMESPACES, SessionContext
from .supersession import contradicting

__all__ = [
    "GLOBAL_NAMESPACES",
    "LIST_MAX",
    "Judge",
    "JudgeFactory",
    "Judgement",
    "Memories",
    "MemoryCore",
    "MemoryNeighborhood",
    "MemoryPair",
    "RecalledMemory",
    "RememberResult",
    "RuleJudge",
    "SessionContext",
    "SimilarMemory",
    "UndoneChange",
    "Verdict",
    "contradicting",
    "is_proven",
    "near_the_best",
    "parse_relation",
]
