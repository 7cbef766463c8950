"""Content of Historian's specification as data: parameters and fields of replies."""

from typing import Any

TEXT: dict[str, Any] = {"type": "string", "required": True}
OPTIONAL: dict[str, Any] = {"type": "string", "required": False}

PARAMETERS: dict[str, dict[str, dict[str, Any]]] = {
    "memory_list_types": {},
    "memory_remember": {
        "title": TEXT,
        "content": TEXT,
        "memoryType": TEXT,
        "tags": {"type": "array", "items": {"type": "string"}, "required": False},
    },
    "memory_recall": {
        "query": TEXT,
        "memoryType": OPTIONAL,
        "limit": {"type": "number", "default": 10, "required": False},
    },
    "memory_compound": {"query": TEXT, "modifications": TEXT, "memoryType": OPTIONAL},
    "memory_forget": {
        "query": TEXT,
        "memoryType": OPTIONAL,
        "confirm": {"type": "boolean", "default": False, "required": False},
    },
}

LISTED = {"types": [{"name": str, "description": str}], "fallbackType": str, "fallbackDescription": str}
REMEMBERED = {"success": bool, "filePath": str, "memoryType": str, "tags": [str]}
RECALLED = {"memories": [{"path": str, "score": float, "content": str}]}
COMPOUNDED = {"success": bool, "filePath": str, "memoryType": str}
OFFERED = {"confirmRequired": bool, "candidates": [{"path": str, "score": float}]}
DELETED = {"success": bool, "deletedFiles": int, "files": [str]}

BUILT_IN = (
    "architectural-decision",
    "design-decision",
    "learning",
    "user-preference",
    "project-preference",
    "issue",
    "context",
    "recurring-pattern",
    "conventions-pattern",
)
