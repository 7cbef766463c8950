"""How did it go? What was done in an exchange, what was found on the way, what was concluded, and how it ended."""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from msgspec import Struct

from ...core.conversation import Exchange, Kind, Speaker, Turn
from .request import Request, plan_title, request
from .statements import Statement, proven, quote_of, statements
from .wording import plain
from .worth import is_noise, is_status, worth

_COMMIT = re.compile(r"\bgit\b[^\n;|&]{0,80}\bcommit\b(?![-\w])")
_MESSAGE = re.compile(
    r"""(?:-m|--message|-[a-z]*m)[ =](?:
    "\$\(cat\ <<-?\s*['"]?(?P<mark>\w+)['"]?\s*\n(?P<here>.*?)\n\s*(?P=mark)\b
    |@'\s*\n(?P<quoted>.*?)\n\s*'@
    |"(?P<double>(?:[^"\\]|\\.)*)"
    |'(?P<single>[^']*)')
    |(?:-F|--file)[ =]?-[^\n]*?<<-?\s*['"]?(?P<end>\w+)['"]?[^\n]*\n(?P<piped>.*?)\n\s*(?P=end)\b""",
    re.VERBOSE | re.DOTALL,
)
_WAYS = ("here", "quoted", "double", "single", "piped")
"""The ways to write a commit message on a command line: a here document, quotes of both shells, standard input."""
_FOOTER = re.compile(r"^(?:co-authored-by|signed-off-by|generated with|🤖|claude-session|entire-)", re.IGNORECASE)
_MINOR = re.compile(
    r"""(?:tests?|docs?|style|chore|ci|build|wip|te?mp)\b(?:\([^)]*\))?!?[:\s]|(?:add|adapt|fix|update)\s(?:\S+\s){0,3}tests?\b
    |(?:fix|apply)\s(?:lint|format)|format|merge\b|record\b|bump\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""How the subject of a commit begins that goes with another."""
_REFUSED = re.compile(
    r"^(?:FAILED|fatal:|error:)|\bhusky - .{0,60}(?:failed|exited)|nothing (?:added )?to commit|no changes added to",
    re.MULTILINE,
)
_CLAIMED = re.compile(
    r"^(?:\w+[.!:] )?Committed\b|\bcommit\b.{0,30}\b(?:succe\w+|went through|created|landed)",
    re.IGNORECASE | re.MULTILINE,
)
_INTERRUPTED = re.compile(r"\s*\[Request interrupted by user")
_CHECK = re.compile(
    r"""(?!(?:ls|cat|cd|grep|rg|find|rm|echo|git|sed|head|tail|cp|mv|mkdir|curl|gh)\b)
    .*?(?<![\w./-])(?:tests?|pytest|jest|vitest|lint|eslint|biome|ruff|mypy|pyright|tsc|typecheck|check|clippy|build|make
    |gradle|mvn|cargo|go\ vet|phpunit|rspec|xcodebuild|golangci-lint)(?![\w./-])""",
    re.VERBOSE,
)
_SHELLS = {"Bash", "bash", "exec_command", "local_shell", "shell", "shell_command"}
"""What the agents call the tool that runs a command."""
_LEAD = re.compile(r"(?:cd \S+ && |rtk |time |sudo |env |npx |[A-Z_]+=\S+ )+")
_CHANGING = re.compile(
    r"""(?:^|[;&|(]\s*|\bdo\s)(?:sudo\s)?(?:
    (?:sed\s+-i|perl\s+-\w*i|cp|mv|touch|patch|git\s+(?:rm|mv|apply|cherry-pick|revert|restore)|npm\s+(?:i|install|uninstall
    |version)|(?:bun|pnpm|yarn|uv|cargo|go)\s+(?:add|remove|get)|pip\s+install)\s(?![^\n;&|]*/tmp/)
    |cat\s*>>?\s*(?!/tmp/)|tee\s+(?!/tmp/))
    |\.write_text\(|open\([^)\n]*,\s*['"]w""",
    re.MULTILINE | re.VERBOSE,
)
"""Commands that change files without an edit that names them."""
_ANSWER = re.compile(r"^(.+) → (.+)$", re.MULTILINE)
TELLING = 3
"""The worth of a sentence that says something."""


class Commit(Struct, frozen=True):
    """A commit that was asked for on the command line; `done` unless its command failed and nobody said otherwise.

    Hooks that run after a commit make its command fail although the commit is there.
    """

    subject: str
    body: tuple[Statement, ...]
    quote: str
    line: int
    done: bool


class Answer(Struct, frozen=True):
    """A question the assistant put and what the person chose."""

    question: str
    choice: str
    quote: str
    line: int


class Plan(Struct, frozen=True):
    """The last plan that was put before the person."""

    title: str
    line: int
    approved: bool


class Story(Struct, frozen=True):
    """An exchange as it went.

    Each statement belongs to one of `findings` (on the way), `conclusion` (in the last reply) and `statuses` (how
    checks and commits went).
    """

    request: Request
    findings: tuple[Statement, ...]
    conclusion: tuple[Statement, ...]
    statuses: tuple[Statement, ...]
    commits: tuple[Commit, ...]
    answers: tuple[Answer, ...]
    objections: tuple[Statement, ...]
    """What the person said when they stopped a tool call."""
    plan: Plan | None
    failures: tuple[Turn, ...]
    """Calls of checks (tests, linters, builds) that failed."""
    left_failing: str
    """The command of the last check, when it failed."""
    interrupted: bool
    altered: bool
    """Whether a command changed files, of which the archive knows no names."""


def story(exchange: Exchange) -> Story:
    """Read an exchange once. Branches that the person left count only when there is nothing else."""
    turns = tuple(turn for turn in exchange.turns if turn.active) or exchange.turns
    results = {turn.call: turn for turn in turns if turn.kind is Kind.RESULT and turn.call}
    checks = list(_checks(turns, results))
    told = [(position, statement) for position, statement in _prose(turns) if not is_noise(statement.text)]
    said = [(position, statement) for position, statement in told if not is_status(statement.text)]
    border = _border(turns, said)
    return Story(
        request=request(exchange),
        findings=tuple(statement for position, statement in said if position < border),
        conclusion=tuple(statement for position, statement in said if position >= border),
        statuses=tuple(statement for _, statement in told if is_status(statement.text)),
        commits=tuple(_commits(turns, results)),
        answers=tuple(_answers(turns)),
        objections=tuple(_objections(turns)),
        plan=_plan(turns, results),
        failures=tuple(call for call, failed in checks if failed),
        left_failing=_command(checks[-1][0]) if checks and checks[-1][1] else "",
        interrupted=_interrupted(turns),
        altered=any(_alters(turn, results) for turn in turns),
    )


def _alters(turn: Turn, results: dict[str, Turn]) -> bool:
    if turn.kind is not Kind.CALL or turn.tool not in _SHELLS or not turn.call:
        return False
    command = turn.text.removeprefix(f"{turn.tool}: ")
    done = turn.call in results and not results[turn.call].failed
    return done and _CHANGING.search(command) is not None


def telling(commits: Sequence[Commit]) -> Commit | None:
    """The commit that says best what was done: the last one that is more than tests, documents or chores."""
    return max(commits, key=lambda commit: (not _MINOR.match(commit.subject), commit.line), default=None)


def _interrupted(turns: Sequence[Turn]) -> bool:
    """Whether the person broke off: nothing but the program's own notes follows."""
    after = takewhile(lambda turn: turn.kind is Kind.INJECTED, reversed(turns))
    return any(_INTERRUPTED.match(turn.text) for turn in after)


def _border(turns: Sequence[Turn], said: Sequence[tuple[int, Statement]]) -> int:
    """Where the concluding words begin: the last reply if it tells anything, else after the last edit or commit."""
    replies = [n for n, turn in enumerate(turns) if turn.kind is Kind.PROSE]
    last = replies[-1] if replies else 0
    while last - 1 in replies and turns[last].group and turns[last - 1].group == turns[last].group:
        last -= 1
    if any(position >= last and worth(statement.raw) >= TELLING for position, statement in said):
        return last
    changes = [
        n for n, turn in enumerate(turns) if turn.writes or (turn.kind is Kind.CALL and _COMMIT.search(turn.text))
    ]
    return min(last, changes[-1]) if changes else last


def _prose(turns: Sequence[Turn]) -> Iterator[tuple[int, Statement]]:
    for position, turn in enumerate(turns):
        if turn.kind is Kind.PROSE and turn.speaker is Speaker.ASSISTANT:
            for statement in statements(turn):
                yield position, statement


def _commits(turns: Sequence[Turn], results: dict[str, Turn]) -> Iterator[Commit]:
    """The last attempt at each message: a commit that a hook refused is usually tried again in the same words."""
    found: dict[str, Commit] = {}
    claimed = any(turn.kind is Kind.PROSE and _CLAIMED.search(turn.text) for turn in turns)
    for turn in turns:
        if turn.kind is not Kind.CALL or not _COMMIT.search(turn.text):
            continue
        for message in _MESSAGE.finditer(turn.text):
            text = next((message[name] for name in _WAYS if message[name]), "")
            lines = [line for line in text.strip().split("\n") if not _FOOTER.match(line.strip())]
            subject = plain(lines[0]) if lines else ""
            if len(subject) < 4:
                continue
            body = Turn(turn.line, turn.speaker, turn.kind, _unfolded("\n".join(lines[1:])))
            done = claimed or turn.call not in results or not _refused(results[turn.call])
            told = tuple(proven(statements(body), turn))
            found.pop(subject, None)
            found[subject] = Commit(subject, told, quote_of(lines[0]), turn.line, done)
            break
    yield from found.values()


def _refused(result: Turn) -> bool:
    return result.failed or _REFUSED.search(result.text) is not None


def _unfolded(body: str) -> str:
    """Commit messages are wrapped by hand; a wrapped sentence is one line again."""
    return re.sub(r"(?<=\S)\n(?!\s*(?:[-*•]|\d+[.)])\s|\n)[ \t]*", " ", body)


def _answers(turns: Sequence[Turn]) -> Iterator[Answer]:
    for turn in turns:
        if turn.kind is Kind.RESULT and turn.speaker is Speaker.HUMAN and not turn.failed:
            for pair in _ANSWER.finditer(turn.text):
                question, choice = plain(pair.group(1)), plain(pair.group(2))
                if question and choice:
                    yield Answer(question, choice, quote_of(pair.group()), turn.line)


def _objections(turns: Sequence[Turn]) -> Iterator[Statement]:
    for turn in turns:
        if turn.kind is Kind.RESULT and turn.speaker is Speaker.HUMAN and turn.failed:
            yield from (said for said in statements(turn) if len(said.text) >= 40 and not is_noise(said.text))


def _plan(turns: Sequence[Turn], results: dict[str, Turn]) -> Plan | None:
    plan = None
    for turn in turns:
        if turn.kind is Kind.CALL and turn.tool == "ExitPlanMode":
            heading = plan_title(turn.text.removeprefix(f"{turn.tool}: "))
            approved = turn.call in results and not results[turn.call].failed
            plan = Plan(heading, turn.line, approved)
    return plan


def _checks(turns: Sequence[Turn], results: dict[str, Turn]) -> Iterator[tuple[Turn, bool]]:
    """The calls that ran tests, linters or builds, and whether they failed."""
    for turn in turns:
        result = results.get(turn.call) if turn.kind is Kind.CALL and turn.tool in _SHELLS else None
        if result is not None and _CHECK.match(_command(turn)):
            yield turn, result.failed


def _command(call: Turn) -> str:
    """The program of a call and its first words, without what is put around it."""
    words = _LEAD.sub("", call.text[:200].removeprefix(f"{call.tool}: ").strip())
    return re.split(r"\s*(?:[|;&<>\n]|\d>)", words, maxsplit=1)[0][:60]
