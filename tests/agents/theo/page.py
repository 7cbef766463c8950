"""Content of Theo's specification as data: the parameters of every tool and the fields of each reply.

A parameter is its JSON type. `*` marks required parameters, `=` a default, and `|` an enumeration. Four tools have no
example in the specification. Their data comes from the original project.
"""

from typing import Any, cast

TYPES = ["preference", "decision", "pattern", "session", "fact"]
RELATIONS = ["relates_to", "supersedes", "caused_by", "contradicts"]
DIRECTIONS = ["outgoing", "incoming", "both"]


def needed(kind: str, **more: Any) -> dict[str, Any]:
    """Return the description of a required parameter."""
    return {"type": kind, "required": True, **more}


def optional(kind: str, default: object = None, **more: Any) -> dict[str, Any]:
    """Return the description of an optional parameter."""
    return {"type": kind, "required": False, **({} if default is None else {"default": default}), **more}


TEXT, NUMBER, WHOLE, FLAG, OBJECT, LIST = "string", "number", "integer", "boolean", "object", "array"

PARAMETERS: dict[str, dict[str, dict[str, Any]]] = {
    "index_file": {"file_path": needed(TEXT), "namespace": optional(TEXT, "default")},
    "index_directory": {
        "dir_path": needed(TEXT),
        "recursive": optional(FLAG, True),
        "namespace": optional(TEXT, "default"),
        "async_mode": optional(FLAG, True),
    },
    "search": {"query": needed(TEXT), "n_results": optional(WHOLE, 5, minimum=1, maximum=50)},
    "search_with_filters": {"query": needed(TEXT), "filters": needed(OBJECT), "n_results": optional(WHOLE, 5)},
    "search_with_budget": {"query": needed(TEXT), "max_tokens": needed(WHOLE, default=3000)},
    "memory_store": {
        "content": needed(TEXT),
        "memory_type": optional(TEXT, "session", enum=TYPES),
        "namespace": optional(TEXT, "global"),
        "importance": optional(NUMBER, 0.5),
        "metadata": optional(OBJECT),
    },
    "memory_recall": {
        "query": needed(TEXT),
        "n_results": optional(WHOLE, 5),
        "namespace": optional(TEXT),
        "memory_type": optional(TEXT),
        "min_importance": optional(NUMBER),
        "min_confidence": optional(NUMBER),
    },
    "memory_forget": {
        "memory_id": optional(TEXT),
        "query": optional(TEXT),
        "input_value": optional(TEXT),
        "namespace": optional(TEXT),
        "n_results": optional(WHOLE, 5),
        "force": optional(FLAG, False),
    },
    "memory_context": {
        "query": optional(TEXT),
        "namespace": optional(TEXT),
        "token_budget": optional(WHOLE, 4000),
    },
    "memory_apply": {"memory_id": needed(TEXT), "context": needed(TEXT), "session_id": optional(TEXT)},
    "memory_outcome": {
        "memory_id": needed(TEXT),
        "success": needed(FLAG),
        "error_msg": optional(TEXT),
        "session_id": optional(TEXT),
    },
    "memory_relate": {
        "source_id": needed(TEXT),
        "target_id": needed(TEXT),
        "relation": needed(TEXT, enum=RELATIONS),
        "weight": optional(NUMBER, 1.0),
    },
    "memory_edge_forget": {
        "edge_id": optional(WHOLE),
        "memory_id": optional(TEXT),
        "source_id": optional(TEXT),
        "target_id": optional(TEXT),
        "relation": optional(TEXT),
        "direction": optional(TEXT, "both", enum=DIRECTIONS),
    },
    "memory_inspect_graph": {
        "memory_id": needed(TEXT),
        "max_depth": optional(WHOLE, 2),
        "direction": optional(TEXT, "both", enum=DIRECTIONS),
        "edge_types": optional(LIST, items={"type": TEXT}),
        "include_scores": optional(FLAG, True),
        "decay_factor": optional(NUMBER, 0.7),
        "output_format": optional(TEXT, "json", enum=["json", "mermaid"]),
    },
    "memory_count": {"namespace": optional(TEXT), "memory_type": optional(TEXT)},
    "memory_list": {
        "namespace": optional(TEXT),
        "memory_type": optional(TEXT),
        "limit": optional(WHOLE, 100),
        "offset": optional(WHOLE, 0),
        "order_by": optional(TEXT, "created_at"),
        "descending": optional(FLAG, True),
    },
    "memory_list_namespaces": {},
    "validation_history": {"memory_id": needed(TEXT), "event_type": optional(TEXT), "limit": optional(WHOLE, 50)},
    "memory_detect_contradictions": {
        "memory_id": needed(TEXT),
        "similarity_threshold": optional(NUMBER, 0.7),
        "create_edges": optional(FLAG, True),
    },
    "memory_check_supersedes": {"memory_id": needed(TEXT), "create_edge": optional(FLAG, True)},
    "memory_analyze_health": {
        "namespace": optional(TEXT),
        "include_contradictions": optional(FLAG, True),
        "include_low_confidence": optional(FLAG, True),
        "include_stale": optional(FLAG, True),
        "stale_days": optional(WHOLE, 30),
    },
    "memory_backfill_edges": {
        "namespace": optional(TEXT),
        "batch_size": optional(WHOLE, 50),
        "max_memories": optional(WHOLE, 500),
        "dry_run": optional(FLAG, False),
    },
    "delete_chunks": {"ids": needed(LIST, items={"type": TEXT})},
    "delete_file": {"source_file": needed(TEXT)},
    "clear_index": {"confirm": needed(FLAG)},
    "get_index_stats": {},
    "trace_query": {"file": needed(TEXT), "line": optional(WHOLE)},
    "trace_list": {"conversation_url": optional(TEXT), "limit": optional(WHOLE, 20)},
}

FILTERS = {"namespace": TEXT, "doc_type": TEXT, "source_file": TEXT}
"""Filters of `search_with_filters`."""

Shape = dict[str, Any]
NULL = type(None)
RESULT: Shape = {
    "id": str,
    "content": str,
    "score": float,
    "namespace": str,
    "doc_type": str,
    "metadata": {"source_file": str, "chunk_index": int, "header_path": str},
}
REPLIES: dict[str, Shape] = {
    "index_file": {"chunks_created": int, "source_file": str, "namespace": str, "chunk_ids": [str]},
    "index_directory": {
        "files_indexed": int,
        "total_chunks": int,
        "failed_files": [{"file": str, "error": str}],
        "skipped_duplicates": int,
    },
    "search": {"results": [RESULT], "total": int, "query": str, "total_tokens": int},
    "search_with_filters": {"results": [RESULT], "total": int, "query": str, "total_tokens": int},
    "search_with_budget": {
        "results": [RESULT],
        "tokens_used": int,
        "budget_remaining": int,
        "truncated": bool,
        "truncated_count": int,
    },
    "memory_store": {
        "id": str,
        "content_hash": str,
        "namespace": str,
        "memory_type": str,
        "duplicate": bool,
        "confidence": float,
    },
    "memory_recall": {
        "memories": [
            {
                "id": str,
                "content": str,
                "memory_type": str,
                "namespace": str,
                "confidence": float,
                "importance": float,
                "score": float,
            }
        ],
        "total": int,
        "query": str,
        "filters": {"namespace": NULL, "memory_type": NULL},
    },
    "memory_forget": {"deleted_ids": [str], "deleted_count": int, "protected_ids": list},
    "memory_context": {"context": str, "token_estimate": int, "memory_count": int, "golden_rule_count": int},
    "memory_apply": {"memory_id": str, "event_id": int},
    "memory_outcome": {
        "memory_id": str,
        "outcome_success": bool,
        "old_confidence": float,
        "new_confidence": float,
        "promoted": bool,
    },
    "memory_relate": {"edge_id": int},
    "memory_edge_forget": {"deleted_ids": [int], "deleted_count": int},
    "memory_count": {"count": int, "filters": {"namespace": str, "memory_type": NULL}},
    "memory_list": {
        "memories": [{"id": str, "content": str, "memory_type": str, "confidence": float, "created_at": str}],
        "total": int,
        "limit": int,
        "offset": int,
    },
    "memory_list_namespaces": {"namespaces": [{"namespace": str, "count": int}], "total_memories": int},
    "validation_history": {
        "events": [{"id": int, "event_type": str, "context": str, "timestamp": str}],
        "summary": {"total_applications": int, "success_count": int, "failure_count": int, "success_rate": float},
    },
    "memory_detect_contradictions": {
        "contradictions": [{"memory_id": str, "content": str, "similarity": float, "contradiction_reason": str}],
        "edges_created": int,
    },
    "memory_check_supersedes": {"superseded_id": str, "edge_created": bool},
    "memory_analyze_health": {
        "contradictions": [{"id1": str, "id2": str, "similarity": float}],
        "low_confidence": [{"id": str, "confidence": float}],
        "stale": [{"id": str, "last_validated": str}],
        "recommendations": [str],
    },
    "memory_backfill_edges": {
        "initial_orphan_count": int,
        "processed": int,
        "edges_created": int,
        "remaining_orphans": int,
        "errors": list,
    },
    "delete_chunks": {"deleted_count": int, "deleted_ids": [str]},
    "delete_file": {"deleted_count": int, "source_file": str},
    "clear_index": {"deleted_count": int},
    "get_index_stats": {
        "total_documents": int,
        "unique_sources": int,
        "source_files": [str],
        "namespaces": [str],
        "memory_count": int,
        "golden_rule_count": int,
    },
}
GRAPH: Shape = {
    "success": bool,
    "origin_id": str,
    "nodes": [{"id": str, "content": str, "depth": int, "relevance": float}],
    "edges": [{"id": int, "source": str, "target": str, "relation": str}],
    "paths": [{"path": [str], "total_relevance": float}],
    "stats": {"total_nodes": int, "total_edges": int, "max_depth_reached": int},
}
"""Reply without a `data` object."""


def misses(shape: object, value: object, where: str = "data") -> list[str]:
    """Return the fields of the specification that a reply lacks or has with another type, and its empty lists."""
    if isinstance(shape, dict):
        return _fields_missed(cast("Shape", shape), value, where)
    if isinstance(shape, list):
        if not isinstance(value, list) or not value:
            return [f"{where} has no entries: {value!r}"]
        [entry], entries = cast("list[object]", shape), cast("list[object]", value)
        return [fault for each in entries for fault in misses(entry, each, f"{where}[]")]
    assert isinstance(shape, type)
    allowed = (int, float) if shape is float else shape
    wrong = not isinstance(value, allowed) or (shape is not bool and isinstance(value, bool))
    return [f"{where} is {value!r}"] if wrong else []


def _fields_missed(shape: Shape, value: object, where: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{where} is no object: {value!r}"]
    fields = cast("dict[str, object]", value)
    faults = [f"{where}.{name} is missing" for name in shape if name not in fields]
    present = [name for name in shape if name in fields]
    return faults + [fault for name in present for fault in misses(shape[name], fields[name], f"{where}.{name}")]
