"""Results of the runs over one corpus as Markdown."""

from collections.abc import Sequence
from statistics import fmean

from ..table import table
from .corpus import Corpus
from .metrics import interval, separation, silenced
from .run import Run

HALVES = ("all", "tune", "held")
_NEGATIVE, _ASKED_LIKE_NEGATIVES = "negative", "questions"
_PRICE = 0.01


def report(corpus: Corpus, runs: Sequence[Run]) -> str:
    """Return all tables of one corpus, comparing the last run with the first."""
    kinds = list(dict.fromkeys(kind for question in corpus.questions if question.gains for kind in question.kinds))
    kinds.sort(key=lambda kind: (kind == "all", kind in {"queries", "questions"}))
    asked = sum(bool(question.gains) for question in corpus.questions)
    parts = [f"### {corpus.name}", f"{corpus.about}. {len(corpus.passages):,} passages, {asked:,} questions."]
    parts += [f"Cells: {' / '.join(corpus.metrics)}.", _quality(corpus, runs, kinds)]
    if len(runs) > 1:
        parts += [f"`{runs[-1].engine}` minus `{runs[0].engine}`, 95 % interval:", _difference(corpus, runs, kinds)]
    if any(_NEGATIVE in question.kinds for question in corpus.questions):
        parts.append(_refusal(corpus, runs))
    return "\n\n".join(parts)


def times(reports: Sequence[tuple[Corpus, Sequence[Run]]]) -> str:
    """Return seconds to build and milliseconds per query of every corpus and engine."""
    engines = [run.engine for run in reports[0][1]]
    rows = [[corpus.name, *map(_time, runs)] for corpus, runs in reports]
    return table(["build, then median query", *engines], rows)


def _time(run: Run) -> str:
    return f"{run.build:.1f} s, {run.query * 1000:.1f} ms"


def _quality(corpus: Corpus, runs: Sequence[Run], kinds: Sequence[str]) -> str:
    rows: list[list[str]] = []
    for half in HALVES:
        for kind in kinds:
            values = [[run.values(metric, kind, half) for metric in corpus.metrics] for run in runs]
            cells = [" / ".join(f"{fmean(each):.3f}" if each else "-" for each in metrics) for metrics in values]
            rows.append([kind, half, str(len(values[0][0])), *cells])
    return table(["questions", "half", "n", *(run.engine for run in runs)], rows)


def _difference(corpus: Corpus, runs: Sequence[Run], kinds: Sequence[str]) -> str:
    rows: list[list[str]] = []
    for kind in kinds:
        cells: list[str] = []
        for metric in corpus.metrics:
            pairs = zip(runs[-1].values(metric, kind, "all"), runs[0].values(metric, kind, "all"), strict=True)
            differences = [mine - theirs for mine, theirs in pairs]
            low, high = interval(differences)
            cells.append(f"{fmean(differences):+.3f} [{low:+.3f}, {high:+.3f}]")
        rows.append([kind, *cells])
    return table(["questions", *corpus.metrics], rows)


def _refusal(corpus: Corpus, runs: Sequence[Run]) -> str:
    """Return how well the first score separates questions with and without an answer."""
    metric = "hit@5"
    told: list[list[str]] = []
    refused: list[list[str]] = []
    for run in runs:
        tops, negatives = run.tops(_ASKED_LIKE_NEGATIVES), run.tops(_NEGATIVE)
        worth = list(zip(tops, run.values(metric, _ASKED_LIKE_NEGATIVES, "all"), strict=True))
        cells = (separation(tops, negatives), silenced(worth, negatives, _PRICE))
        told.append([run.engine, *(f"{cell:.3f}" for cell in cells)])
        for half in HALVES:
            shares = (_refused(run, kind, half) for kind in (_NEGATIVE, _ASKED_LIKE_NEGATIVES, "all"))
            refused.append([run.engine, half, *(f"{share:.3f}" for share in shares)])
    count = sum(_NEGATIVE in question.kinds for question in corpus.questions)
    could = table(["engine", "separation (AUC)", f"could be refused for 1 point of {metric}"], told)
    did = table(["answered with nothing", "half", "negatives", "questions", "all that have an answer"], refused)
    return f"{count} negatives, whose right answer is nothing:\n\n{could}\n\n{did}"


def _refused(run: Run, kind: str, half: str) -> float:
    """Return the share of questions of a kind without any result."""
    return fmean(top == float("-inf") for top in run.tops(kind, half))
