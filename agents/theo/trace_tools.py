"""Theo tools for code traces: the author of a line, from git blame and archived edits."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from ...core.amount import many
from ...observe.traces import Attributed, Certainty, CommitShare
from ..toolset import ToolReply, WholeNumber
from .parameters import Limit, checked_count
from .theo_context import TheoContext
from .theo_data import TraceData, TraceListData
from .theo_replies import instant, limited_reply, success_reply

_COMMITS_SHOWN = 50


def trace_query(
    theo: TheoContext,
    file: Annotated[str, Field(description="Path, absolute or relative")],
    line: Annotated[WholeNumber | None, Field(description="Line number, from 1; default: all lines")] = None,
) -> ToolReply:
    """Find the lines of a file that agents wrote, by commit, with the conversation and a certainty.

    "certain" lines are in an agent's edit, "likely" lines differ in formatting only. "possible" means that an agent
    changed the file at that time. Uncommitted lines are listed separately. Lines written before the installation are
    found, too.
    """
    found = theo.traces.of_file(Path(file), line)
    main = max((share for share in found.shares if share.trace), key=_weight, default=None)
    shown = main or (found.shares[0] if found.shares else None)
    data = TraceData(
        file=found.path,
        line=line,
        commit=None if shown is None or shown.commit.uncommitted else shown.commit.sha,
        trace=None if main is None or main.trace is None else main.trace.as_json(),
        certainty=_certainty(main),
        message=_message(found),
        lines={
            "total": found.total,
            "uncommitted": _uncommitted(found),
            **{str(certainty): found.count(certainty) for certainty in Certainty},
        },
        commits=[_share(share) for share in found.shares[:_COMMITS_SHOWN]],
    )
    return success_reply(data)


def trace_list(
    theo: TheoContext,
    conversation_url: Annotated[str | None, Field(description="session:ID")] = None,
    limit: Limit = 20,
) -> ToolReply:
    """List recent code of agents, newest first: one record per commit, or per conversation without a known commit."""
    traces, total = theo.traces.latest(conversation_url, checked_count(limit, 1_000))
    return limited_reply(TraceListData([trace.as_json() for trace in traces], total))


def _weight(share: CommitShare) -> int:
    return share.certainties.get(Certainty.CERTAIN, 0) + share.certainties.get(Certainty.LIKELY, 0)


def _certainty(share: CommitShare | None) -> str:
    if share is None:
        return Certainty.NONE
    return Certainty.CERTAIN if share.certainties.get(Certainty.CERTAIN) else Certainty.LIKELY


def _share(share: CommitShare) -> dict[str, Any]:
    return {
        "commit": None if share.commit.uncommitted else share.commit.sha,
        "committed": not share.commit.uncommitted,
        "timestamp": instant(share.commit.at),
        "ranges": [{"start_line": first, "end_line": last} for first, last in share.lines],
        "lines": {str(certainty): count for certainty, count in share.certainties.items()},
        "conversations": [] if share.trace is None else share.trace.as_json()["files"][0]["conversations"],
    }


def _uncommitted(found: Attributed) -> int:
    return sum(sum(share.certainties.values()) for share in found.shares if share.commit.uncommitted)


def _message(found: Attributed) -> str:
    if not found.total:
        return "The file is empty"
    where = "" if found.versioned else "; git does not know the file, so all its lines count as uncommitted"
    if found.versioned and (uncommitted := _uncommitted(found)):
        where = f"; {many(uncommitted, 'line')} not committed yet"
    if found.written:
        return f"Agents wrote {found.written} of {many(found.total, 'line')}{where}"
    if possible := found.count(Certainty.POSSIBLE):
        return f"No AI attribution found, but an agent changed the file when {possible} lines were written{where}"
    return f"No AI attribution found{where}"
