"""Show which context real sessions would have had at their first prompt: `python -m bench.context`.

For each prompt, only the sessions that ended before it are archived. The benchmark prints the tokens and lines of the
context. With `--show`, a reader judges whether a line is useful for the prompt, and adds 1 or 0 to
`context_ratings.json`. The key is the hash of the prompt and of the session, file or decision that the line names. The
file contains no text.
"""

import argparse
import hashlib
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import orjson
from msgspec import Struct

from palaver.archiver.copies.raw_copy import RawArchive
from palaver.archiver.ingest.ingest import Ingest
from palaver.archiver.ingest.transcripts import Transcript, in_paths
from palaver.archiver.redaction import Redactor
from palaver.archiver.store import Store
from palaver.core import ids
from palaver.core.conversation import Exchange, Milliseconds, SessionKind
from palaver.core.home import Home
from palaver.core.results import DigestLine
from palaver.core.tokens import count
from palaver.observe.memory import MemoryCore, SessionContext
from palaver.observe.memory.session_context import FILES_TITLE, SESSIONS_TITLE
from palaver.observe.pipeline import observe_pending
from palaver.search.index.generation import Generations
from palaver.search.model.embedder import DEFAULT_MODEL, load
from palaver.templates.render import Renderer

from .bearing import BearingJudge, Followed, file_bears, followed
from .observations import split_of
from .shared import SetMissing, samples, transcripts, unpack
from .table import table, write_section

RATINGS: Final = Path(__file__).with_name("context_ratings.json")
PROMPTS: Final = 30
_BUDGET: Final = 1_500
_EARLIER_MIN: Final = 3
_CHECKPOINT, _EVALUATED = ".entire-meta.json", "copilot"
_OPENING: Final = 200
"""Prompts that share this number of characters at their beginning count as repetitions, such as a review command."""
_SHOWN: Final = 700
"""Characters of a prompt that `--show` prints."""


class Prompt(Struct, frozen=True):
    """First prompt of a session."""

    session: str
    namespace: str
    text: str
    at: Milliseconds


class Line(NamedTuple):
    """Line of a context, with the hash of the session, file or decision that it names, and the verdict of the judge."""

    hash: str
    text: str
    bears: bool


class Replay(Struct, frozen=True):
    """Context that a session would have had at its first prompt."""

    prompt: Prompt
    tokens: int
    lines: tuple[Line, ...]


class DatedTranscript(Struct, frozen=True):
    """Transcript with the time at which its session ended."""

    ended: Milliseconds
    transcript: Transcript


def main(arguments: Sequence[str] | None = None) -> int:
    """Show the contexts and print the measurements. `--show` adds prompts and lines. `--write` updates RESULTS.md."""
    parser = argparse.ArgumentParser(prog="python -m bench.context", description=__doc__)
    parser.add_argument("--show", action="store_true", help="print prompts and lines with their hashes")
    parser.add_argument("--query", action="store_true", help="pass the prompt as the topic of the session")
    parser.add_argument("--write", action="store_true", help="write the tables to bench/RESULTS.md")
    chosen = parser.parse_args(arguments)
    try:
        with TemporaryDirectory(prefix="palaver-bench-") as folder:
            found = replays(Path(folder), with_query=chosen.query)
    except SetMissing as missing:
        print(missing, file=sys.stderr)
        return 1
    ratings: dict[str, dict[str, int]] = orjson.loads(RATINGS.read_bytes()) if RATINGS.exists() else {}
    for each in found if chosen.show else ():
        print(f"\n## {digest(each.prompt.session)} {each.prompt.namespace}: {each.prompt.text[:_SHOWN]}\n")
        for line in each.lines:
            print(line.hash, line.text)
    text = _summary(found, ratings)
    print(text)
    if chosen.write:
        write_section("Context", f"`python -m bench.context --write`\n\n{text}")
    return 0


def replays(folder: Path, *, with_query: bool = False) -> list[Replay]:
    """Return the contexts of the chosen prompts. Sessions are archived in the order in which they ended."""
    paths = [*unpack(transcripts(), folder / "history"), *real_samples()]
    with Store.create(made_home(folder / "all").database) as store:
        _ingest(store, in_paths(paths))
        prompts, dated = chosen_prompts(first_prompts(store)), dated_transcripts(store, in_paths(paths))
        judge = judge_of(store)
        after = {
            session.native_id: followed(exchanges_of(store, number)) for number, session in store.sessions.all().items()
        }
    home = made_home(folder / "home")
    with Store.create(home.database) as store:
        core = MemoryCore(store, Generations(home.index), load(DEFAULT_MODEL), Redactor(home.key()))
        found: list[Replay] = []
        for prompt in sorted(prompts, key=lambda each: each.at):
            ready = [each for each in dated if each.ended <= prompt.at]
            dated = [each for each in dated if each.ended > prompt.at]
            _ingest(store, [each.transcript for each in ready])
            observe_pending(store, lambda _done, _total: None)
            found.append(_replay(core, prompt, prompt.text if with_query else "", judge, after[prompt.session]))
    return found


def real_samples() -> list[Path]:
    """Return the sample sessions of real users. Unlike evaluation runs, they have a checkpoint file beside them."""
    checkpoints = samples().rglob(f"*{_CHECKPOINT}")
    named = [each.with_name(each.name.removesuffix(_CHECKPOINT) + ".jsonl") for each in checkpoints]
    return sorted(each for each in named if each.exists() and each.parent.name != _EVALUATED)


def made_home(folder: Path) -> Home:
    home = Home(folder)
    home.make()
    return home


def _ingest(store: Store, found: Sequence[Transcript]) -> None:
    with store.leases.hold("archiver"):
        Ingest(store, RawArchive(store.home.archive)).run(found)


def judge_of(store: Store) -> BearingJudge:
    """Return a judge that knows the words of all sessions."""
    return BearingJudge(exchanges_of(store, number) for number in store.sessions.all())


def exchanges_of(store: Store, session: int) -> list[Exchange]:
    """Return the exchanges of a session, in order."""
    keys = store.summaries.newest_exchanges(session)
    found = store.exchanges.load(keys)
    return [found[key].exchange for key in keys]


def cited_files(store: Store, item: str) -> Sequence[str]:
    """Return the files that an observation cites. For an exchange, return the files that it modified."""
    key = ids.key(item)
    assert key is not None
    stored = store.observations.load([key]).get(key)
    if stored is None:
        return store.exchanges.load([key])[key].exchange.writes
    return (*stored.observation.files_modified, *stored.observation.files_read)


def _replay(core: MemoryCore, prompt: Prompt, query: str, judge: BearingJudge, after: Followed) -> Replay:
    def cost(context: SessionContext) -> int:
        return count(Renderer().memory_context((), digest=context.digest))

    context = core.contexts.select(cost, prompt.namespace, query, _BUDGET)
    lines = (
        _line(core.store, section.title, line, judge, after) for section in context.digest for line in section.lines
    )
    return Replay(prompt, context.tokens, tuple(lines))


def _line(store: Store, heading: str, line: DigestLine, judge: BearingJudge, after: Followed) -> Line:
    named = line.text.partition(" (")[0]
    if heading == FILES_TITLE:
        return Line(digest(named), line.all_text, file_bears(named, after))
    if heading == SESSIONS_TITLE:
        key = ids.key(line.id)
        assert key is not None
        named = store.sessions.load(store.items.load([key])[key].session).native_id
    return Line(digest(named), line.all_text, judge.bears(line.all_text, cited_files(store, line.id), after))


def first_prompts(store: Store) -> Iterator[Prompt]:
    """Yield the first prompt of each main session that has enough earlier sessions in its project."""
    ended: dict[str, list[Milliseconds]] = defaultdict(list)
    sessions = {number: each for number, each in store.sessions.all().items() if each.kind is SessionKind.MAIN}
    spaces = {number: store.projects.of_session(each) for number, each in sessions.items()}
    for number, session in sessions.items():
        ended[spaces[number]].append(session.ended or sys.maxsize)
    for number, session in sessions.items():
        keys = store.summaries.newest_exchanges(number)
        start = session.started or 0
        if keys and sum(each <= start for each in ended[spaces[number]]) >= _EARLIER_MIN:
            first = store.exchanges.load(keys[:1])[keys[0]].exchange
            if first.prompt.strip():
                yield Prompt(session.native_id, spaces[number], first.prompt, start)


def chosen_prompts(prompts: Iterator[Prompt], most: int = PROMPTS) -> list[Prompt]:
    """Return up to `most` distinct prompts, taking one from each project in turn.

    Prompts of a project are sorted by the hash of the session, so that all versions of Palaver use the same prompts.
    """
    turns = Counter[str]()
    ranked: list[tuple[int, str, Prompt]] = []
    distinct = {(each.namespace, each.text[:_OPENING]): each for each in prompts}
    for prompt in sorted(distinct.values(), key=lambda each: digest(each.session)):
        turns[prompt.namespace] += 1
        ranked.append((turns[prompt.namespace], digest(prompt.session), prompt))
    return [prompt for _, _, prompt in sorted(ranked, key=lambda each: each[:2])[:most]]


def dated_transcripts(store: Store, found: Sequence[Transcript]) -> list[DatedTranscript]:
    """Return the transcripts with the end of their sessions. Transcripts without a known session come first."""
    by_path = {each.path: each for each in found}
    ended: dict[Path, Milliseconds] = {}
    for source in store.sources.all():
        if source.session is not None:
            ended[source.path] = store.sessions.load(source.session).ended or 0
    return sorted(
        (DatedTranscript(ended.get(path, 0), each) for path, each in by_path.items()), key=lambda each: each.ended
    )


def _summary(found: Sequence[Replay], ratings: dict[str, dict[str, int]]) -> str:
    rows: list[tuple[str, ...]] = []
    for each in found:
        rated = ratings.get(digest(each.prompt.session), {})
        known = [rated[line.hash] for line in each.lines if line.hash in rated]
        rows.append(
            (
                digest(each.prompt.session),
                split_of(each.prompt.session),
                str(each.tokens),
                str(len(each.lines)),
                str(len(known)),
                str(sum(known)),
            )
        )
    heads = ["prompt", "split", "tokens", "lines", "rated lines", "relevant lines"]
    totals = [*_totals(rows), _agreement(found, ratings)]
    return f"{table(heads, rows)}\n\n{table(['', 'train', 'test', 'all'], totals)}"


def _agreement(found: Sequence[Replay], ratings: dict[str, dict[str, int]]) -> tuple[str, ...]:
    """Return the row with the share of rated lines on which the judge of `bearing.py` agrees with the reader."""
    agreed: dict[str, list[bool]] = {"train": [], "test": []}
    for each in found:
        rated = ratings.get(digest(each.prompt.session), {})
        known = [line.bears == bool(rated[line.hash]) for line in each.lines if line.hash in rated]
        agreed[split_of(each.prompt.session)] += known
    parts = [*agreed.values(), [one for part in agreed.values() for one in part]]
    return ("judge of `bench.injection` agrees", *(f"{sum(part) / max(1, len(part)):.2f}" for part in parts))


def _totals(rows: Sequence[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    parts = [[row for row in rows if row[1] == split] for split in ("train", "test")] + [list(rows)]
    yield ("prompts", *(str(len(part)) for part in parts))
    yield (
        "with a relevant line",
        *(_share(sum(row[5] != "0" for row in part), part) for part in parts),
    )
    for name, place in (("mean tokens", 2), ("mean lines", 3)):
        yield (name, *(_mean(sum(int(row[place]) for row in part), part) for part in parts))
    relevant = [(sum(int(row[5]) for row in part), sum(int(row[4]) for row in part)) for part in parts]
    yield ("relevant share of the rated lines", *(f"{some / max(1, every):.2f}" for some, every in relevant))


def _share(some: int, part: Sequence[tuple[str, ...]]) -> str:
    return f"{some / max(1, len(part)):.2f}"


def _mean(total: int, part: Sequence[tuple[str, ...]]) -> str:
    return f"{total / max(1, len(part)):.0f}"


def digest(text: str) -> str:
    """Return a short hash of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


if __name__ == "__main__":
    sys.exit(main())
