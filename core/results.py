"""Answers of the three layers of search."""

from typing import NamedTuple

from msgspec import Struct

from .conversation import Exchange, Milliseconds, SessionKind, Span
from .observation import Observation
from .query import Query

BUDGET = 10_000
"""Default token limit of a reply."""


class ScorePart(NamedTuple):
    """Component of a score: the measured `value` and the `points` it adds to the score."""

    name: str
    value: float
    points: float


class Hit(Struct, frozen=True):
    """One result of layer 1.

    `score` orders the list and is the sum of the points of `parts`. `similarity` is a cosine; None if no vectors were
    compared. `tokens` is the cost of layer 2 for this hit. `path` is relative to the archive; the lines are the
    evidence for the hit. `matched` are the terms found in the snippet. `more` counts the other matching events of the
    session in a search for sessions. `cursor` continues after this hit. `also_in` are ids of other sessions with the
    same text: forks, resumed sessions and copies.
    """

    id: str
    kind: str
    type: str
    title: str
    project: str
    at: Milliseconds | None
    score: float
    similarity: float | None
    session_id: str
    path: str
    start_line: int
    end_line: int
    tokens: int
    facts: tuple[str, ...] = ()
    snippet: str = ""
    parts: tuple[ScorePart, ...] = ()
    matched: tuple[str, ...] = ()
    more: int = 0
    cursor: str = ""
    also_in: tuple[str, ...] = ()


class UnknownName(NamedTuple):
    """Value of a `filter` (a field of `Filters`) that no entry has; up to three similar ones, and how many `more`."""

    filter: str
    name: str
    nearest: tuple[str, ...]
    more: int = 0


class Correction(NamedTuple):
    """Word that does not occur in the archive, and the most similar one that does."""

    word: str
    nearest: str


class TimeExpression(NamedTuple):
    """Time expression of a query, and its range: from the instant `after` until `before`, exclusive."""

    text: str
    after: Milliseconds
    before: Milliseconds


class ConceptHits(NamedTuple):
    """Number of conversations that match one of several concepts by itself."""

    concept: str
    conversations: int


class ToolOutputLine(NamedTuple):
    """Archived line with a quoted phrase in the output of a tool: path below the archive, line, surrounding text."""

    path: str
    line: int
    text: str


class ToolOutputMatches(Struct, frozen=True):
    """First few matches of quoted phrases in tool output that is not indexed.

    `unread` copies were not searched before the time limit. `searched` tells whether any copy was to be searched.
    """

    lines: tuple[ToolOutputLine, ...] = ()
    unread: int = 0
    searched: bool = False


class ZeroResultExplanation(Struct, frozen=True):
    """Reasons for an empty result, and ways to find something.

    Attributes:
        weak: Nearest hits below the relevance threshold, or without the quoted phrases.
        without: Number of hits without each filter.
        earlier: Nearest instant before the date range that has a hit; `later` the nearest one after it.
        similar: Similar terms for words of the query.
        unknown: Filter values that no entry has.
        phrases: Quoted phrases that no entry has under the filters.
        concepts: Number of conversations for each of several concepts.
        disjoint: Pairs of concepts that occur, but never in the same conversation.
        no_known_term: True if no word of the query, nor a similar one, occurs in the index.
        tool_output: Matches of the quoted phrases in tool output that is not indexed.
        missing: Words of a short query that do not occur.
        without_missing: Number of hits without the missing words; None if no other words are left.
    """

    weak: tuple[Hit, ...] = ()
    without: tuple[tuple[str, int], ...] = ()
    earlier: Milliseconds | None = None
    later: Milliseconds | None = None
    similar: tuple[Correction, ...] = ()
    unknown: tuple[UnknownName, ...] = ()
    phrases: tuple[str, ...] = ()
    concepts: tuple[ConceptHits, ...] = ()
    disjoint: tuple[tuple[str, str], ...] = ()
    no_known_term: bool = False
    tool_output: ToolOutputMatches = ToolOutputMatches()
    missing: tuple[str, ...] = ()
    without_missing: int | None = None


class Results(Struct, frozen=True):
    """Answer of layer 1.

    Attributes:
        total: Number of hits.
        index_lag: Number of changes that are not in the published index; they are searched as well.
        searched: Search engines that answered.
        cursor: Start of the next page; empty on the last one.
        explanation: Reasons for an empty result; None if there are hits.
        corrections: Words that were searched in a similar spelling.
        inexact: Quoted phrases that match only with other forms of their words.
        relaxed: Quoted phrases without any match, searched as single words.
        times: Time expressions of the query; hits within their ranges rank higher.
        empty_times: Time expressions without any entry in their ranges, searched as words.
        newest: Date of the newest entry, given together with `empty_times`.
        ranking_limit: True on the last page if more entries may match than a search ranks.
    """

    query: Query
    hits: tuple[Hit, ...]
    total: int
    index_lag: int
    searched: tuple[str, ...]
    cursor: str = ""
    explanation: ZeroResultExplanation | None = None
    corrections: tuple[Correction, ...] = ()
    inexact: tuple[str, ...] = ()
    relaxed: tuple[str, ...] = ()
    times: tuple[TimeExpression, ...] = ()
    empty_times: tuple[TimeExpression, ...] = ()
    newest: Milliseconds | None = None
    ranking_limit: bool = False


class Timeline(Struct, frozen=True):
    """Events of a session around the one with the id `anchor`, in order."""

    anchor: str
    hits: tuple[Hit, ...]
    session_id: str
    path: str


class Detail(Struct, frozen=True):
    """One entry of layer 2. An exchange without observations has one of type `general`.

    `tokens` is the cost of layer 3 for its evidence. `also_in` are ids of other sessions with the same exchange. Later
    exchanges repeated it `confirmed` times, last at `confirmed_at`. `left_out` parts exceeded the token limit.
    """

    id: str
    kind: str
    observation: Observation
    project: str
    branch: str
    session_id: str
    session_title: str
    path: str
    start_line: int
    end_line: int
    tokens: int
    also_in: tuple[str, ...] = ()
    confirmed: int = 0
    confirmed_at: Milliseconds | None = None
    left_out: int = 0


class TranscriptExcerpt(Struct, frozen=True):
    """Answer of layer 3: the exchanges within a range of lines.

    The turns are those of the lines asked for; the spans and tokens are those of whole exchanges. `parent_id` is the
    session that started a sub-agent, or that a main session was forked from. `pull_request` is an address.
    `next_line` continues a truncated answer. `also_in` are ids of other sessions with some of the same text.
    """

    path: str
    session_id: str
    kind: SessionKind
    parent_id: str
    agent: str
    project: str
    cwd: str
    branch: str
    version: str
    title: str
    pull_request: str
    started: Milliseconds | None
    start_line: int
    end_line: int
    total_lines: int
    exchanges: tuple[Exchange, ...]
    tokens: int
    next_line: int | None = None
    also_in: tuple[str, ...] = ()

    def shown(self, span: Span) -> tuple[int, int]:
        """Return the first and last line of an exchange's span that are in this answer."""
        return max(span.start_line, self.start_line), min(span.end_line, self.end_line)
