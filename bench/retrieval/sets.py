"""Loaders of the development sets. Each loader raises `SetMissing` if its files are not available."""

import re
import tarfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import orjson

from .. import shared
from .corpus import DEPTH, Corpus, Metric, Passage, Question
from .docstrings import described_functions
from .metrics import hit_at, ndcg_at, recall_at, reciprocal_rank
from .windows import windows

_HITS: Mapping[str, Metric] = {"hit@1": hit_at(1), "hit@5": hit_at(5), "hit@10": hit_at(10)}
_RECALLS: Mapping[str, Metric] = {"recall@5": recall_at(5), "recall@10": recall_at(10), "hit@5": hit_at(5)}
_RANKS: Mapping[str, Metric] = {
    "MRR": reciprocal_rank(DEPTH),
    "MRR@10": reciprocal_rank(10),
    "recall@5": recall_at(5),
    "recall@10": recall_at(10),
}
_GAINS: Mapping[str, Metric] = {"nDCG@10": ndcg_at(10), "recall@10": recall_at(10)}

_REWORDINGS = Path(__file__).with_name("rewordings.json")
"""Path of the JSON file with three other wordings of each paraphrase and each negative, by the ID of the question."""


def coding_sessions() -> Corpus:
    """Load 98 real sessions of a coding agent. The correct result of a question is one session."""
    archive = shared.transcripts()
    passages: list[Passage] = []
    with tarfile.open(archive) as tar:
        for member in sorted(tar, key=lambda member: member.name):
            file = tar.extractfile(member)
            if file is not None and member.name.endswith(".jsonl"):
                session = PurePosixPath(member.name).stem
                passages += (Passage(session, text, "") for text in windows(file))
    asked = [*_asked("queries"), *_asked("questions")]
    about = "98 sessions in windows of up to 1,500 characters; an item is a session"
    return Corpus("coding-sessions", about, tuple(passages), tuple(asked), _HITS, archive)


def _asked(file: str) -> Iterator[Question]:
    rewordings: Mapping[str, list[str]] = _json(_REWORDINGS)
    for line in shared.find("coding-sessions", f"{file}.jsonl").read_bytes().splitlines():
        row = orjson.loads(line)
        negative = row["session"] is None
        kinds = ("negative",) if negative else (row["kind"], file, "all")
        gains = {} if negative else {row["session"]: 1.0}
        yield Question(row["id"], row["query"], kinds, gains, rewordings=tuple(rewordings.get(row["id"], ())))


_LOCOMO_KINDS = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}


def locomo() -> Corpus:
    """Load five long dialogues. The correct results of a question are the turns of its dialogue with the evidence.

    Category 5 (no answer in the dialogue) and questions whose evidence turns do not exist are excluded.
    """
    dialogues = _json(shared.find("locomo", "locomo-dev5.json"))
    passages = [passage for dialogue in dialogues for passage in _turns(dialogue)]
    known = {passage.item for passage in passages}
    questions = [question for dialogue in dialogues for question in _recalled(dialogue, known)]
    about = "five dialogues; an item is a turn (speaker, words, caption of a shared picture)"
    return Corpus("locomo", about, tuple(passages), tuple(questions), _RECALLS)


def _turns(dialogue: Mapping[str, Any]) -> Iterator[Passage]:
    name, conversation = dialogue["sample_id"], dialogue["conversation"]
    for session in (key for key in conversation if re.fullmatch(r"session_\d+", key)):
        for turn in conversation[session]:
            caption = f" [shares {turn['blip_caption']}]" if "blip_caption" in turn else ""
            yield Passage(f"{name}/{turn['dia_id']}", f"{turn['speaker']}: {turn['text']}{caption}", name)


def _recalled(dialogue: Mapping[str, Any], known: set[str]) -> Iterator[Question]:
    name = dialogue["sample_id"]
    for number, row in enumerate(dialogue["qa"]):
        turns = re.findall(r"D\d+:\d+", " ".join(row["evidence"]))
        gains = {f"{name}/{turn}": 1.0 for turn in turns if f"{name}/{turn}" in known}
        if row["category"] in _LOCOMO_KINDS and gains:
            yield Question(f"{name}/{number}", row["question"], (_LOCOMO_KINDS[row["category"]], "all"), gains, name)


def cosqa() -> Corpus:
    """Load web queries and 6,267 Python functions. The correct result of a query is one function."""
    functions: Mapping[str, int] = _json(shared.find("cosqa", "code_idx_map.txt"))
    passages = tuple(Passage(str(number), code, "") for code, number in functions.items())
    questions = tuple(
        Question(row["idx"], row["doc"], ("all",), {str(row["retrieval_idx"]): 1.0})
        for row in _json(shared.find("cosqa", "cosqa-retrieval-dev-500.json"))
    )
    return Corpus("cosqa", "6,267 functions; an item is a function", passages, questions, _RANKS, suffix=".py")


def docstrings() -> Corpus:
    """Load 1,200 functions of installed packages. The query is a docstring, which the function lacks."""
    functions = described_functions()
    passages = tuple(Passage(each.name, each.code, "") for each in functions)
    questions = tuple(Question(each.name, each.summary, ("all",), {each.name: 1.0}) for each in functions)
    return Corpus("docstrings", "1,200 functions; an item is a function", passages, questions, _RANKS, suffix=".py")


_ABSTRACTS = 1400


def cranfield() -> Corpus:
    """Load 1,400 abstracts on aerodynamics with graded relevance. The codes 1 (best) to 4 become the gains 4 to 1."""
    passages = tuple(
        Passage(number, " ".join(re.sub(r"(?m)^\.[TABW]$", " ", body).split()), "")
        for number, body in _numbered(shared.find("cranfield", "cran.all.1400"))
        if int(number) <= _ABSTRACTS  # A line of the last abstract looks like the start of another entry.
    )
    gains: defaultdict[int, dict[str, float]] = defaultdict(dict)
    for line in shared.find("cranfield", "cranqrel").read_text().splitlines():
        query, document, code = map(int, line.split())
        if 1 <= code <= 4:
            gains[query][str(document)] = 5.0 - code
    asked = _numbered(shared.find("cranfield", "cran.qry"))
    questions = tuple(
        Question(f"cranfield/{place}", " ".join(body.replace(".W", " ", 1).split()), ("all",), gains[place])
        for place, (_, body) in enumerate(asked, 1)
        if gains[place]
    )
    return Corpus("cranfield", "1,400 abstracts; an item is an abstract", passages, questions, _GAINS, suffix=".txt")


def _numbered(path: Path) -> list[tuple[str, str]]:
    """Return (number, body) pairs of a file whose entries start with `.I <number>`."""
    parts = re.split(r"(?m)^\.I (\d+)\s*$", path.read_text(encoding="utf-8", errors="replace"))
    return [(str(int(number)), body) for number, body in zip(parts[1::2], parts[2::2], strict=True)]


def _json(path: Path) -> Any:
    return orjson.loads(path.read_bytes())


SETS: Mapping[str, Callable[[], Corpus]] = {
    "coding-sessions": coding_sessions,
    "locomo": locomo,
    "cosqa": cosqa,
    "docstrings": docstrings,
    "cranfield": cranfield,
}
