"""Memories that users and agents store.

`MemoryCore` is the entry point, and `Memories` the protocol that it implements. A new memory is redacted, compared with
similar memories (`contradictions.py`, judged by `rule_judge.py`) and linked to them (`supersession.py`). Feedback
changes its confidence. `session_context.py` selects memories for a new session.
"""

from .contradictions import Comparison, Contradictions, DetectedConflict
from .feedback import ConfidenceChange, Feedback, ValidationHistory, is_proven
from .memory_core import LIST_MAX, Memories, MemoryCore
from .memory_edits import ForgottenMemories, UndoneChange
from .memory_graph import BackfillResult, ExpandedMemory, MemoryNeighborhood, MemoryPath, parse_relation
from .memory_health import MemoryHealth
from .memory_records import contradicting
from .memory_writer import RememberResult
from .recall import RecalledMemory, near_the_best
from .rule_judge import Judge, JudgeFactory, Judgement, MemoryPair, RuleJudge, Verdict
from .session_context import GLOBAL_NAMESPACES, ContextSection, SessionContext

__all__ = [
    "GLOBAL_NAMESPACES",
    "LIST_MAX",
    "BackfillResult",
    "Comparison",
    "ConfidenceChange",
    "ContextSection",
    "Contradictions",
    "DetectedConflict",
    "ExpandedMemory",
    "Feedback",
    "ForgottenMemories",
    "Judge",
    "JudgeFactory",
    "Judgement",
    "Memories",
    "MemoryCore",
    "MemoryHealth",
    "MemoryNeighborhood",
    "MemoryPair",
    "MemoryPath",
    "RecalledMemory",
    "RememberResult",
    "RuleJudge",
    "SessionContext",
    "UndoneChange",
    "ValidationHistory",
    "Verdict",
    "contradicting",
    "is_proven",
    "near_the_best",
    "parse_relation",
]
