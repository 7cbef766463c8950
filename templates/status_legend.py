"""Explanations of the names in `palaver status`: reasons why lines are not indexed, and steps of background work."""

from collections.abc import Iterator, Mapping
from typing import Final

from ..core.amount import many

OUTCOMES: Final = {
    "repeated": "copies of a line that is archived already, as after a resumed session",
    "replaced": "earlier versions of a message that a later line completes",
    "bookkeeping": "state of the agent's program",
    "context": "text that the agent's program sent to the model and you did not see",
    "copied-header": "headers of another session, copied by a fork",
    "empty": "messages without text",
    "encrypted": "reasoning that only the vendor can decrypt",
    "file-history": "snapshots of files",
    "forgotten": "deleted with `palaver forget`",
    "hook-output": "output of hooks",
    "hook-progress": "notices that a hook started",
    "progress": "output of running commands, which the results repeat",
    "queued": "queued prompts that a later line repeats",
    "search-progress": "state of running web searches, which the results repeat",
    "server-progress": "state of running MCP tools",
    "subagent": "messages of sub-agents, which are searched as conversations of their own",
    "waiting": "notices that the agent's program waits for a background task",
    "withdrawn": "queued prompts that you moved back into the input line",
    "own-folder": "sessions in the folder with Palaver's data",
    "own-run": "conversations that Palaver started",
    "own-tool": "calls of Palaver's tools, and their results",
    "own-recalled": "text that only quotes Palaver",
    "unknown-type": "records of types that Palaver does not read",
    "blank": "lines without text",
    "cut-short": "incomplete lines",
    "not-json": "lines that are not JSON",
    "not-an-object": "lines that are not a JSON object",
    "oversized": "lines that are too long to read",
    "too-deep": "lines that are nested too deeply",
}
"""Meaning of each reason why a line of a transcript is not searchable."""
STEPS: Final = {
    "archive": "archive transcripts",
    "observe": "extract observations by rules",
    "learn": "update the index in the background",
    "embed": "compute vectors",
    "publish": "publish the index",
    "compress": "compress old copies",
    "backup": "back up the database",
    "verify": "verify the database",
    "verify-copies": "verify the copies",
    "watch": "watch for changes",
}
"""Description of each step of background work."""
_TYPES: Final = 3
"""Maximum number of unknown record types to name."""


def outcomes(skipped: Mapping[str, int], repeated: int = 0) -> Iterator[tuple[int, str, str]]:
    """Yield the number of lines, the reason and its meaning, the most frequent reason first.

    All unknown record types together are one reason.
    """
    types = {reason.partition(":")[2]: count for reason, count in skipped.items() if reason.startswith("unknown-type")}
    named = [name for name in types if name]
    counts = {reason: count for reason, count in skipped.items() if not reason.startswith("unknown-type")}
    if repeated:
        counts["repeated"] = repeated
    if types:
        counts["unknown-type"] = sum(types.values())
    for reason, count in sorted(counts.items(), key=lambda item: -item[1]):
        meaning = OUTCOMES.get(reason, "")
        if reason == "unknown-type" and named:
            others = f" and {many(len(named) - _TYPES, 'other')}" if len(named) > _TYPES else ""
            meaning += f": {', '.join(named[:_TYPES])}{others}"
        yield count, reason, meaning


def step(name: str) -> str:
    """Return the description of a step, or its name if no description exists."""
    return STEPS.get(name, name)
