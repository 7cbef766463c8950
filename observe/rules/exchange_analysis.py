"""Analysis of an exchange (request, findings, commits, checks, answers), and verification of observations.

Statements are selected within a budget, each with its evidence.

A fact is kept only if its quote occurs on the transcript line that its evidence names. The origin of an observation
is determined from the speakers of the quotes. Both extractors, the rules and the language model, use this module.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile, zip_longest
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.lines import GAP
from ...core.conversation import Exchange, Kind, Milliseconds, Origin, Speaker, Turn, least
from ...core.observation import Evidence, Observation
from ...core.text import strip_markdown, truncate
from .salience import is_noise, is_status, phrases, regex, salience
from .statements import Heading, Statement, headings, quote_of, statements, with_valid_quotes
from .user_request import UserRequest, plan_title, read_request

_COMMIT = re.compile(r"\bgit\b[^\n;|&]{0,80}\bcommit\b(?![-\w])")
_MESSAGE = regex("exchange_analysis.message")
_MESSAGE_GROUPS = ("here", "quoted", "double", "single", "piped")
"""Named groups of the pattern `_MESSAGE` that can contain the commit message, one for each way of quoting it."""
_FOOTER = re.compile(r"^(?:co-authored-by|signed-off-by|generated with|🤖|claude-session|entire-)", re.IGNORECASE)
_SCOPE = r"\b(?:\([^)]*\))?!?[:\s]"
_CHORES = rf"(?:tests?|style|chore|ci|build|wip|te?mp){_SCOPE}|(?:add|adapt|fix|update)\s(?:\S+\s){{0,3}}tests?\b"
CHORE = re.compile(_CHORES, re.IGNORECASE)
"""Pattern for the beginning of a commit subject about tests or chores."""
MINOR = re.compile(
    rf"{_CHORES}|docs?{_SCOPE}|(?:fix|apply)\s(?:lint|format)|format|merge\b|record\b|bump\b", re.IGNORECASE
)
"""Pattern for the beginning of a commit subject about tests, chores, documents, formatting or merges."""
_REFUSED = regex("exchange_analysis.refused")
_REFUSED_CALL: Final = "The user doesn't want to "
_CLAIMED = regex("exchange_analysis.claimed")
_INTERRUPTED = re.compile(r"\s*\[Request interrupted by user")
_CHECK = regex("exchange_analysis.check")
_SHELLS = {"Bash", "bash", "exec_command", "local_shell", "shell", "shell_command"}
"""Names of tools that run a shell command."""
_LEAD = re.compile(r"(?:cd \S+ && |rtk |time |sudo |env |npx |[A-Z_]+=\S+ )+")
_CHANGING = regex("exchange_analysis.changing")
"""Pattern for shell commands that change files."""
_RETRACTION = phrases("exchange_analysis.retraction")
"""Pattern for the beginning of a reply that withdraws the reply before it."""
_ANSWER = re.compile(r"^(.+) → (.+)$", re.MULTILINE)
TELLING = 3
"""Minimum salience of one statement in the last reply. Otherwise the conclusion starts at the last edit or commit."""


class CommitMessage(Struct, frozen=True):
    """Commit made on the command line.

    `done` is False if the command failed or has no result, and no reply says that the commit succeeded. A command can
    fail although the commit was made, for example because of a hook.
    """

    subject: str
    body: tuple[Statement, ...]
    quote: str
    line: int
    done: bool


class UserAnswer(Struct, frozen=True):
    """Question of the assistant and the user's answer."""

    question: str
    choice: str
    quote: str
    line: int


class ProposedPlan(Struct, frozen=True):
    """Last plan presented to the user."""

    title: str
    line: int
    approved: bool
    steps: tuple[Statement, ...]


class ExchangeAnalysis(Struct, frozen=True):
    """Parts of an exchange.

    Each statement belongs to one of `findings` (while working), `conclusion` (last reply) and `statuses` (results of
    checks and commits).
    """

    request: UserRequest
    findings: tuple[Statement, ...]
    conclusion: tuple[Statement, ...]
    headings: tuple[Heading, ...]
    """Headings of the conclusion."""
    statuses: tuple[Statement, ...]
    commits: tuple[CommitMessage, ...]
    answers: tuple[UserAnswer, ...]
    objections: tuple[Statement, ...]
    """Text that the user entered when stopping a tool call."""
    plan: ProposedPlan | None
    failures: tuple[Turn, ...]
    """Calls of tests, linters or builds that failed."""
    left_failing: str
    """Command of the last check if it failed, otherwise empty."""
    interrupted: bool
    altered: bool
    """True if a shell command changed files whose names are unknown."""

    @property
    def accepted_commits(self) -> tuple[CommitMessage, ...]:
        """Commits that were not refused."""
        return _accepted(self.commits)


def analyze_exchange(exchange: Exchange) -> ExchangeAnalysis:
    """Analyse an exchange. Abandoned branches of the conversation count only if no other branch exists."""
    turns = exchange.active_turns
    results = {turn.call: turn for turn in turns if turn.kind is Kind.RESULT and turn.call}
    checks = list(_checks(turns, results))
    statements_at = [(position, each) for position, each in _prose(turns) if not is_noise(each.text)]
    kept = [(position, statement) for position, statement in statements_at if not is_status(statement.text)]
    start = _conclusion_start(turns, kept)
    return ExchangeAnalysis(
        request=read_request(exchange),
        findings=tuple(statement for position, statement in kept if position < start),
        conclusion=tuple(statement for position, statement in kept if position >= start),
        headings=tuple(heading for turn in _replies(turns[start:]) for heading in headings(turn)),
        statuses=tuple(statement for _, statement in statements_at if is_status(statement.text)),
        commits=tuple(_commits(turns, results)),
        answers=tuple(_answers(turns)),
        objections=tuple(_objections(turns)),
        plan=_plan(turns, results),
        failures=tuple(call for call, failed in checks if failed),
        left_failing=_command(checks[-1][0]) if checks and checks[-1][1] else "",
        interrupted=_interrupted(turns),
        altered=any(_changes_files(turn, results) for turn in turns),
    )


def _changes_files(turn: Turn, results: dict[str, Turn]) -> bool:
    if turn.kind is not Kind.CALL or turn.tool not in _SHELLS or not turn.call:
        return False
    command = turn.text.removeprefix(f"{turn.tool}: ")
    done = turn.call in results and not results[turn.call].failed
    return done and _CHANGING.search(command) is not None


def accepted_commits(exchange: Exchange) -> tuple[CommitMessage, ...]:
    """Return the commits of an exchange that were not refused."""
    turns = exchange.active_turns
    return _accepted(_commits(turns, {turn.call: turn for turn in turns if turn.kind is Kind.RESULT and turn.call}))


def _accepted(commits: Iterable[CommitMessage]) -> tuple[CommitMessage, ...]:
    return tuple(commit for commit in commits if commit.done)


def most_telling(commits: Sequence[CommitMessage]) -> CommitMessage | None:
    """Return the last commit whose subject is not about tests, documents or chores.

    Without one, return the last commit.
    """
    return max(commits, key=lambda commit: (not MINOR.match(commit.subject), commit.line), default=None)


def _interrupted(turns: Sequence[Turn]) -> bool:
    """Return whether the exchange ends with a message `[Request interrupted by user …]` of the agent's program."""
    after = takewhile(lambda turn: turn.kind is Kind.INJECTED, reversed(turns))
    return any(_INTERRUPTED.match(turn.text) for turn in after)


def _conclusion_start(turns: Sequence[Turn], kept: Sequence[tuple[int, Statement]]) -> int:
    """Return the position where the conclusion starts.

    The conclusion is the last reply if it is salient. Otherwise it is the text after the last edit or commit.
    """
    replies = [n for n, turn in enumerate(turns) if turn.is_reply]
    last = replies[-1] if replies else 0
    while last - 1 in replies and turns[last].group and turns[last - 1].group == turns[last].group:
        last -= 1
    if any(position >= last and salience(statement.raw) >= TELLING for position, statement in kept):
        return last
    changes = [
        n for n, turn in enumerate(turns) if turn.writes or (turn.kind is Kind.CALL and _COMMIT.search(turn.text))
    ]
    return min(last, changes[-1]) if changes else last


def _replies(turns: Iterable[Turn]) -> Iterator[Turn]:
    return (turn for turn in turns if turn.is_reply)


def _prose(turns: Sequence[Turn]) -> Iterator[tuple[int, Statement]]:
    """Yield the statements of all replies, except those that the next reply withdraws."""
    replies = [(position, turn) for position, turn in enumerate(turns) if turn.is_reply]
    for (position, turn), (_, following) in zip_longest(replies, replies[1:], fillvalue=(0, None)):
        if turn is not None and not (following and _RETRACTION.match(following.text.lstrip())):
            for statement in statements(turn):
                yield position, statement


def _commits(turns: Sequence[Turn], results: dict[str, Turn]) -> Iterator[CommitMessage]:
    """Yield the last commit with each message, because a rejected commit is often retried with the same message."""
    found: dict[str, CommitMessage] = {}
    claimed = any(turn.is_reply and _CLAIMED.search(turn.text) for turn in turns)
    for turn in turns:
        if turn.kind is not Kind.CALL or not _COMMIT.search(turn.text):
            continue
        for message in _MESSAGE.finditer(turn.text):
            text = next((message[name] for name in _MESSAGE_GROUPS if message[name]), "")
            lines = [line for line in text.strip().split("\n") if not _FOOTER.match(line.strip())]
            subject = strip_markdown(lines[0]) if lines else ""
            if len(subject) < 4:
                continue
            body = Turn(turn.line, turn.speaker, turn.kind, _unwrap("\n".join(lines[1:])))
            done = claimed or not turn.call or (turn.call in results and not _refused(results[turn.call]))
            statements_at = tuple(with_valid_quotes(statements(body), turn))
            found.pop(subject, None)
            found[subject] = CommitMessage(subject, statements_at, quote_of(lines[0]), turn.line, done)
            break
    yield from found.values()


def is_refusal(result: Turn) -> bool:
    """Return whether the user refused a call. The result is then the user's reason or a fixed text."""
    return result.failed and (result.speaker is Speaker.HUMAN or result.text.startswith(_REFUSED_CALL))


def _refused(result: Turn) -> bool:
    return result.failed or _REFUSED.search(result.text) is not None


def _unwrap(body: str) -> str:
    """Join the wrapped lines of a commit message. The marker of omitted text (`GAP`) stays on its own line."""
    parts = re.split(rf"\n({GAP.pattern})\n", body)
    return "\n".join(re.sub(r"(?<=\S)\n(?!\s*(?:[-*•]|\d+[.)])\s|\n)[ \t]*", " ", part) for part in parts)


def _answers(turns: Sequence[Turn]) -> Iterator[UserAnswer]:
    for turn in turns:
        if turn.kind is Kind.RESULT and turn.speaker is Speaker.HUMAN and not turn.failed:
            for pair in _ANSWER.finditer(turn.text):
                question, choice = strip_markdown(pair.group(1)), strip_markdown(pair.group(2))
                if question and choice:
                    yield UserAnswer(question, choice, quote_of(pair.group()), turn.line)


def _objections(turns: Sequence[Turn]) -> Iterator[Statement]:
    for turn in turns:
        if turn.kind is Kind.RESULT and turn.speaker is Speaker.HUMAN and turn.failed:
            yield from (kept for kept in statements(turn) if len(kept.text) >= 40 and not is_noise(kept.text))


def _plan(turns: Sequence[Turn], results: dict[str, Turn]) -> ProposedPlan | None:
    plan = None
    for turn in turns:
        if turn.kind is Kind.CALL and turn.tool == "ExitPlanMode":
            heading = plan_title(turn.text.removeprefix(f"{turn.tool}: "))
            approved = turn.call in results and not results[turn.call].failed
            body = Turn(turn.line, turn.speaker, turn.kind, turn.text.partition("\n")[2])
            plan = ProposedPlan(heading, turn.line, approved, tuple(with_valid_quotes(statements(body), turn)))
    return plan


def _checks(turns: Sequence[Turn], results: dict[str, Turn]) -> Iterator[tuple[Turn, bool]]:
    """Yield each call of a test, linter or build that ran, and whether it failed."""
    for turn in turns:
        result = results.get(turn.call) if turn.kind is Kind.CALL and turn.tool in _SHELLS else None
        if result is not None and not is_refusal(result) and _CHECK.match(_command(turn)):
            yield turn, result.failed


def _command(call: Turn) -> str:
    """Return the command of a call without wrappers such as `cd` or `sudo`."""
    words = _LEAD.sub("", call.text[:200].removeprefix(f"{call.tool}: ").strip())
    return re.split(r"\s*(?:[|;&<>\n]|\d>)", words, maxsplit=1)[0][:60]


FACTS_MAX = 8
FACTS_CHARACTERS = 1000
"""Maximum characters of all facts. Together with the narrative, they have about 400 tokens."""
NARRATIVE_MAX = 800
_SHORT = 200
"""Maximum characters of each fact if the facts exceed their total limit."""


def select(
    candidates: Iterable[Statement], *, count: int = FACTS_MAX, characters: int = FACTS_CHARACTERS, least: int = 1
) -> list[Statement]:
    """Return the most salient statements that fit, in their original order and without repetitions.

    If not all of them fit, long statements are shortened, because more facts are worth more than longer ones.
    """
    distinct = _distinct(candidates)
    if sum(len(statement.text) for statement in distinct) > characters:
        distinct = [replace(statement, text=truncate(statement.text, _SHORT)) for statement in distinct]
    ranked = sorted(distinct, key=lambda statement: -salience(statement.raw))
    kept: list[Statement] = []
    room = characters
    for statement in ranked:
        if len(kept) < count and len(statement.text) <= room and salience(statement.raw) >= least:
            kept.append(statement)
            room -= len(statement.text)
    return [statement for statement in distinct if statement in kept]


def _distinct(candidates: Iterable[Statement]) -> list[Statement]:
    """Return the statements without repetitions. A statement that adds a word to another is not a repetition."""
    kept: list[Statement] = []
    known: list[frozenset[str]] = []
    for statement in candidates:
        words = frozenset(word.strip(".,:;!()").lower() for word in statement.text.split())
        if not any(words <= earlier for earlier in known):
            kept.append(statement)
            known.append(words)
    return kept


def evidence(statements: Sequence[Statement]) -> tuple[Evidence, ...]:
    """Return the evidence of each statement, in the same order."""
    return tuple(Evidence(statement.line, statement.line, statement.quote) for statement in statements)


def observed_at(exchange: Exchange) -> Milliseconds | None:
    """Return the time of an observation: the end of its exchange."""
    return exchange.ended if exchange.ended is not None else exchange.started


def narrative(parts: Iterable[str]) -> str:
    """Join sentences up to `NARRATIVE_MAX` characters, and add missing closing punctuation."""
    text = ""
    for part in parts:
        sentence = part.strip()
        if not sentence:
            continue
        sentence = sentence if sentence.rstrip("”")[-1:] in (*".!?…:", "") else sentence + "."
        if len(text) + len(sentence) < NARRATIVE_MAX:
            text = f"{text} {sentence}".strip()
    return text


_EXTERNAL_TOOL: Final = re.compile(r"web|fetch(?!_rules)|brows|url|http|mcp|__|github|code_?search", re.IGNORECASE)
"""Pattern for names of tools whose output comes from outside this machine. Agents and MCP servers use such names."""
_EXTERNAL_COMMAND: Final = regex("exchange_analysis.external_command")
"""Pattern for shell commands that fetch text from outside this machine."""
_QUOTE_IGNORED: Final = re.compile(r"[\s*_`~#>|\\\"'“”„«»‘’]")
"""Pattern for characters that are ignored in a comparison of quotes: white space, Markdown and quotation marks."""
_ELLIPSIS: Final = re.compile(r"\[?(?:…|\.{3,})\]?")
_PIECE_MIN: Final = 8
"""Minimum length of each piece of a quote with an ellipsis."""


class VerifiedObservations(Struct, frozen=True):
    """Observations with valid evidence. `rejected` counts the facts whose quote was not found."""

    observations: tuple[Observation, ...]
    rejected: int


def verify(exchange: Exchange, extracted: Iterable[Observation]) -> VerifiedObservations:
    """Keep the facts whose quotes occur in the exchange.

    In each observation, `evidence[i]` proves `facts[i]`. Evidence after the last fact proves the narrative. An
    observation without valid evidence is rejected. The origin of an observation is the least trusted origin of its
    quotes.
    """
    lines: dict[int, list[Turn]] = {}
    for turn in exchange.turns:
        lines.setdefault(turn.line, []).append(turn)
    external = includes_external(exchange)
    kept: list[Observation] = []
    rejected = 0
    for observation in extracted:
        valid, lost = _keep_valid(observation, lines)
        rejected += lost
        if valid.evidence:
            kept.append(replace(valid, origin=_origin(valid, lines, external=external)))
    return VerifiedObservations(tuple(dict.fromkeys(kept)), rejected)


def find_quote(quote: str, line: int, texts: Sequence[tuple[int, str]]) -> Evidence | None:
    """Find a quote on the line that the extractor reported, or else on the only line that contains the quote.

    Markdown, quotation marks and white space are ignored. An ellipsis in a quote stands for omitted text of the same
    turn. The evidence is then the longest piece of the quote.

    Args:
        quote: Text to find.
        line: Line reported by the extractor.
        texts: Pairs of a line number and a text of this line.

    Returns:
        The evidence with the words of the source, or None.
    """
    pieces = [_QUOTE_IGNORED.sub("", piece) for piece in _ELLIPSIS.split(quote)]
    pieces = [piece for piece in pieces if piece]
    if not pieces or (len(pieces) > 1 and min(map(len, pieces)) < _PIECE_MIN):
        return None
    patterns = [re.compile(f"{_QUOTE_IGNORED.pattern}*".join(map(re.escape, piece))) for piece in pieces]
    found = [(place, words) for place, text in texts if (words := _longest_match(patterns, text))]
    named = [words for place, words in found if place == line]
    if named:
        return Evidence(line, line, named[0])
    if len({place for place, _ in found}) != 1:
        return None
    place, words = found[0]
    return Evidence(place, place, words)


def _longest_match(patterns: Sequence[re.Pattern[str]], text: str) -> str:
    """Return the longest match if all patterns match in this order, or else an empty string."""
    start, longest = 0, ""
    for pattern in patterns:
        match = pattern.search(text, start)
        if match is None:
            return ""
        start, longest = match.end(), max(longest, match.group(), key=len)
    return longest


def includes_external(exchange: Exchange) -> bool:
    """Return whether a tool call of the exchange fetched text from outside this machine."""
    return any(
        turn.kind is Kind.CALL and (_EXTERNAL_TOOL.search(turn.tool) or _EXTERNAL_COMMAND.search(turn.text))
        for turn in exchange.turns
    )


def _keep_valid(observation: Observation, lines: dict[int, list[Turn]]) -> tuple[Observation, int]:
    """Return the observation with its valid facts and evidence, and the number of rejected facts."""
    valid = [_occurs(evidence, lines) for evidence in observation.evidence]
    if all(valid) and len(valid) >= len(observation.facts):
        return observation, 0 if valid else 1
    facts = tuple(fact for fact, holds in zip(observation.facts, valid, strict=False) if holds)
    evidence = tuple(each for each, holds in zip(observation.evidence, valid, strict=True) if holds)
    lost = valid.count(False) + max(0, len(observation.facts) - len(valid))
    if observation.facts and not facts:
        evidence = ()
    return replace(observation, facts=facts, evidence=evidence), lost


def _occurs(evidence: Evidence, lines: dict[int, list[Turn]]) -> bool:
    """Return whether a turn on the evidence's lines contains the quote verbatim."""
    turns = (turn for line in range(evidence.start_line, evidence.end_line + 1) for turn in lines.get(line, ()))
    return bool(evidence.quote) and any(evidence.quote in turn.text for turn in turns)


def _origin(observation: Observation, lines: dict[int, list[Turn]], *, external: bool) -> Origin:
    """Return the least trusted origin of all quotes.

    If only the user is quoted, the origin is `human`. Otherwise, if the exchange fetched text from outside this machine
    (`external`), the origin is `external`, because quotes may repeat this text.
    """
    speakers = {_speaker(evidence, lines) for evidence in observation.evidence} | {Origin(observation.origin)}
    fetched = [Origin.EXTERNAL] if external and speakers != {Origin.HUMAN} else []
    return least([*speakers, *fetched])


def _speaker(evidence: Evidence, lines: dict[int, list[Turn]]) -> Origin:
    """Return the origin of a quote.

    A line can contain a call and its result. The origin is the tool only if the quote occurs in no other speaker's
    text. Other text that the user did not type, such as a task for a sub-agent, counts as the assistant's.
    """
    speakers = {turn.speaker for turn in lines.get(evidence.start_line, ()) if evidence.quote in turn.text}
    if speakers == {Speaker.HUMAN}:
        return Origin.HUMAN
    return Origin.TOOL if speakers == {Speaker.TOOL} else Origin.ASSISTANT
