"""Content of the fabric specification as data: its parameters, expressions, events and replies."""

from typing import Any

PARAMETERS: dict[str, dict[str, str]] = {
    "context.getCurrent": {
        "sessionId": "string required",
        "currentFile": "string",
        "currentCommand": "string",
        "projectPath": "string",
        "language": "string",
        "filePath": "string",
    },
    "context.store": {
        "type": "string required",
        "content": "string required",
        "metadata": "object required",
        "layer": "number",
        "ttl": "number",
        "pinned": "boolean",
    },
    "context.store.metadata": {
        "tags": "string[] = []",
        "title": "string",
        "confidence": "number = 0.8",
        "source": "string = ai_inferred",
        "projectPath": "string",
        "cliType": "string = generic",
        "fileContext": "object",
        "codeBlock": "object",
        "weight": "number = 3",
    },
    "context.recall": {
        "query": "string required",
        "sessionId": "string required",
        "limit": "number = 10",
        "threshold": "number = 0.7",
        "mode": "string = hybrid",
        "filter": "object",
    },
    "context.recall.filter": {"types": "string[]", "layers": "number[]", "tags": "string[]", "projectPath": "string"},
    "context.orient": {"timezone": "string", "projectPath": "string", "expression": "string", "also": "string[]"},
    "context.searchCode": {
        "query": "string required",
        "mode": "string = semantic",
        "language": "string",
        "filePattern": "string",
        "symbolKind": "string",
        "limit": "number = 10",
        "threshold": "number = 0.5",
        "includeContent": "boolean = true",
        "projectPath": "string",
    },
    "context.get": {"memoryId": "string required", "projectPath": "string"},
    "context.update": {
        "memoryId": "string required",
        "content": "string",
        "metadata": "object",
        "tags": "string[]",
        "weight": "number",
        "pinned": "boolean",
        "targetLayer": "number",
        "projectPath": "string",
    },
    "context.delete": {"memoryId": "string required", "projectPath": "string"},
    "context.list": {
        "layer": "number = 2",
        "type": "string",
        "tags": "string[]",
        "limit": "number = 20",
        "offset": "number = 0",
        "stats": "boolean",
        "projectPath": "string",
    },
    "context.summarize": {
        "sessionId": "string required",
        "options": "object required",
        "layer": "number = 2",
        "olderThanDays": "number = 30",
        "projectPath": "string",
    },
    "context.summarize.options": {
        "targetTokens": "number required",
        "focusTypes": "string[]",
        "includePatterns": "boolean = true",
        "includeDecisions": "boolean = true",
    },
    "context.reportEvent": {"event": "object required"},
    "context.reportEvent.event": {
        "type": "string required",
        "payload": "object required",
        "timestamp": "string required",
        "sessionId": "string required",
        "cliType": "string required",
        "projectPath": "string",
    },
    "context.setup": {
        "cli": "string required",
        "serverPath": "string",
        "useDocker": "boolean = false",
        "preview": "boolean = false",
    },
}
"""Type of each parameter, with `required` and the default. Fields of objects follow under the name of the object."""

MEMORY = {"id": str, "type": str, "content": str, "metadata": {"tags": list}, "createdAt": str, "updatedAt": str}
ROW = {
    "id": str,
    "type": str,
    "content": str,
    "metadata": {"tags": list},
    "tags": list,
    "pinned": bool,
    "createdAt": int,
    "updatedAt": int,
}
TIME = {
    "epochMs": int,
    "iso": str,
    "timezone": str,
    "utcOffset": str,
    "timeOfDay": str,
    "date": str,
    "dayOfWeek": str,
    "isWeekend": bool,
    "weekNumber": int,
}
REPLIES: dict[str, dict[str, Any]] = {
    "context.getCurrent": {
        "context": {
            "working": [MEMORY],
            "relevant": [MEMORY],
            "patterns": [{"id": str, "name": str, "description": str, "code": str, "language": str, "usageCount": int}],
            "suggestions": list,
            "ghostMessages": list,
        }
    },
    "context.store": {"id": str, "success": bool, "layer": int},
    "context.recall": {"results": [{"memory": MEMORY, "similarity": float, "layer": int}], "total": int},
    "context.orient": {
        "summary": str,
        "time": TIME,
        "projectPath": str,
        "offlineGap": type(None),
        "recentMemories": list,
    },
    "context.searchCode": {
        "results": [
            {
                "filePath": str,
                "language": str,
                "symbol": {
                    "name": str,
                    "kind": str,
                    "signature": str,
                    "lineStart": int,
                    "lineEnd": int,
                    "docComment": str,
                },
            }
        ],
        "indexStatus": {"totalFiles": int, "totalSymbols": int, "lastIndexed": str, "isStale": bool},
        "total": int,
    },
    "context.get": {"memory": {**ROW, "accessCount": int}, "layer": int},
    "context.update": {"memory": ROW, "layer": int, "success": bool},
    "context.delete": {"success": bool, "deletedFrom": int},
    "context.list": {"memories": [ROW], "total": int, "limit": int, "offset": int, "layer": int},
    "context.summarize": {"summaryId": str, "summarizedCount": int, "summary": str, "layer": int},
    "context.reportEvent": {"processed": bool, "memoryId": str, "triggeredActions": list, "message": str},
    "context.setup": {"success": bool, "cli": str, "configFile": str, "message": str},
}
"""Shapes of the first example reply of each tool."""
PROMOTED = {"success": bool, "memoryId": str, "newLayer": int}
STATS = {"l1": int, "l2": int, "l3": int, "total": int, "pinned": {"l2": int, "l3": int}}
PREVIEW = {"preview": bool, "cli": str, "useDocker": bool, "snippet": str, "message": str}
CONVERSION = {"epochMs": int, "timezone": str, "iso": str, "timeOfDay": str, "date": str, "utcOffset": str}


def schema_of(text: str) -> dict[str, Any]:
    """Return the facts of a JSON Schema that a text of `PARAMETERS` states."""
    declared, _, default = text.partition(" = ")
    kind = declared.removesuffix(" required")
    if kind.endswith("[]"):
        facts: dict[str, Any] = {"type": {"array"}}
    else:  # JSON Schema has a type for whole numbers.
        facts = {"type": {"number", "integer"} if kind == "number" else {kind}}
    values: dict[str, object] = {"true": True, "false": False, "[]": []}
    if default:
        number = float(default) if kind == "number" else default
        facts["default"] = values.get(default, number)
    return facts
