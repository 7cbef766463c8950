"""Tests of titles of exchanges without observations."""

from pathlib import Path

import pytest

from palaver.core.conversation import Exchange, Kind, Span, Speaker, Turn
from palaver.core.query import Grouping, Query
from palaver.core.results import BUDGET, Hit
from palaver.core.tokens import count
from palaver.search.archive_search import ArchiveSearch
from palaver.search.present.details import Details, exchange_observation
from palaver.templates.render import Renderer

from ... import demo
from ..history import History, Said, learned


@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        ("Why does the kettle leak?", "Why does the kettle leak?"),
        (
            "Implement the following plan:\n\n# Plan: Mend the kettle\n\n## Context\n\nIt leaks.",
            "Plan: Mend the kettle",
        ),
        ("Implement the following plan: mend it", "Implement the following plan: mend it"),
        ("# Kettles\n\nThey leak.", "# Kettles They leak."),
        ("word " * 40, "word " * 15 + "word…"),
    ],
)
def test_the_title_of_an_exchange_is_its_prompt(prompt: str, title: str) -> None:
    """A prompt with a plan has the heading of the plan as its title, because all plans have the same introduction."""
    turns = (Turn(1, Speaker.HUMAN, Kind.PROMPT, prompt),)

    assert exchange_observation(Exchange(0, Span(1, 1, 0, 0), turns, None, None)).title == title


@pytest.mark.parametrize(
    ("inserted", "quote"),
    [
        ((Kind.INJECTED, "Caveat: generated"), "Why does it leak?"),
        ((Kind.PROMPT, "So I asked, and " + "asked " * 30), "So I asked, and " + " ".join(["asked"] * 17)),
        ((Kind.PROMPT, "x" * 200), "x" * 120),
        ((Kind.PROMPT, " " * 130 + "So I asked"), "So I asked"),
    ],
)
def test_a_title_is_the_beginning_of_the_prompt(inserted: tuple[Kind, str], quote: str) -> None:
    """The title omits text that the agent's program inserted. A long prompt is truncated between words."""
    turns = (Turn(1, Speaker.HOST, *inserted), Turn(2, Speaker.HUMAN, Kind.PROMPT, "Why does it leak?"))
    shown = exchange_observation(Exchange(0, Span(1, 2, 0, 0), turns, None, None))

    assert [proof.quote for proof in shown.evidence] == [quote]
    assert shown.new_quotes == () or " " not in quote


def test_the_cost_of_reading_covers_all_evidence(tmp_path: Path) -> None:
    """The cost counts all exchanges on the lines of the evidence, also those before the summary's own exchange."""
    history = History(tmp_path)
    first, last = history.say(
        "one", Said("Why does the kettle leak?", "It has a hole."), Said("Thanks", "word " * 40_000)
    )
    [summary] = history.learn(last, learned("Session: The kettle", lines=(1, 3)))
    [whole] = history.learn(first, learned("Session: All of it", lines=(1, 6)))

    costs = [detail.tokens for detail in Details(history.store).load([summary, whole])]
    assert costs == [count("Why does the kettle leak?") + count("It has a hole."), BUDGET]


def test_each_hit_shows_what_its_details_cost(tmp_path: Path) -> None:
    """In the sample archive, the price of each hit is within 20 % of its details, and no evidence costs nothing."""
    renderer = Renderer()
    kinds = set[str]()
    with ArchiveSearch(demo.archived(tmp_path)) as layers:
        hits = [hit for by in Grouping for kind in ("observation", "exchange") for hit in _every(layers, kind, by)]
        for hit in hits:
            [detail] = layers.details([hit.id])
            [exact] = renderer.with_read_costs([detail], layers.read)
            assert hit.tokens == pytest.approx(count(renderer.observations([exact])), rel=0.2)
            assert 0 < detail.tokens <= exact.tokens
            kinds.add(detail.kind)

    assert kinds == {"observation", "exchange", "session"}


def _every(layers: ArchiveSearch, kind: str, by: Grouping) -> list[Hit]:
    return list(layers.find(Query.newest(kinds=[kind], limit=50, by=by)).hits)
