"""Replay real sessions with the hooks, and measure how often injected lines bear on what followed.

For each session, only the sessions that ended before it are archived. The hooks then get its start, its prompts, its
shell commands and its edits. The recorded session never saw the injected text, so the figures say whether the lines
are about what the session did, not whether they helped it.

A line at the start or for a prompt *bears* on the rest of the session if the rest reads or modifies a file that the
line's observation cites, or contains at least two rare words of the line. A word is rare if at most a tenth of the
project's sessions contain it. The baseline draws random observations from the same archived project instead.

A line before a command bears if the command then failed, or if its remedy was run among the next eight commands. A line
before an edit bears if a test, linter, type check or build failed later in the exchange. The baseline is the share of
all commands, or of all edits, for which the same holds.
"""

import argparse
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from msgspec import Struct, field

from palaver.agents.hooks.hook_answer import HookPlace
from palaver.agents.hooks.hook_call import HookCall
from palaver.agents.hooks.prompt_hook import relevant_hits
from palaver.agents.hooks.session_start_hook import session_text
from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.store import Store
from palaver.core import ids
from palaver.core.config import Config
from palaver.core.conversation import Exchange, Kind, Session
from palaver.core.home import Home
from palaver.core.injection import HookEvent
from palaver.core.project import root_of
from palaver.core.tokens import count
from palaver.observe.commands.known_costs import command_cost, file_cost, latest_sessions
from palaver.observe.pipeline import Pipeline
from palaver.observe.rules.shell_commands import ShellRun, shell_runs
from palaver.observe.rules.touched_files import file_name

from .context import Prompt, chosen_prompts, dated_transcripts, first_prompts, made_home, real_samples
from .shared import SetMissing, transcripts, unpack
from .table import table, write_section

SESSIONS: Final = 50
_SEED: Final = 2026
_NEXT: Final = 8
_CHECKS: Final = frozenset(("test", "lint", "type check", "check", "build"))
_SHOWN_HITS: Final = 3
_SCORES: Final = (0.0, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4)
_SIMILARITIES: Final = (0.01, 0.34, 0.5, 0.75, 1.0)
_SHARES: Final = (0.01, 0.25, 0.34, 0.5, 0.75, 1.0)
_ID: Final = re.compile(r"\[((?:obs|ex)-\d+), [^]]*\]$")
_WORD: Final = re.compile(r"[^\W\d_][\w.-]{3,}")


class Line(NamedTuple):
    """Injected line, or a line of the baseline, with its strength and whether it bears on the rest."""

    session: str
    item: str
    strength: float
    bears: bool
    base: bool
    tokens: int = 0
    section: str = ""


class Rest(NamedTuple):
    """Files and words of the rest of a session."""

    files: frozenset[str]
    words: frozenset[str]


class Replayed(Struct):
    """Results of all replayed sessions. The totals of commands and edits are the baselines of the lines before them."""

    starts: dict[str, tuple[int, list[Line]]] = field(default_factory=dict[str, tuple[int, list[Line]]])
    prompts: list[Line] = field(default_factory=list[Line])
    prompt_calls: int = 0
    commands: list[Line] = field(default_factory=list[Line])
    edits: list[Line] = field(default_factory=list[Line])
    all_commands: Counter[bool] = field(default_factory=Counter[bool])
    all_edits: Counter[bool] = field(default_factory=Counter[bool])


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay the sessions and print the tables. `--write` updates RESULTS.md."""
    parser = argparse.ArgumentParser(prog="python -m bench.injection", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the tables to bench/RESULTS.md")
    chosen = parser.parse_args(arguments)
    try:
        with TemporaryDirectory(prefix="palaver-bench-") as folder:
            found = replay(Path(folder))
    except SetMissing as missing:
        print(missing, file=sys.stderr)
        return 1
    text = summary(found)
    print(text)
    if chosen.write:
        write_section("Injection", f"`python -m bench.injection --write`\n\n{text}")
    return 0


def replay(folder: Path) -> Replayed:
    """Replay the chosen sessions in the order of their start."""
    paths = [*unpack(transcripts(), folder / "history"), *real_samples()]
    everything, home, result = made_home(folder / "all"), made_home(folder / "home"), Replayed()
    with Pipeline(everything) as pipeline:
        pipeline.run(in_paths(paths))
    with Store.open(everything.database) as store, Pipeline(home) as pipeline:
        prompts = sorted(chosen_prompts(first_prompts(store), SESSIONS), key=lambda each: each.at)
        dated, known = dated_transcripts(store, in_paths(paths)), _documents(store)
        for prompt in prompts:
            ready = [each.transcript for each in dated if each.ended <= prompt.at]
            dated = [each for each in dated if each.ended > prompt.at]
            pipeline.run(ready)
            _replay_session(store, home, prompt, known, result)
            print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return result


def _documents(store: Store) -> dict[str, tuple[Counter[str], int]]:
    """Return for each project the number of sessions with each word, and the number of sessions."""
    found: dict[str, tuple[Counter[str], int]] = defaultdict(lambda: (Counter[str](), 0))
    for number, session in store.sessions.all().items():
        words, sessions = found[session.project]
        words.update(_rest(_exchanges(store, number)).words)
        found[session.project] = words, sessions + 1
    return dict(found)


def _replay_session(
    store: Store, home: Home, prompt: Prompt, known: Mapping[str, tuple[Counter[str], int]], result: Replayed
) -> None:
    number, session = next(each for each in store.sessions.all().items() if each[1].native_id == prompt.session)
    exchanges, rare = _exchanges(store, number), _Rarity(*known[session.project])
    drawn = random.Random(f"{_SEED} {prompt.session}")
    with Store.open(home.database) as archive:
        place = HookPlace(home, Config(), archive, prompt.namespace, root_of(Path(session.cwd)))
        sessions = latest_sessions(archive, prompt.namespace)
        lines = _Lines(archive, sessions, rare, drawn, session)
        answer = session_text(HookCall(HookEvent.SESSION_START, "SessionStart", prompt.session, session.cwd), place)
        after = _rest(exchanges)
        result.starts[prompt.session] = (
            count(answer.text) if answer.text else 0,
            [lines.judged(item, after)._replace(section=section) for section, item in _sections(answer.text)],
        )
        shown: set[str] = set()
        for index, exchange in enumerate(exchanges):
            call = HookCall(
                HookEvent.PROMPT, "UserPromptSubmit", prompt.session, session.cwd, prompt=exchange.prompt[:2000]
            )
            after = _rest(exchanges[index:], without_prompt=True)
            result.prompt_calls += 1
            for hit in [hit for hit in relevant_hits(call, place) if hit.id not in shown][:_SHOWN_HITS]:
                shown.add(hit.id)
                result.prompts.append(lines.judged(hit.id, after, hit.score))
            _replay_tools(archive, sessions, session, place.root, exchange, result)


def _replay_tools(
    archive: Store, sessions: Sequence[int], session: Session, root: Path, exchange: Exchange, result: Replayed
) -> None:
    turns = exchange.active_turns
    runs = list(shell_runs(turns))
    for index, run in enumerate(runs):
        result.all_commands[run.failed] += 1
        found = command_cost(archive, sessions, run.command, str(root))
        if found is not None:
            later = any(found.remedy in each.command for each in runs[index + 1 : index + 1 + _NEXT])
            result.commands.append(Line(session.native_id, found.id, found.strength, run.failed or later, run.failed))
    for position, turn in enumerate(turns):
        for path in turn.writes if turn.kind is Kind.RESULT else ():
            failed = any(run.position > position and _is_failed_check(run) for run in runs)
            result.all_edits[failed] += 1
            found = file_cost(archive, sessions, path, str(root))
            if found is not None:
                result.edits.append(Line(session.native_id, found.id, found.strength, failed, failed))


def _is_failed_check(run: ShellRun) -> bool:
    return run.failed and any(segment.task in _CHECKS for segment in run.segments)


class _Rarity:
    """Test for rare words: words that at most a tenth of the sessions, or two sessions, contain."""

    def __init__(self, words: Counter[str], sessions: int) -> None:
        self._words, self._most = words, max(2, sessions // 10)

    def __call__(self, words: frozenset[str]) -> frozenset[str]:
        """Return the rare words."""
        return frozenset(word for word in words if 0 < self._words[word] <= self._most)


class _Lines:
    """Judgement of lines about observations of an archived project, each with a random line of the same project."""

    def __init__(
        self, archive: Store, sessions: Sequence[int], rare: _Rarity, drawn: random.Random, session: Session
    ) -> None:
        self._archive, self._rare, self._drawn, self._session = archive, rare, drawn, session
        every = archive.observations.of_sessions(sessions)
        self._others = sorted(one.key for each in every.values() for one in each)

    def judged(self, item: str, rest: Rest, strength: float = 0.0) -> Line:
        """Return a line with its judgement and that of a random line."""
        key = ids.key(item)
        assert key is not None
        other = self._drawn.choice(self._others) if self._others else key
        text, bears = self._bears(key, rest)
        return Line(self._session.native_id, item, strength, bears, self._bears(other, rest)[1], count(text) + 20)

    def _bears(self, key: int, rest: Rest) -> tuple[str, bool]:
        stored = self._archive.observations.load([key]).get(key)
        if stored is None:  # An exchange stands for its prompt.
            exchange = self._archive.exchanges.load([key])[key].exchange
            text, cited = exchange.prompt[:300], exchange.writes
        else:
            text = stored.observation.title
            cited = (*stored.observation.files_modified, *stored.observation.files_read)
        files = {file_name(path) for path in cited}
        words = self._rare(frozenset(map(str.lower, _WORD.findall(text))))
        return text, bool(files & rest.files) or len(words & rest.words) >= 2


def _exchanges(store: Store, number: int) -> list[Exchange]:
    keys = store.summaries.exchanges(number)
    return [
        stored.exchange for stored in sorted(store.exchanges.load(keys).values(), key=lambda each: keys.index(each.key))
    ]


def _sections(text: str) -> Iterator[tuple[str, str]]:
    """Yield the heading and the ID of each line of a context."""
    heading = ""
    for row in text.splitlines():
        if row.startswith("### "):
            heading = row.removeprefix("### ")
        elif found := _ID.search(row):
            yield heading, found[1]


def _rest(exchanges: Sequence[Exchange], *, without_prompt: bool = False) -> Rest:
    """Return the files that exchanges touch, and the words of the user and the assistant in them."""
    files, words = set[str](), set[str]()
    for index, exchange in enumerate(exchanges):
        files.update(file_name(path) for path in (*exchange.reads, *exchange.writes))
        for turn in exchange.active_turns:
            is_prompt = without_prompt and index == 0 and turn.kind is Kind.PROMPT
            if turn.kind is not Kind.RESULT and not is_prompt:
                words.update(map(str.lower, _WORD.findall(turn.text)))
    return Rest(frozenset(files), frozenset(words))


def summary(found: Replayed) -> str:
    """Return the tables of all hooks."""
    starts = found.starts.values()
    lines = [line for _, each in starts for line in each]
    tokens = sorted(tokens for tokens, _ in starts)
    rows = [
        ("sessions", str(len(found.starts))),
        ("silent sessions", _percent(sum(not tokens for tokens, _ in starts), len(found.starts))),
        ("median and maximum tokens", f"{tokens[len(tokens) // 2]}, {tokens[-1]}"),
        ("lines", str(len(lines))),
        ("lines that bear on the session", _percent(sum(line.bears for line in lines), len(lines))),
        ("random lines of the project that do", _percent(sum(line.base for line in lines), len(lines))),
        (
            "sessions with a bearing line",
            _percent(sum(any(line.bears for line in each) for _, each in starts), len(found.starts)),
        ),
    ]
    heads = ["section", "lines", "bear", "random lines"]
    sections = [
        (name, [line for line in lines if line.section == name])
        for name in dict.fromkeys(line.section for line in lines)
    ]
    by_section = [
        (
            name,
            str(len(some)),
            _percent(sum(line.bears for line in some), len(some)),
            _percent(sum(line.base for line in some), len(some)),
        )
        for name, some in sections
    ]
    parts = [
        "### Session start",
        table(["", "all sections"], rows),
        table(heads, by_section),
        "Choices use every other session, and the rest is reported. The numbers of lines are small.",
        table(["", "bear: chosen on", "random lines", "bear: reported", "random lines"], list(_halves(found))),
        "### Prompt",
        _prompts(found),
        "### Before a command",
    ]
    commands, edits = found.all_commands, found.all_edits
    parts.append(f"All {commands.total():,} commands: {_percent(commands[True], commands.total())} failed.")
    head = ["similarity at least", "lines", "sessions", "failed", "failed or remedy run"]
    parts.append(table(head, list(_by(found.commands, _SIMILARITIES))))
    parts.append("### Before an edit")
    share = _percent(edits[True], edits.total())
    parts.append(f"All {edits.total():,} edits: a check failed later in the exchange after {share}.")
    head = ["share of failed edits at least", "lines", "sessions", "check failed later"]
    parts.append(table(head, [row[:4] for row in _by(found.edits, _SHARES)]))
    return "\n\n".join(parts)


def _halves(found: Replayed) -> Iterator[tuple[str, ...]]:
    """Yield a row for each choice: the lines that bear in every other session, and in the rest."""
    halves = [frozenset([*found.starts][first::2]) for first in (0, 1)]
    starts = [line for _, each in found.starts.values() for line in each]
    sections = dict.fromkeys(line.section for line in starts)
    choices = {
        "start: all sections": starts,
        **{f"start: only {name}": [line for line in starts if line.section == name] for name in sections},
        **{f"prompt: score at least {least:.2f}": _from(found.prompts, least) for least in _SCORES},
        **{f"command: similarity at least {least:g}": _from(found.commands, least) for least in _SIMILARITIES},
        **{f"edit: share at least {least:g}": _from(found.edits, least) for least in _SHARES},
    }
    for name, lines in choices.items():
        row = [name]
        for half in halves:
            # A session gets a line about a command or a file once, at the first call for which it is strong enough.
            kept = [line for line in lines if line.session in half]
            if name.startswith(("command", "edit")):
                kept = list({(line.session, line.item): line for line in reversed(kept)}.values())
            baseline = _percent(sum(line.base for line in kept), len(kept))
            row.append(f"{_percent(sum(line.bears for line in kept), len(kept))} of {len(kept)}")
            row.append(baseline if name.startswith(("start", "prompt")) else "-")
        yield tuple(row)


def _from(lines: Sequence[Line], least: float) -> list[Line]:
    return [line for line in lines if line.strength >= least]


def _prompts(found: Replayed) -> str:
    rows: list[tuple[str, ...]] = []
    for least in _SCORES:
        lines = [line for line in found.prompts if line.strength >= least]
        rows.append(
            (
                f"{least:.2f}",
                str(len(lines)),
                _percent(sum(line.bears for line in lines), len(lines)),
                _percent(sum(line.base for line in lines), len(lines)),
                _percent(len(found.starts) - len({line.session for line in lines}), len(found.starts)),
                f"{sum(line.tokens for line in lines) / max(1, len(found.starts)):.0f}",
            )
        )
    head = ["score at least", "lines", "bear", "random lines", "silent sessions", "tokens a session"]
    return f"{found.prompt_calls} prompts.\n\n{table(head, rows)}"


def _by(lines: Sequence[Line], least: Sequence[float]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each threshold."""
    for each in least:
        # A session gets a line once, at the first call for which it is strong enough.
        first = {(line.session, line.item): line for line in reversed(lines) if line.strength >= each}
        kept = list(first.values())
        yield (
            f"{each:g}",
            str(len(kept)),
            str(len({line.session for line in kept})),
            _percent(sum(line.base for line in kept), len(kept)),
            _percent(sum(line.bears for line in kept), len(kept)),
        )


def _percent(some: int, every: int) -> str:
    return f"{100 * some / every:.0f} %" if every else "-"


if __name__ == "__main__":
    sys.exit(main())
