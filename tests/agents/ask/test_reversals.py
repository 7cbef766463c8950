"""Facts that are reversed later: the newest statement is the answer, and the older one is named as earlier."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import pytest

from palaver.agents.ask.extractive_answer import extractive_answer
from palaver.archiver.ingest.transcripts import in_paths
from palaver.core.cited_answer import CitedAnswer
from palaver.core.home import Home
from palaver.observe.pipeline import Pipeline
from palaver.search.archive_search import ArchiveSearch

from ...archiver.formats.claude_code.claude_lines import assistant, jsonl, text, user
from .conftest import fixed_renderer

Said: TypeAlias = tuple[str, str, int]
"""Prompt, answer, and day of the month."""
Ask: TypeAlias = Callable[[str, Sequence[Sequence[Said]]], CitedAnswer]

QUESTION = "is the tide gauge connected to the harbour network"
NO = ("Is the tide gauge connected to the harbour network", "Checked: the tide gauge is not on the harbour network.", 3)
YES = ("Connect it then", "Done: the tide gauge is online in the harbour network as gauge-7.", 9)
OTHER = ("Which colour has the mooring buoy", "The mooring buoy is red, and the ferry passes it on the left.", 5)
REVERSED: tuple[tuple[str, Said, Said], ...] = (
    (QUESTION, NO, YES),
    (
        "which port does the bell server use",
        ("Which port does the bell server use", "The bell server listens on port 7070.", 2),
        ("Move the bell server", "The bell server now listens on port 7171.", 8),
    ),
    (
        "does the ferry import handle sundays",
        ("Does the ferry import handle sundays", "The ferry import handles sundays like every other day.", 2),
        ("Check the ferry import again", "The ferry import does not handle sundays: it skips the seventh column.", 8),
    ),
    (
        "do we have a backup of the chart archive",
        ("Do we have a backup of the chart archive", "There is no backup of the chart archive yet.", 2),
        ("Make one", "The backup of the chart archive runs every night on the second disk.", 8),
    ),
)


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    def asked(question: str, sessions: Sequence[Sequence[Said]]) -> CitedAnswer:
        folder = tmp_path / f"projects{len(list(tmp_path.iterdir()))}" / "-home-demo-quay"
        folder.mkdir(parents=True)
        home = Home(folder / "palaver")
        for number, said in enumerate(sessions, 1):
            name = f"6c2d3bd4-93aa-4cf4-a8de-{number:012d}"
            lines = [
                {**line, "sessionId": name, "cwd": "/home/demo/quay", "timestamp": f"2026-04-{day:02d}T10:00:00.000Z"}
                for at, (prompt, answer, day) in enumerate(said)
                for line in (user(prompt), assistant(text(answer), id=f"m{at}"))
            ]
            rows = [{**line, "uuid": f"{number}-{at}"} for at, line in enumerate(lines)]
            (folder / f"{name}.jsonl").write_bytes(jsonl(rows))
        with Pipeline(home) as pipeline:
            pipeline.run(in_paths([folder]))
        with ArchiveSearch(home) as archive:
            return extractive_answer(archive, fixed_renderer(), question)

    return asked


def test_the_newest_statement_is_the_answer(ask: Ask) -> None:
    """In one session or in two, the later statement comes first, and the earlier one follows with its date."""
    problems = list[str]()
    for question, older, newer in REVERSED:
        for sessions in ([[older, OTHER, newer]], [[newer], [OTHER], [older]]):
            answer = ask(question, sessions)
            texts = [finding.text for finding in answer.findings]
            is_right = len(texts) > 1 and newer[1].rstrip(".") in texts[0] and answer.findings[1].superseded_by
            if not (is_right and older[1].rstrip(".") in texts[1]):
                problems.append(f"{question} ({len(sessions)}): {texts}")

    assert not problems, "\n".join(problems)


def test_the_earlier_statement_is_named_with_both_dates(ask: Ask) -> None:
    """The page begins with the newest statement, and lists the older one under `Earlier`."""
    page = fixed_renderer().cited_answer(ask(QUESTION, [[NO, YES]]))

    assert page.index("**Best answer** (2026-04-09)") < page.index("## Earlier\n- 2026-04-03 ")
    assert "Superseded by ex-2." in page


def test_a_later_statement_about_something_else_reverses_nothing(ask: Ask) -> None:
    """A later negation about another subject, or a later report with the same result, leaves the answer as it is."""
    for later in (
        ("And the lamp", "The lamp of the pier is not painted, because the paint is late.", 9),
        ("Is it still so", "The tide gauge is still not on the harbour network.", 9),
    ):
        answer = ask(QUESTION, [[NO, later]])

        assert not any(finding.superseded_by for finding in answer.findings), later
