"""Replay real sessions with the hooks, and measure how often injected lines bear on what followed.

For each session, only the sessions that ended before it are archived. The benchmark then runs the hooks for its start,
prompts, shell commands and edits. The recorded session never saw the injected text, so the figures say whether the
lines are about what the session did, not whether they helped it.

`bearing.py` judges if a line at the start or for a prompt *bears* on the rest of the session. The baseline draws random
observations from the same archived project instead.

A line before a command bears if the command then failed, or if its remedy was run among the next eight commands. A line
before an edit bears if a test, linter, type check or build failed later in the exchange. The baseline is the share of
all commands, or of all edits, for which the same holds.
"""

import argparse
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from msgspec import Struct, field

from palaver.agents.hooks.hooks import HookCall, HookPlace, relevant_hits, session_text
from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.store import Store
from palaver.core.config import Config
from palaver.core.conversation import Exchange, Kind, Session
from palaver.core.home import Home, root_of
from palaver.core.hooks import HookEvent
from palaver.core.results import Hit
from palaver.core.tokens import count
from palaver.observe.archive import Archive
from palaver.observe.commands.known_fixes import command_cost, file_cost, latest_sessions
from palaver.observe.memory.session_context import FILES_TITLE
from palaver.observe.pipeline import Pipeline
from palaver.observe.rules.shell_commands import ShellRun, shell_runs

from .bearing import BearingJudge, Followed, file_bears, followed
from .context import (
    Prompt,
    chosen_prompts,
    cited_files,
    dated_transcripts,
    exchanges_of,
    first_prompts,
    judge_of,
    made_home,
    real_samples,
)
from .observations import split_of
from .shared import SetMissing, transcripts, unpack
from .table import table, write_section

SESSIONS: Final = 200
"""Maximum number of sessions. The development sets have fewer."""
_SEED: Final = 2026
_NEXT: Final = 8
_CHECKS: Final = frozenset(("test", "lint", "type check", "check", "build"))
_SHOWN_HITS: Final = 3
_SCORES: Final = (0.0, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4)
_SIMILARITIES: Final = (0.01, 0.34, 0.5, 0.75, 1.0)
_SHARES: Final = (0.01, 0.25, 0.34, 0.5, 0.75, 1.0)
_SPLITS: Final = ("train", "test")
_LINE: Final = re.compile(r"- (.*) \[((?:obs|ex)-\d+), [^]]*\]$")


class Line(NamedTuple):
    """Injected line with its score, and the judgements of the line and of its baseline.

    `bears` is true if the line bears on the rest of the session, and `base` if a random observation does.
    """

    session: str
    item: str
    strength: float
    bears: bool
    base: bool
    tokens: int = 0
    section: str = ""


class Replayed(Struct):
    """Results of all replayed sessions.

    `all_commands` and `all_edits` are the baselines of the lines before commands and before edits.
    """

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
    parser.add_argument("--sessions", type=int, default=SESSIONS, metavar="N", help="maximum number of sessions")
    chosen = parser.parse_args(arguments)
    try:
        with TemporaryDirectory(prefix="palaver-bench-") as folder:
            found = replay(Path(folder), chosen.sessions)
    except SetMissing as missing:
        print(missing, file=sys.stderr)
        return 1
    text = summary(found)
    print(text)
    if chosen.write:
        write_section("Injection", f"`python -m bench.injection --write`\n\n{text}")
    return 0


def replay(folder: Path, sessions: int = SESSIONS) -> Replayed:
    """Replay the chosen sessions in the order of their start."""
    paths = [*unpack(transcripts(), folder / "history"), *real_samples()]
    everything, home, result = made_home(folder / "all"), made_home(folder / "home"), Replayed()
    with Pipeline(everything) as pipeline:
        pipeline.run(in_paths(paths))
    with Store.open(everything.database) as store, Pipeline(home) as pipeline:
        prompts = sorted(chosen_prompts(first_prompts(store), sessions), key=lambda each: each.at)
        dated, judge = dated_transcripts(store, in_paths(paths)), judge_of(store)
        for prompt in prompts:
            ready = [each.transcript for each in dated if each.ended <= prompt.at]
            dated = [each for each in dated if each.ended > prompt.at]
            pipeline.run(ready)
            _replay_session(store, home, prompt, judge, result)
            print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return result


def _replay_session(store: Store, home: Home, prompt: Prompt, judge: BearingJudge, result: Replayed) -> None:
    number, session = next(each for each in store.sessions.all().items() if each[1].native_id == prompt.session)
    exchanges = exchanges_of(store, number)
    drawn = random.Random(f"{_SEED} {prompt.session}")
    with Archive(home, Config()) as opened:
        archive = opened.store
        place = HookPlace(opened, prompt.namespace, root_of(Path(session.cwd)), at=session.started)
        sessions = latest_sessions(archive, prompt.namespace)
        lines = _Lines(archive, sessions, judge, drawn, session)
        answer = session_text(HookCall(HookEvent.SESSION_START, "SessionStart", prompt.session, session.cwd), place)
        after = followed(exchanges)
        result.starts[prompt.session] = (
            count(answer.text) if answer.text else 0,
            [lines.shown(*row, after) for row in _rows(answer.text)],
        )
        shown: set[str] = set()
        for index, exchange in enumerate(exchanges):
            call = HookCall(
                HookEvent.PROMPT, "UserPromptSubmit", prompt.session, session.cwd, prompt=exchange.prompt[:2000]
            )
            after = followed(exchanges[index:], without_prompt=True)
            result.prompt_calls += 1
            for hit in [hit for hit in relevant_hits(call, place) if hit.id not in shown][:_SHOWN_HITS]:
                shown.add(hit.id)
                result.prompts.append(lines.hit(hit, after))
            _replay_tools(archive, sessions, session, place.root, exchange, result)


def _replay_tools(
    archive: Store, sessions: Sequence[int], session: Session, root: Path, exchange: Exchange, result: Replayed
) -> None:
    turns = exchange.active_turns
    runs = list(shell_runs(turns))
    for index, run in enumerate(runs):
        result.all_commands[run.failed] += 1
        call = turns[run.position]
        found = command_cost(archive, sessions, call.text.removeprefix(f"{call.tool}: "), str(root))
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


class _Lines:
    """Judge of the lines of one session. It compares each line with a random observation of the same project."""

    def __init__(
        self, archive: Store, sessions: Sequence[int], judge: BearingJudge, drawn: random.Random, session: Session
    ) -> None:
        self._archive, self._judge, self._drawn, self._session = archive, judge, drawn, session.native_id
        self._every = sorted(
            (one for each in archive.observations.of_sessions(sessions).values() for one in each),
            key=lambda one: one.key,
        )

    def shown(self, section: str, text: str, item: str, after: Followed) -> Line:
        """Judge a line that a session got at its start."""
        if section == FILES_TITLE:
            bears = file_bears(text.partition(" (")[0], after)
        else:
            bears = self._judge.bears(text, cited_files(self._archive, item), after)
        return Line(self._session, item, 0.0, bears, self._random_bears(after), section=section)

    def hit(self, hit: Hit, after: Followed) -> Line:
        """Judge whether a line that was added to a prompt was relevant to it."""
        bears = self._judge.bears(hit.title, cited_files(self._archive, hit.id), after)
        return Line(self._session, hit.id, hit.score, bears, self._random_bears(after), count(hit.title) + 20)

    def _random_bears(self, after: Followed) -> bool:
        if not self._every:
            return False
        other = self._drawn.choice(self._every).observation
        return self._judge.bears(other.title, (*other.files_modified, *other.files_read), after)


def _rows(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield the heading, the text and the ID of each line of a context."""
    heading = ""
    for row in text.splitlines():
        if row.startswith("### "):
            heading = row.removeprefix("### ")
        elif found := _LINE.match(row):
            yield heading, found[1], found[2]


def summary(found: Replayed) -> str:
    """Return the Markdown tables of all hooks."""
    lines = [line for _, each in found.starts.values() for line in each]
    sections = {name: [line for line in lines if line.section == name] for name in dict.fromkeys(map(_section, lines))}
    by_section = [(name, str(len(some)), _share(some), _baseline(some)) for name, some in sections.items()]
    heads = ["section", "lines", "bear", "random lines"]
    parts = [
        "### Session start",
        table(["", *_SPLITS, "all"], list(_starts(found))),
        table(heads, by_section),
        "### Choices",
        "Thresholds were chosen on the training sessions. The numbers of lines are small.",
        table(["", "bear: train", "random lines", "bear: test", "random lines"], list(_choices(found))),
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


def _starts(found: Replayed) -> Iterator[tuple[str, ...]]:
    """Yield the table rows about session starts, with a column for each split and one for all sessions."""
    parts = [
        [start for session, start in found.starts.items() if split is None or split_of(session) == split]
        for split in (*_SPLITS, None)
    ]
    lines = [[line for _, each in part for line in each] for part in parts]
    yield ("sessions", *(str(len(part)) for part in parts))
    yield ("silent sessions", *(_percent(sum(not each for _, each in part), len(part)) for part in parts))
    yield ("sessions with a bearing line", *(str(sum(any(map(_bears, each)) for _, each in part)) for part in parts))
    for name, measure in (("mean tokens", _mean), ("maximum tokens", max)):
        yield (name, *(f"{measure([tokens for tokens, _ in part] or [0]):.0f}" for part in parts))
    yield ("lines", *(str(len(each)) for each in lines))
    yield ("lines that bear on the session", *map(_share, lines))
    yield ("random lines of the project that do", *map(_baseline, lines))


def _choices(found: Replayed) -> Iterator[tuple[str, ...]]:
    """Yield a table row for each choice of lines, such as a minimum score: the shares that bear, by split."""
    starts = [line for _, each in found.starts.values() for line in each]
    sections = dict.fromkeys(map(_section, starts))
    choices = {
        "start: all sections": starts,
        **{f"start: only {name}": [line for line in starts if line.section == name] for name in sections},
        **{f"prompt: score at least {least:.2f}": _from(found.prompts, least) for least in _SCORES},
        **{f"command: similarity at least {least:g}": _from(found.commands, least) for least in _SIMILARITIES},
        **{f"edit: share at least {least:g}": _from(found.edits, least) for least in _SHARES},
    }
    for name, lines in choices.items():
        row = [name]
        for split in _SPLITS:
            # A session gets a line about a command or a file once, at the first call for which it is strong enough.
            kept = [line for line in lines if split_of(line.session) == split]
            if name.startswith(("command", "edit")):
                kept = list({(line.session, line.item): line for line in reversed(kept)}.values())
            row.append(f"{_share(kept)} of {len(kept)}")
            row.append(_baseline(kept) if name.startswith(("start", "prompt")) else "-")
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
                _share(lines),
                _baseline(lines),
                _percent(len(found.starts) - len({line.session for line in lines}), len(found.starts)),
                f"{sum(line.tokens for line in lines) / max(1, len(found.starts)):.0f}",
            )
        )
    head = ["score at least", "lines", "bear", "random lines", "silent sessions", "tokens a session"]
    return f"{found.prompt_calls} prompts.\n\n{table(head, rows)}"


def _by(lines: Sequence[Line], least: Sequence[float]) -> Iterator[tuple[str, ...]]:
    """Yield a table row for each minimum strength, about the lines of at least this strength."""
    for each in least:
        # A session gets a line once, at the first call for which it is strong enough.
        first = {(line.session, line.item): line for line in reversed(lines) if line.strength >= each}
        kept = list(first.values())
        yield (
            f"{each:g}",
            str(len(kept)),
            str(len({line.session for line in kept})),
            _baseline(kept),
            _share(kept),
        )


def _section(line: Line) -> str:
    return line.section


def _bears(line: Line) -> bool:
    return line.bears


def _mean(numbers: Sequence[int]) -> float:
    return sum(numbers) / len(numbers)


def _share(lines: Sequence[Line]) -> str:
    return _percent(sum(line.bears for line in lines), len(lines))


def _baseline(lines: Sequence[Line]) -> str:
    return _percent(sum(line.base for line in lines), len(lines))


def _percent(some: int, every: int) -> str:
    return f"{100 * some / every:.0f} %" if every else "-"


if __name__ == "__main__":
    sys.exit(main())
