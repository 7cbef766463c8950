"""Memories that users and agents store.

`MemoryCore` is the entry point. It redacts a new memory, compares it with similar memories, and links it to
those that it contradicts or supersedes (`contradictions.py`). Feedback changes its confidence. `session_context.py`
selects memories for a new session.
"""

from .contradictions import Judge, JudgeFactory, contradicting
from .feedback import is_proven
from .memory_core import (
    LIST_MAX,
    MemoryCore,
    RecalledMemory,
    RememberResult,
    SimilarMemory,
    UndoneChange,
    near_the_best,
)
from .memory_graph import MemoryNeighborhood, parse_relation
from .rule_judge import Judgement, MemoryPair, RuleJudge, Verdict
from .session_context import GLOBAL_NAMESPACES, SessionContext

__all__ = [
    "GLOBAL_NAMESPACES",
    "LIST_MAX",
    "Judge",
    "JudgeFactory",
    "Judgement",
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
