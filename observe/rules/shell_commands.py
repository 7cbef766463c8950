"""Shell commands of an exchange, with their tasks and results."""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final

from msgspec import Struct

from ...core.conversation import Kind, Turn

TASKS: Final = {
    task: tuple(words.split())
    for task, words in {
        "test": "test tests pytest jest vitest rspec phpunit ctest tox nox",
        "lint": "lint eslint biome oxlint ruff flake8 pylint clippy golangci-lint markdownlint-cli2 vet knip",
        "format": "format fmt prettier gofmt black rustfmt",
        "type check": "typecheck type-check check-types tsc tsgo mypy pyright",
        "build": "build compile make xcodebuild",
        "install": "install ci sync",
        "run": "start dev serve run",
        "release": "publish release deploy",
        "check": "check",
    }.items()
}
"""Tasks of a project, such as `test` or `build`. The words of each task indicate it in a command."""

_TASK_OF: Final = {word: task for task, words in TASKS.items() for word in words if word != "run"}
_MANY: Final = {
    "make": _TASK_OF,
    "ruff": {"format": "format"},
    "biome": {"format": "format"},
}
"""Programs that serve several tasks. The word after the program determines the task."""
_SHELLS: Final = frozenset(
    """bash exec_command local_shell powershell run_command run_shell_command run_terminal_cmd shell
    shell_command""".split()
)
"""Names of tools that run a shell command, in lower case."""
_PURPOSE: Final = re.compile(r"  # [^\n]*\Z")
"""Pattern for the description that an agent appends to its command as a comment."""
_MESSAGE: Final = re.compile(
    r"""(?<=\s)(-a?m|--message|--body|--title)[ =](?:"\$\(cat\ <<.*?\n\s*\)"|"(?:[^"\\]|\\.)*"|'[^']*')""",
    re.VERBOSE | re.DOTALL,
)
_PARTS: Final = re.compile(r""""(?:[^"\\]|\\.)*"|'[^']*'|(?P<end>&&|\|\||[;\n])|(?P<pipe>\|)|\\.|.""", re.DOTALL)
_REDIRECTION: Final = re.compile(r"\s*(?:2>&1|[12&]?>{1,2}\s?/dev/null|<\s?/dev/null)")
_PREFIX: Final = re.compile(r"\A(?:(?:[A-Z_][A-Z0-9_]*=\S*|sudo|time|command|exec|timeout \S+)\s+)+(?=\S)")
_FILTERS: Final = frozenset(
    "awk cat grep head less more out-string rg sed select-object select-string sort tail tee uniq wc".split()
)
_PLAIN: Final = re.compile(r"[A-Za-z][\w:-]*")
_PLAIN_MAX: Final = 4
"""Maximum number of leading words that identify a command without a task."""
_FOLDER: Final = re.compile(r"""(?:cd|Set-Location|pushd) ("[^"]+"|'[^']+'|\S+)\Z""")
_RUNNERS: Final = frozenset("cargo deno dotnet go swift".split())
"""Programs whose subcommand `run` starts the project itself, rather than one of its scripts."""
_READERS: Final = frozenset(
    """[ alias awk base64 cat cd clear cmp command cp curl cut date df diff du echo env exit export false fd
    file find for get-childitem get-content grep head history hostname if jq kill less ls lsd lsof mkdir more mv
    nl od open palaver pgrep pkill printf ps pwd read readlink rg rm sed set sleep sort source stat strings tail
    test time touch tr tree true type ulimit uname uniq unset until wc wget which while whoami xargs xxd .""".split()
)
"""Programs that show or move files or wait. They are not commands of a project."""


def _task_of(word: str) -> str:
    """Return the task that a word of a command indicates, or an empty string.

    The word can be a script name that contains the task: `test:unit` indicates `test`, and `css:build` indicates
    `build`.
    """
    parts = (word, word.partition(":")[0], word.rpartition(":")[2])
    return next((_TASK_OF[part] for part in parts if part in _TASK_OF), "")


class Segment(Struct, frozen=True):
    """One command of a command line, without redirections and output filters such as `| tail`."""

    text: str
    filtered: bool
    """True if the output went through a filter. The exit status is then that of the filter."""

    @property
    def words(self) -> tuple[str, ...]:
        """Words of the command."""
        return tuple(self.text.split())

    @property
    def program(self) -> str:
        """Name of the program, in lower case and without its folder."""
        return self.text.split(maxsplit=1)[0].replace("\\", "/").rsplit("/", 1)[-1].lower()

    @property
    def is_reader(self) -> bool:
        """True for a command that only shows something, waits, or moves files."""
        return self.program in _READERS

    @property
    def task(self) -> str:
        """Task that the command performs, such as `test`, or an empty string. `TASKS` lists the tasks."""
        return self._task[0]

    @property
    def base(self) -> str:
        """Command up to the word that names the task, such as `bun run test`.

        If no word names a task, these are the first words of the command.
        """
        return " ".join(self.words[: self._task[1]])

    def extends(self, command: str) -> bool:
        """Return whether this command adds arguments to another one: `git push origin` extends `git push`.

        A subcommand is not an argument: `make lint` does not extend `make`.
        """
        words, start = self.words, command.split()
        if words[: len(start)] != tuple(start) or len(words) == len(start):
            return False
        return len(start) > 1 or _PLAIN.fullmatch(words[1]) is None

    @property
    def _task(self) -> tuple[str, int]:
        """Task, and the number of words up to and including the word that names it."""
        words = self.words
        if self.is_reader or self.program in ("git", "gh") or self.text[0] in "\"'":
            return "", self._plain
        for place, word in enumerate(words[:6]):
            task = _task_of(word.rsplit("/", 1)[-1] if place == 0 else word)
            if task and word in _MANY and place + 1 < len(words) and _MANY[word].get(words[place + 1]):
                return _MANY[word][words[place + 1]], place + 2
            if task:
                return task, place + 1
            if word == "run" and place == 1 and self.program in _RUNNERS:
                return "run", place + 1
        return "", self._plain

    @property
    def _plain(self) -> int:
        """Number of leading words that are neither options nor paths, at least 1."""
        return 1 + len(list(takewhile(_PLAIN.fullmatch, self.words[1:_PLAIN_MAX])))


class ShellRun(Struct, frozen=True):
    """Call of a shell tool with its result.

    Attributes:
        position: Position of the call among the turns.
        folder: Folder that the command line changes to first. Empty if it does not change the folder.
        segments: Commands of the command line, in order.
        quote: First line of the command, verbatim.
    """

    position: int
    line: int
    result: Turn
    folder: str
    segments: tuple[Segment, ...]
    quote: str

    @property
    def failed(self) -> bool:
        """True if the tool reported a failure."""
        return self.result.failed

    @property
    def command(self) -> str:
        """Command line without folder, redirections and output filters."""
        return " && ".join(segment.text for segment in self.segments)

    def proves(self, command: str) -> bool:
        """Return whether this run shows that a command succeeded."""
        passed = self.segments if not self.failed else ()
        return any(segment.text == command and not segment.filtered for segment in passed)


def shell_runs(turns: Sequence[Turn]) -> Iterator[ShellRun]:
    """Yield the shell commands that have a result. Scripts of several lines are skipped."""
    results = {turn.call: turn for turn in turns if turn.kind is Kind.RESULT and turn.call}
    for position, turn in enumerate(turns):
        if turn.kind is not Kind.CALL or turn.tool.lower() not in _SHELLS or turn.call not in results:
            continue
        text = turn.text.removeprefix(f"{turn.tool}: ")
        line = without_messages(_PURPOSE.sub("", text))
        folder, segments = command_segments(line)
        if segments and "\n" not in line:
            quote = text.split("\n", 1)[0].strip()[:120].rstrip()
            yield ShellRun(position, turn.line, results[turn.call], folder, segments, quote)


def without_messages(line: str) -> str:
    """Return a command line with `…` in place of the messages of commits and pull requests."""
    return _MESSAGE.sub(r"\1 …", line).strip()


def command_segments(line: str) -> tuple[str, tuple[Segment, ...]]:
    """Return the first folder that a command line changes to, and its commands."""
    folder, segments = "", list[Segment]()
    for parts in _split(line):
        head, *filters = parts
        text = _PREFIX.sub("", _REDIRECTION.sub("", head).strip(), count=1)
        if found := _FOLDER.match(text):
            folder = folder or (found[1].strip("\"'") if not segments else "")
        elif text:
            kept = [text, *(_REDIRECTION.sub("", part).strip() for part in filters)]
            while len(kept) > 1 and (not kept[-1] or kept[-1].split()[0].lower() in _FILTERS):
                kept.pop()
            segments.append(Segment(" ".join(" | ".join(kept).split()), len(kept) <= len(filters)))
    return folder, tuple(segments)


def _split(line: str) -> Iterator[list[str]]:
    """Yield the commands of a command line. Each is a list of the commands that pipes connect."""
    parts = [""]
    for found in _PARTS.finditer(line):
        if found["end"]:
            yield parts
            parts = [""]
        elif found["pipe"]:
            parts.append("")
        else:
            parts[-1] += found[0]
    yield parts
