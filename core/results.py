"""Results of the three layers of search: hits, details and transcripts."""

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from .code import EditedUnit, UnitEdit
from .conversation import Exchange, Milliseconds, SessionKind, Span
from .observation import NEXT, OPEN, OUTCOME, Observation
from .query import Query

BUDGET = 10_000
"""Default maximum number of tokens in a reply."""


class ScorePart(NamedTuple):
    """Component of a score: the measured `value`, and the `points` that it adds to the score."""

    name: str
    value: float
    points: float


class Hit(Struct, frozen=True):
    """Result of layer 1 (hits).

    Attributes:
        score: Sum of the points of `parts`. Hits are sorted by score.
        similarity: Cosine similarity, or None if no vectors were compared.
        path: Path relative to the archive. The lines contain the evidence for the hit.
        tokens: Token cost of this hit in layer 2 (details).
        matched: Query terms in the snippet.
        needs_snippet: True if only the snippet shows the match: it contains query terms, and the title contains none.
        more: Number of other matching events in the session, in a search for sessions.
        cursor: Cursor that continues after this hit.
        also_in: IDs of other sessions with the same text, such as forks, resumed sessions and copies.
        reversed_by: ID of a later hit that states the opposite, or empty.
        session_title: Title of the session's summary, or else the agent's title of the session.
        short_session_id: First characters of `session_id` that identify the session in this archive.
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
    needs_snippet: bool = False
    more: int = 0
    cursor: str = ""
    also_in: tuple[str, ...] = ()
    reversed_by: str = ""
    session_title: str = ""
    short_session_id: str = ""


class UnknownName(NamedTuple):
    """Value of a filter that matches no entry, such as an unknown project.

    Attributes:
        filter: Field of `Filters`.
        nearest: Up to three similar names.
        more: Number of similar names that `nearest` does not contain.
    """

    filter: str
    name: str
    nearest: tuple[str, ...]
    more: int = 0


class Correction(NamedTuple):
    """Unknown word of a query, and the most similar word that occurs in the archive."""

    word: str
    nearest: str


class TimeExpression(NamedTuple):
    """Time expression of a query. Its date range extends from `after`, inclusive, to `before`, exclusive."""

    text: str
    after: Milliseconds
    before: Milliseconds


class ConceptHits(NamedTuple):
    """Concept of a query, and the number of conversations that match this concept alone."""

    concept: str
    conversations: int


class OutputMatch(Struct, frozen=True):
    """Match of a text in the output of a tool call.

    Attributes:
        id: ID of the exchange with the tool call.
        path: Path relative to the archive.
        line: Line of the transcript that contains the output.
        before: Lines of the output before the match.
        text: Line of the output with the match, shortened around it.
        after: Lines of the output after the match.
        more: Number of further matches in the same output.
    """

    id: str
    project: str
    at: Milliseconds | None
    session_id: str
    session_title: str
    path: str
    line: int
    before: tuple[str, ...]
    text: str
    after: tuple[str, ...]
    more: int = 0


class OutputMatches(Struct, frozen=True):
    """Matches of a text in tool output. Matches in the newest transcripts come first.

    Attributes:
        text: Text that was searched for.
        searched: Number of transcripts that were searched completely.
        unread: Number of transcripts that were not, because the search stopped.
        back_to: Time of the newest transcript among those, or of a newer match that is not shown. None if nothing is
            left to search or to show.
        limited: True if the search stopped at the requested number of matches, and not at the time limit.
    """

    text: str
    matches: tuple[OutputMatch, ...] = ()
    searched: int = 0
    unread: int = 0
    back_to: Milliseconds | None = None
    limited: bool = False

    def first(self, matches: tuple[OutputMatch, ...]) -> "OutputMatches":
        """Return only the first matches. The others are then among those that a search back from `back_to` finds."""
        rest = self.matches[len(matches) :]
        if not rest:
            return self
        times = [at for at in (self.back_to, *(match.at for match in rest)) if at is not None]
        return replace(self, matches=matches, limited=True, back_to=max(times, default=None))


class ZeroResultExplanation(Struct, frozen=True):
    """Reasons for an empty result, and changes to the query that would produce hits.

    Attributes:
        weak: Nearest hits, which are below the relevance threshold or do not contain the quoted phrases.
        without: Name of each filter, with the number of hits without this filter.
        earlier: Instant of the last hit before the date range.
        later: Instant of the first hit after the date range.
        similar: Unknown words of the query, each with a similar known word.
        unknown: Filter values that no entry has.
        phrases: Quoted phrases without a match under the filters.
        concepts: Number of conversations that match each concept, if there are several.
        disjoint: Pairs of concepts that occur, but not in the same conversation.
        no_known_term: True if neither the query's words nor similar words occur in the index.
        missing: Words of a short query that do not occur in the index.
        without_missing: Number of hits without the missing words, or None if the query has no other words.
        deleted: What was deleted and how to undo it, if no session of the requested projects is left. Otherwise empty.
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
    missing: tuple[str, ...] = ()
    without_missing: int | None = None
    reword: bool = False
    deleted: str = ""


class Results(Struct, frozen=True):
    """Results of layer 1 (hits).

    Attributes:
        total: Number of hits.
        index_lag: Number of changes that are not in the published index. Searches include these changes.
        searched: Search engines that answered.
        cursor: Cursor of the next page. Empty on the last page.
        explanation: Reasons for an empty result, or None if there are hits.
        corrections: Unknown words of the query, each with the similar word that was searched instead.
        inexact: Quoted phrases that match only in other word forms.
        relaxed: Quoted phrases without a match, searched as single words.
        times: Time expressions of the query. Hits within their date ranges rank higher.
        empty_times: Time expressions whose date range contains no entry. They are searched as words.
        newest: Time of the newest entry. Set only with `empty_times`.
        ranking_limit: True on the last page if a search engine reached its limit, so more entries may match.
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
    """Events of a session before and after the event with the ID `anchor`, in order.

    The anchor is empty if the timeline contains all events of the session.
    """

    anchor: str
    hits: tuple[Hit, ...]
    session_id: str
    path: str


class ReplacedBy(Struct, frozen=True):
    """Later observation of a session that replaces an earlier one, and the line that proves the replacement."""

    id: str
    title: str
    line: int


class SessionEntry(NamedTuple):
    """Observation in the details of a session: its public ID, type and title."""

    id: str
    type: str
    title: str


class SessionOutline(Struct, frozen=True):
    """Session in a list of sessions.

    Attributes:
        id: Short session ID.
        exchanges: Number of exchanges in the latest transcript of the session.
        facts: Facts of the session card, each with its label: `Outcome: ...`, `Open: ...`.
    """

    id: str
    title: str
    project: str
    agent: str
    kind: SessionKind
    branch: str
    started: Milliseconds | None
    ended: Milliseconds | None
    exchanges: int
    session_id: str
    path: str
    facts: tuple[str, ...] = ()

    @property
    def gist(self) -> list[str]:
        """First result, first open item and first next step of the session."""
        firsts = (next((fact for fact in self.facts if fact.startswith(label)), "") for label in (OUTCOME, OPEN, NEXT))
        return [*filter(None, firsts)]


class SessionPage(Struct, frozen=True):
    """Page of a list of sessions, latest first. `cursor` is the cursor of the next page."""

    sessions: tuple[SessionOutline, ...]
    cursor: str = ""
    explanation: ZeroResultExplanation | None = None


class OpenItem(Struct, frozen=True):
    """Open item or next step of a session, from its card.

    Attributes:
        text: Fact of the card, with its label: `Open: ...` or `Next: ...`.
        session: Short session ID.
    """

    text: str
    session: str
    at: Milliseconds | None
    project: str
    session_title: str
    session_id: str
    path: str


class StartedSubagent(Struct, frozen=True):
    """Sub-agent that a tool call started, with the ID, the archive path and the number of lines of its transcript."""

    session_id: str
    path: str
    lines: int


class Detail(Struct, frozen=True):
    """Result of layer 2 (details). An exchange without observations is described by an observation of type `general`.

    Attributes:
        tokens: Token cost of the evidence in layer 3 (transcript).
        also_in: IDs of other sessions with the same exchange.
        confirmed: Number of later exchanges that repeated the observation, the last at `confirmed_at`.
        replaced_by: Later observation that replaces this one, or None if there is none.
        left_out: Number of facts, quotes, sentences and names left out because of the token limit.
        entries: First observations of a session, if the detail describes a session.
        units: Indexed units of code that the exchange edited, if the detail describes an exchange or observation.
        edits: Exchanges that edited the unit, newest first, if the detail describes a unit of code.
        short_session_id: First characters of `session_id` that identify the session in this archive.
        subagents: First sub-agents that the session started, if the detail describes a session.
        subagents_total: Number of all sub-agents that the session started.
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
    replaced_by: ReplacedBy | None = None
    left_out: int = 0
    entries: tuple[SessionEntry, ...] = ()
    units: tuple[EditedUnit, ...] = ()
    edits: tuple[UnitEdit, ...] = ()
    short_session_id: str = ""
    subagents: tuple[StartedSubagent, ...] = ()
    subagents_total: int = 0


Part: TypeAlias = tuple[str, int, int | None]
"""Part of a session: an archive path with its first and last line, or None up to the end of the file."""


class TranscriptExcerpt(Struct, frozen=True):
    """Result of layer 3 (transcript): the exchanges within a range of lines.

    Attributes:
        parent_id: ID of the session that started this sub-agent, or from which this session was forked.
        pull_request: URL of a pull request.
        exchanges: Exchanges with only the turns on the requested lines. Their spans and token counts describe whole
            exchanges.
        next_line: First line of the next excerpt if this excerpt was truncated.
        also_in: IDs of other sessions with some of the same text.
        subagents: Archived sub-agents that tool calls of this session started, by the ID of the call.
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
    subagents: Mapping[str, tuple[StartedSubagent, ...]] = {}

    def shown(self, span: Span) -> tuple[int, int]:
        """Return the first and last line that the span and this excerpt have in common."""
        return max(span.start_line, self.start_line), min(span.end_line, self.end_line)
