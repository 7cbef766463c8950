"""Results of search (hits, details and transcripts), cited answers, session digests, and the cost of reading.

The findings of an answer cite observations and transcript lines. Each line of a digest contains the ID of the entry
that it comes from.

The token cost of a turn is computed once and stored. A search result states the cost of reading its lines, and
rendering these lines would take longer than the rest of the result. `read` shortens calls
and results until the page keeps to this cost: of 405 observations and exchanges of real sessions, no page exceeds it by
more than 12 %, and half of the pages are within 5 %.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from .conversation import Exchange, Kind, Milliseconds, SessionKind, Span, Turn
from .document import EditedUnit, UnitEdit
from .observation import NEXT, OPEN, OUTCOME, Observation
from .query import Query
from .reports import KnownFix, NanoDollars, ProjectCommand
from .text import states
from .tokens import count

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
        superseded_by: ID of the memory that superseded this one, or empty.
        session_title: Title of the session's summary, or else the agent's title of the session.
        short_session_id: First characters of `session_id` that identify the session in this archive.
        resume: Shell command that resumes the session, if the detail describes a session that its agent can resume.
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
    superseded_by: str = ""
    session_title: str = ""
    short_session_id: str = ""

    @property
    def outcome(self) -> str:
        """First result of a whole session, with its label, or an empty text."""
        return outcome_of(self.facts, self.title) if self.kind == "session" else ""

    @property
    def gist(self) -> list[str]:
        """First result, first open item and first next step of a whole session, each with its label."""
        return gist_of(self.facts, self.title) if self.kind == "session" else []


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
        vocabulary: Words of the archive with which to reword the query, if it is uncertain whether any hit matches.
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
    vocabulary: tuple[str, ...] = ()


class Timeline(Struct, frozen=True):
    """Events of a session before and after the event with the ID `anchor`, in order.

    The anchor is empty if the timeline contains all events of the session. `outcome` is the first result of the
    session, with its label.
    """

    anchor: str
    hits: tuple[Hit, ...]
    session_id: str
    path: str
    outcome: str = ""


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


def outcome_of(facts: Sequence[str], title: str) -> str:
    """Return the first result in the facts of a session card, or the last one if the title states it, with its label.

    The first result of a card is the largest one. The others follow in the order of time.
    """
    first, *others = [fact for fact in facts if fact.startswith(OUTCOME)] or [""]
    results = (fact for fact in (first, *reversed(others)) if not states(title, fact.removeprefix(OUTCOME)))
    return next(results, "")


def gist_of(facts: Sequence[str], title: str) -> list[str]:
    """Return the first result, the first open item and the first next step among the facts of a session card."""
    firsts = (next((fact for fact in facts if fact.startswith(label)), "") for label in (OPEN, NEXT))
    return [*filter(None, (outcome_of(facts, title), *firsts))]


class SessionOutline(Struct, frozen=True):
    """Session in a list of sessions.

    Attributes:
        id: Short session ID.
        exchanges: Number of exchanges in the latest transcript of the session.
        facts: Facts of the session card, each with its label: `Outcome: ...`, `Open: ...`.
        resume: Shell command that resumes the session, or an empty string if its agent cannot resume it.
        tags: Tags that the user gave to the session.
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
    resume: str = ""
    tags: tuple[str, ...] = ()
    pinned: bool = False

    @property
    def gist(self) -> list[str]:
        """First result, first open item and first next step of the session."""
        return gist_of(self.facts, self.title)


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
        line: Line of the transcript that proves the item.
    """

    text: str
    session: str
    at: Milliseconds | None
    project: str
    session_title: str
    session_id: str
    path: str
    line: int = 0


class CommandList(Struct, frozen=True):
    """Commands for a task, and their total number.

    Attributes:
        task: Task, or words of a command, that were searched.
        tasks: Tasks with a known command, if there is no command for this task.
        missing: Words that narrow the task down, such as `integration`, and that no command contains.
    """

    task: str
    commands: tuple[ProjectCommand, ...]
    total: int
    tasks: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        """IDs of the exchanges with the commands."""
        return tuple(command.id for command in self.commands)


class FixList(Struct, frozen=True):
    """Fixes of an error, and their total number. Without fixes, `nearest` are the closest passages."""

    fixes: tuple[KnownFix, ...]
    total: int
    nearest: Results | None = None

    @property
    def ids(self) -> tuple[str, ...]:
        """IDs of the exchanges with the fixes."""
        return tuple(fix.id for fix in self.fixes)


class OpenItemList(Struct, frozen=True):
    """Open items and next steps of past sessions. `unmatched` is the query, if none of them matches it."""

    items: tuple[OpenItem, ...]
    unmatched: str = ""

    @property
    def ids(self) -> tuple[str, ...]:
        """Short IDs of the sessions that match the query. Empty if none matches."""
        return () if self.unmatched else tuple(item.session for item in self.items)


ComputedList: TypeAlias = CommandList | FixList | OpenItemList
"""Rows of one of the kinds in `LISTS`."""


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
        resume: Shell command that resumes the session, if the detail describes a session that its agent can resume.
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
    resume: str = ""


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
        is_deleted: True if no exchange is left because the user deleted requested lines.
        stated_tokens: Tokens that details state for reading the requested lines, or 0 if unknown.
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
    is_deleted: bool = False
    stated_tokens: int = 0

    def shown(self, span: Span) -> tuple[int, int]:
        """Return the first and last line that the span and this excerpt have in common."""
        return max(span.start_line, self.start_line), min(span.end_line, self.end_line)


class FindingKind(StrEnum):
    """Kind of a finding. Answers list findings in this order."""

    COMMAND = "command"
    DECISION = "decision"
    FIX = "fix"
    PATTERN = "pattern"
    GOTCHA = "gotcha"
    DOCUMENT = "document"
    OTHER = "other"


class AnswerLabel(StrEnum):
    """Label of the findings: what they are, and so how far they can be trusted."""

    BEST = "best answer"
    CLOSEST = "closest passages"
    LATEST = "latest entries"
    OPEN = "open items"


class CitedSource(Struct, frozen=True):
    """Item of the archive, or lines of a transcript, that a finding cites.

    Attributes:
        id: Public ID of an observation, exchange or memory. Empty for a citation of lines only.
        label: Short name of the conversation in the answer: the first characters of its session ID.
        path: Path relative to the archive. Empty for a memory.
        exists: False if the archive does not contain the item or the lines.
        read: False if a language model cited the item or the lines, but no tool returned them to it.
    """

    id: str = ""
    session_id: str = ""
    label: str = ""
    path: str = ""
    start_line: int = 0
    end_line: int = 0
    exists: bool = True
    read: bool = True


class Finding(Struct, frozen=True):
    """Claim with its sources.

    Attributes:
        text: Sentences from the archive, shortened at the end of a sentence or clause.
        supported: False if no source of the finding exists.
        superseded_by: ID of the later finding that replaces this one.
        contradicts: IDs of findings that contradict this one.
    """

    kind: FindingKind
    text: str
    sources: tuple[CitedSource, ...]
    at: Milliseconds | None = None
    supported: bool = True
    superseded_by: str = ""
    contradicts: tuple[str, ...] = ()


class CitedSession(Struct, frozen=True):
    """Conversation that an answer cites."""

    label: str
    session_id: str
    title: str
    project: str
    path: str
    at: Milliseconds | None = None


class AnswerReceipt(Struct, frozen=True):
    """Costs of an answer, in estimated tokens.

    Attributes:
        tokens: Tokens of the printed answer, including the receipt.
        read_tokens: Tokens of the search results, details and lines that were read for the answer.
        transcript_tokens: Tokens of the cited conversations, with tool calls and shortened tool results.
        searches: Number of searches. `details` is the number of entries read in full, and `reads` the number of
            excerpts read from transcripts.
        cost: Money spent on a language model, including the highest possible cost of calls that returned no answer.
        model: Name of the language model. Empty if none was used.
        model_tokens: Tokens that the model read and wrote in all its calls.
    """

    tokens: int = 0
    read_tokens: int = 0
    transcript_tokens: int = 0
    searches: int = 0
    details: int = 0
    reads: int = 0
    cost: NanoDollars = 0
    model: str = ""
    model_tokens: int = 0


class CitedAnswer(Struct, frozen=True):
    """Answer to a question. `findings` and `text` are both empty if nothing was found.

    Attributes:
        findings: Findings, the best one first.
        label: What the findings are. `BEST` means that the first finding answers the question, and `CLOSEST` that it
            is uncertain whether one of them does. `LATEST` are the newest entries of the time or project that the
            question names, and `OPEN` the open items and next steps of its sessions.
        text: Answer of a language model in Markdown. Empty if the answer consists of findings.
        sources: All citations of the findings or the text.
        sessions: Conversations that the findings or the text cite.
        nearest: Entries below the relevance threshold, if nothing was found.
        suggestions: Advice if nothing was found, and the command that lists more answers of the same kind.
        notices: Limits of the answer, such as claims without a source.
    """

    question: str
    findings: tuple[Finding, ...] = ()
    label: AnswerLabel = AnswerLabel.BEST
    text: str = ""
    sources: tuple[CitedSource, ...] = ()
    sessions: tuple[CitedSession, ...] = ()
    nearest: tuple[Hit, ...] = ()
    suggestions: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    receipt: AnswerReceipt = AnswerReceipt()


class DigestLine(Struct, frozen=True):
    """Line of a digest. It describes a decision, a session or a file.

    Attributes:
        id: Public ID of the observation that the line comes from.
        origin: Author of the text.
        notes: Further facts of the observation, such as its open items.
        cited: Number of files that the observation cites.
        changed: Number of cited files that were changed or deleted since the observation, as far as known.
    """

    id: str
    text: str
    at: Milliseconds | None
    origin: str
    notes: tuple[str, ...] = ()
    cited: int = 0
    changed: int = 0

    @property
    def all_text(self) -> str:
        """All texts of the line in one string, for an estimate of its tokens."""
        return " ".join((self.text, *self.notes))


class DigestSection(Struct, frozen=True):
    """Lines under one heading. The lines that are probably most useful come first."""

    title: str
    lines: tuple[DigestLine, ...]


EXCERPT_BUDGET: Final = 8_000
"""Default maximum number of tokens of the turns in an excerpt."""
RESULTS_MAX: Final = 4_000
"""Maximum characters of all tool results together, in a reply with the default budget."""
RESULT_MIN: Final = 200
"""Minimum characters that are shown of each tool result, however many results there are."""
ASIDE_MAX: Final = 500
"""Maximum characters of injected text and of thinking, which readers seldom need."""

COUNTED: Final = 100_000
"""Maximum number of characters per text for counting tokens. Counting a megabyte takes 0.3 s."""
_PAGE: Final = 100
"""Tokens of the heading and the markers of a page."""
_LABELS: Final = {Kind.PROMPT: 7, Kind.PROSE: 7, Kind.CALL: 4, Kind.RESULT: 12}
_ASIDE, _OMITTED = 14, 8
"""Tokens of the label of a turn, by kind or for an aside, and of the note about omitted characters."""


class TurnCost(NamedTuple):
    """Cost of a turn: its line and kind, and the number of tokens and characters of its text."""

    line: int
    kind: str
    tokens: int
    length: int


def turn_costs(turns: Iterable[Turn]) -> list[TurnCost]:
    """Return the cost of each turn."""
    counted = ((turn, turn.text[:COUNTED]) for turn in turns)
    return [TurnCost(turn.line, turn.kind.value, count(text), len(text)) for turn, text in counted]


def result_limit(results: int, budget: int = BUDGET) -> int:
    """Return the maximum number of characters for each of several tool results on a page. `budget` is in tokens.

    A user who chooses a larger budget wants to see more, so a larger budget allows twice as many characters per token.
    """
    characters = RESULTS_MAX if budget <= BUDGET else 2 * RESULTS_MAX * budget // BUDGET
    return max(RESULT_MIN, characters // max(results, 1))


def read_cost(costs: Sequence[TurnCost], *, single: bool) -> int:
    """Return the approximate number of tokens of the page that shows these turns, or 0 without turns.

    If `single` is true, the page shows a single line, whose text is not shortened.
    """
    first_cost = _first(costs)
    if not first_cost:
        return 0
    limit = result_limit(sum(cost.kind == Kind.RESULT for cost in first_cost))
    return min(round(_PAGE + sum(_cost_of(cost, None if single else limit) for cost in first_cost)), BUDGET)


def _first(costs: Sequence[TurnCost]) -> Sequence[TurnCost]:
    """Return the first turns, as many as an excerpt contains. It contains at least one line."""
    spent = 0
    for index, cost in enumerate(costs):
        spent += cost.tokens
        if spent > EXCERPT_BUDGET and index and cost.line != costs[index - 1].line:
            return costs[:index]
    return costs


def _cost_of(cost: TurnCost, limit: int | None) -> float:
    """Return the tokens of a turn with at most `limit` characters if it is a call or a result."""
    label = _LABELS.get(Kind(cost.kind), _ASIDE)
    if limit is None or cost.kind in {Kind.PROMPT, Kind.PROSE}:
        return label + cost.tokens
    most = limit if cost.kind in {Kind.CALL, Kind.RESULT} else ASIDE_MAX
    return label + (cost.tokens if cost.length <= most else _OMITTED + cost.tokens * most / cost.length)
