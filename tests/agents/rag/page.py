"""Content of the rag specification as data: the text of each parameter, and the shapes of replies."""

import json
import re
from typing import Any

_LEVEL = "USER_PREFERENCE|PROJECT_CONTEXT|SESSION_STATE (optional)"
_CATEGORY = "preference|fact|event|workflow|context"

PARAMETERS: dict[str, dict[str, str]] = {
    "store_memory": {
        "content": "string (required, 1-50000 chars)",
        "category": f"{_CATEGORY} (required)",
        "scope": "global|project (default: global)",
        "project_name": "string (optional)",
        "importance": "float 0.0-1.0 (default: 0.5)",
        "tags": '["string"] (optional)',
        "metadata": "{} (optional)",
        "context_level": "USER_PREFERENCE|PROJECT_CONTEXT|SESSION_STATE (optional, auto-detected)",
    },
    "retrieve_memories": {
        "query": "string (required, 1-1000 chars)",
        "limit": "integer 1-100 (default: 5)",
        "context_level": _LEVEL,
        "scope": "global|project (optional)",
        "project_name": "string (optional)",
        "category": f"{_CATEGORY} (optional)",
        "min_importance": "float 0.0-1.0 (default: 0.0)",
        "tags": '["string"] (optional)',
    },
    "retrieve_preferences": {"query": "string (required)", "limit": "integer (default: 5)"},
    "retrieve_project_context": {
        "query": "string (required)",
        "limit": "integer (default: 5)",
        "project_name": "string (optional)",
    },
    "retrieve_session_state": {"query": "string (required)", "limit": "integer (default: 5)"},
    "delete_memory": {"memory_id": "string (required, UUID format)"},
    "get_memory_stats": {},
    "show_current_context": {"query": "string (optional)"},
    "search_code": {
        "query": "string (required)",
        "project_name": "string (optional, defaults to current project)",
        "limit": "integer 1-50 (default: 10)",
        "file_pattern": "string (optional, e.g., '*/auth/*')",
        "language": "python|javascript|typescript|java|go|rust (optional)",
    },
    "index_codebase": {
        "directory_path": "string (required, absolute path)",
        "project_name": "string (optional, defaults to directory name)",
        "recursive": "boolean (default: true)",
    },
}

MEMORY = {
    "memory_id": str,
    "content": str,
    "category": str,
    "context_level": str,
    "importance": float,
    "score": float,
    "created_at": str,
}
CODE = {
    "file_path": str,
    "start_line": int,
    "end_line": int,
    "unit_type": str,
    "unit_name": str,
    "signature": str,
    "language": str,
    "score": float,
    "content": str,
}
REPLIES: dict[str, dict[str, Any]] = {
    "store_memory": {"memory_id": str, "status": str, "context_level": str},
    "retrieve_memories": {"results": [MEMORY], "count": int},
    "delete_memory": {"deleted": bool, "memory_id": str},
    "search_code": {"results": [CODE], "count": int, "search_time_ms": int},
    "index_codebase": {
        "status": str,
        "files_indexed": int,
        "semantic_units_extracted": int,
        "indexing_time_seconds": float,
        "project_name": str,
    },
    "get_memory_stats": {
        "total_memories": int,
        "by_category": dict.fromkeys(("preference", "fact", "event", "workflow", "context"), int),
        "by_context_level": dict.fromkeys(("USER_PREFERENCE", "PROJECT_CONTEXT", "SESSION_STATE"), int),
        "storage_backend": str,
        "read_only_mode": bool,
        "cache_stats": {"hits": int, "misses": int, "hit_rate": float},
    },
}

ERRORS: dict[str, dict[str, Any]] = {
    "ValidationError": {
        "type": "ValidationError",
        "message": "Potential security threat detected: SQL injection pattern",
        "details": {"pattern": "'; DROP TABLE"},
    },
    "ReadOnlyError": {
        "type": "ReadOnlyError",
        "message": "Server is in read-only mode. Write operations are disabled.",
    },
    "StorageError": {"type": "StorageError", "message": "Failed to connect to Qdrant: Connection refused"},
}
"""Errors of the specification. Ours name SQLite's cause instead of Qdrant's."""


def schema_of(text: str) -> dict[str, Any]:
    """Return the JSON Schema that the text of a parameter stands for."""
    kind, _, note = text.partition(" (")
    kind, _, limits = kind.partition(" ")
    types: dict[str, dict[str, Any]] = {
        "string": {"type": "string"},
        "integer": {"type": "integer"},
        "float": {"type": "number"},
        "boolean": {"type": "boolean"},
        '["string"]': {"type": "array", "items": {"type": "string"}},
        "{}": {"type": "object"},
    }
    schema = types.get(kind) or {"type": "string", "enum": kind.split("|")}
    if limits:
        least, most = map(float, limits.split("-"))
        schema |= {"minimum": least, "maximum": most}
    if characters := re.search(r"(\d+)-(\d+) chars", note):
        schema |= {"minLength": int(characters[1]), "maxLength": int(characters[2])}
    if default := re.search(r"default: ([\w.]+)", note):
        schema["default"] = default[1] if schema["type"] == "string" else json.loads(default[1])
    if "UUID" in note:
        schema["format"] = "uuid"
    return schema
