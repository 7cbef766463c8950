"""Results of the runs over one corpus as Markdown."""

from collections.abc import Sequence
from statistics import fmean

from ..table import table
from .corpus import Corpus
from .metrics import interval, rejectable, separation
from .run import Run

SPLITS = ("all", "train", "test")
_NEGATIVE, _ASKED_LIKE_NEGATIVES = "negative", "questions"
_COST = 0.01


def report(corpus: Corpus, runs: Sequence[Run]) -> str:
    """Return all tables of one corpus, with a comparison of the last run and the first run."""
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
    """Return a table of the build time and the median query time by corpus and engine."""
    engines = [run.engine for run in reports[0][1]]
    rows = [[corpus.name, *map(_time, runs)] for corpus, runs in reports]
    return table(["build time, median query time", *engines], rows)


def _time(run: Run) -> str:
    return f"{run.build:.1f} s, {run.query * 1000:.1f} ms"


def _quality(corpus: Corpus, runs: Sequence[Run], kinds: Sequence[str]) -> str:
    rows: list[list[str]] = []
    for split in SPLITS:
        for kind in kinds:
            values = [[run.values(metric, kind, split) for metric in corpus.metrics] for run in runs]
            cells = [" / ".join(f"{fmean(each):.3f}" if each else "-" for each in metrics) for metrics in values]
            rows.append([kind, split, str(len(values[0][0])), *cells])
    return table(["questions", "split", "n", *(run.engine for run in runs)], rows)


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
    """Return tables that show how well the best score separates questions with and without an answer."""
    metric = "hit@5"
    separations: list[list[str]] = []
    refused: list[list[str]] = []
    for run in runs:
        tops, negatives = run.tops(_ASKED_LIKE_NEGATIVES), run.tops(_NEGATIVE)
        values = list(zip(tops, run.values(metric, _ASKED_LIKE_NEGATIVES, "all"), strict=True))
        cells = (separation(tops, negatives), rejectable(values, negatives, _COST))
        separations.append([run.engine, *(f"{cell:.3f}" for cell in cells)])
        for split in SPLITS:
            shares = (_refused(run, kind, split) for kind in (_NEGATIVE, _ASKED_LIKE_NEGATIVES, "all"))
            refused.append([run.engine, split, *(f"{share:.3f}" for share in shares)])
    count = sum(_NEGATIVE in question.kinds for question in corpus.questions)
    could = table(["engine", "separation (AUC)", f"rejectable for 1 point of {metric}"], separations)
    did = table(["share without results", "split", "negatives", "questions", "all with an answer"], refused)
    return f"{count} negatives (questions without an answer):\n\n{could}\n\n{did}"


def _refused(run: Run, kind: str, split: str) -> float:
    """Return the share of questions of a kind without any result."""
    return fmean(top == float("-inf") for top in run.tops(kind, split))
