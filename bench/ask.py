"""Measure `palaver ask` without a language model on real sessions: `python -m bench.ask`."""

import argparse
import hashlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from statistics import mean

from msgspec import Struct
from msgspec.structs import replace

from palaver.agents.ask.citation_check import CitationChecker
from palaver.agents.ask.extractive_answer import extractive_answer
from palaver.agents.conversation_tools import ConversationContext, get_observations, read, search
from palaver.core.home import Home
from palaver.core.query import Query
from palaver.core.results import AnswerLabel, CitedAnswer, Hit
from palaver.core.tokens import count
from palaver.search.archive_search import ArchiveSearch
from palaver.templates.render import Renderer

from .retrieval.corpus import Question
from .retrieval.ours import Ours
from .retrieval.sets import coding_sessions
from .shared import SetMissing, parents_of_subagents
from .table import table, write_section

_KINDS = ("intent", "friction", "open_item", "repo", "workflow", "code", "paraphrase", "keyword", "question")
_SPLITS = ("train", "test")
_SAMPLE, _OPENED = 40, 5


class Asked(Struct, frozen=True):
    """Question of the development set, and the answer of `palaver ask`."""

    question: Question
    answer: CitedAnswer

    @property
    def found(self) -> bool:
        """True if the answer cites the correct session."""
        return not self.question.gains.keys().isdisjoint(source.session_id for source in self.answer.sources)

    @property
    def first(self) -> bool:
        """True if the first finding cites the correct session."""
        return bool(self.answer.findings) and self.answer.findings[0].sources[0].session_id in self.question.gains

    @property
    def claims_best(self) -> bool:
        """True if the first finding is called the best answer."""
        return bool(self.answer.findings) and self.answer.label is AnswerLabel.BEST


class Costs(Struct, frozen=True):
    """Cost and correctness of the answer of one client to one question.

    Attributes:
        tokens: Tokens in the context of the client.
        correct: Flag per citation: True if it exists and belongs to the correct session.
    """

    tokens: int
    correct: tuple[bool, ...]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print. With `--write`, update RESULTS.md."""
    parser = argparse.ArgumentParser(prog="python -m bench.ask", description=__doc__)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the archive in FOLDER, or reuse it")
    parser.add_argument("--write", action="store_true", help="write the tables to bench/RESULTS.md")
    chosen = parser.parse_args(arguments)
    try:
        corpus = coding_sessions()
    except SetMissing as missing:
        print(missing, file=sys.stderr)
        return 1
    ours = Ours(corpus, chosen.keep)  # Deleting this object removes the home.
    with ArchiveSearch(ours.home) as archive:
        asked = ask_all(archive, with_subagents(corpus.questions, ours.home))
        text = "\n\n".join([_by_kind(asked), _worth(archive, asked)])
    print(text)
    if chosen.write:
        write_section("Ask", f"`python -m bench.ask --write`\n\n{text}")
    return 0


def with_subagents(questions: Iterable[Question], home: Home) -> Iterator[Question]:
    """Yield each question with the sub-agents of its correct sessions as further correct sessions."""
    parents = parents_of_subagents(home)
    for question in questions:
        also = {name: question.gains[parent] for name, parent in parents.items() if parent in question.gains}
        yield replace(question, gains={**question.gains, **also})


def ask_all(archive: ArchiveSearch, questions: Iterable[Question]) -> list[Asked]:
    """Answer the questions without a language model."""
    return [Asked(each, extractive_answer(archive, Renderer(), each.text)) for each in questions]


def _by_kind(asked: Sequence[Asked]) -> str:
    header = [
        "questions",
        "n",
        "answered",
        "cites session",
        "first cites session",
        "best answers",
        "right",
        "wrong",
        "findings",
        "tokens",
        "maximum",
    ]
    kinds = {kind: [each for each in asked if kind in each.question.kinds] for kind in (*_KINDS, "negative")}
    answerable = [each for each in asked if each.question.gains]
    kinds["all with an answer"] = answerable
    kinds |= {f"{split} split": [each for each in answerable if each.question.split == split] for split in _SPLITS}
    return table(header, [_row(kind, some) for kind, some in kinds.items()])


def _row(kind: str, asked: Sequence[Asked]) -> list[str]:
    tokens = [each.answer.receipt.tokens for each in asked]
    best = [each for each in asked if each.claims_best]
    answered = [bool(each.answer.findings) for each in asked]
    rates = ["-", "-"]
    if any(each.question.gains for each in asked):
        rates = [_percent([each.found for each in asked]), _percent([each.first for each in asked])]
    return [
        kind,
        str(len(asked)),
        _percent(answered),
        *rates,
        str(len(best)),
        str(sum(each.first for each in best)),
        str(sum(not each.first for each in best)),
        f"{mean(len(each.answer.findings) for each in asked):.1f}",
        f"{mean(tokens):,.0f}",
        f"{max(tokens):,}",
    ]


def _worth(archive: ArchiveSearch, asked: Sequence[Asked]) -> str:
    """Return a table that compares `palaver ask` with scripted clients of the tools.

    The questions are a fixed sample of the test split.
    """
    answerable = [each for each in asked if each.question.gains and each.question.split == "test"]
    sample = sorted(answerable, key=lambda each: hashlib.sha256(f"ask {each.question.id}".encode()).digest())[:_SAMPLE]
    tools = ConversationContext(archive, Renderer())
    clients: dict[str, Callable[[Asked], Costs]] = {
        "reads the whole conversations": lambda each: _naive(archive, tools, each, whole=True),
        "reads the evidence lines": lambda each: _naive(archive, tools, each, whole=False),
        "`palaver ask`": lambda each: Costs(each.answer.receipt.tokens, tuple(_correct(archive, each))),
    }
    rows: list[list[str]] = []
    costs = {name: [client(each) for each in sample] for name, client in clients.items()}
    ours = mean(each.tokens for each in costs["`palaver ask`"])
    for name, of_client in costs.items():
        tokens, cited = mean(each.tokens for each in of_client), [flag for each in of_client for flag in each.correct]
        found = _percent([any(each.correct) for each in of_client])
        rows.append([name, found, str(len(cited)), _percent(cited), f"{tokens:,.0f}", f"{100 * ours / tokens:.1f} %"])
    header = ["client", "finds session", "citations", "of the correct session", "tokens", "tokens of `palaver ask`"]
    return f"{len(sample)} questions of the test split.\n\n{table(header, rows)}"


def _naive(archive: ArchiveSearch, tools: ConversationContext, asked: Asked, *, whole: bool) -> Costs:
    """Simulate a client that searches and opens the first five hits.

    The client then reads the lines of their evidence or, with `whole`, their conversations.
    """
    question = asked.question.text
    tokens = count(search(tools, question).text)
    hits: tuple[Hit, ...] = archive.find(Query.parse(question), snippets=False).hits[:_OPENED]
    if not hits:
        return Costs(tokens, ())
    tokens += count(get_observations(tools, [hit.id for hit in hits]).text)
    places = dict.fromkeys(hit.path if whole else hit.id for hit in hits)
    tokens += sum(count(read(tools, place).text) for place in places)
    return Costs(tokens, tuple(hit.session_id in asked.question.gains for hit in hits))


def _correct(archive: ArchiveSearch, asked: Asked) -> Iterator[bool]:
    """Yield for each printed citation whether it exists and belongs to the correct session."""
    for source in CitationChecker(archive).check(Renderer().cited_answer(asked.answer)).sources:
        yield source.exists and source.session_id in asked.question.gains


def _percent(found: Sequence[bool]) -> str:
    return f"{100 * sum(found) / len(found):.0f} %"


if __name__ == "__main__":
    sys.exit(main())
