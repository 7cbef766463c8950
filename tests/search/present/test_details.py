"""Tests of titles of exchanges without observations."""

from pathlib import Path
from shutil import rmtree
from statistics import median

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
        ("[image/png, 7 KB]\nCould it be the kettle?", "Could it be the kettle?"),
        ("[image/png, 7 KB]", "[image/png, 7 KB]"),
        ("word " * 40, "word " * 17 + "word…"),
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
    """The cost includes all exchanges on the lines of the evidence, also those before the summary's own exchange."""
    history = History(tmp_path)
    first, last = history.say(
        "one", Said("Why does the kettle leak?", "It has a hole."), Said("Thanks", "word " * 40_000)
    )
    [summary] = history.learn(last, learned("Session: The kettle", lines=(1, 3)))
    whole, answer = history.learn(
        first, learned("Session: All of it", lines=(1, 6)), learned("Session: The answer", lines=(3, 3))
    )

    costs = [detail.tokens for detail in Details(history.store).load([summary, whole, answer])]
    assert costs[0] - costs[2] == pytest.approx(count("Why does the kettle leak?"), abs=10)
    assert costs[1] < BUDGET


def test_each_layer_states_the_cost_of_the_next(tmp_path: Path) -> None:
    """In the sample archive, the price of each hit is within 20 %, and so is the usual cost of reading its evidence."""
    renderer = Renderer()
    kinds, ratios = set[str](), list[float]()
    with ArchiveSearch(demo.archived(tmp_path)) as layers:
        hits = [hit for by in Grouping for kind in ("observation", "exchange") for hit in _every(layers, kind, by)]
        for hit in hits:
            [detail] = layers.details([hit.id])
            assert hit.tokens == pytest.approx(count(renderer.observations([detail])), rel=0.2)
            if detail.kind != "session":  # `read` returns a whole session in several parts
                page = renderer.read(layers.read(detail.path, detail.start_line, detail.end_line))
                ratios.append(detail.tokens / count(page))
            kinds.add(detail.kind)

    assert kinds == {"observation", "exchange", "session"}
    # Stored turns contain only the names of edited files, so pages that show an edit can be longer.
    assert median(ratios) == pytest.approx(1, abs=0.1)
    assert 0.5 < min(ratios) < max(ratios) < 1.2


def test_details_are_shown_without_reading_transcripts(tmp_path: Path) -> None:
    """The cost of reading is stored with each exchange, so details cost little CPU time and need no transcript."""
    home = demo.archived(tmp_path)
    with ArchiveSearch(home) as layers:
        ids = [hit.id for hit in _every(layers, "observation", Grouping.EVENT)]
        before = layers.details(ids[:20])
        rmtree(home.archive)

        assert not layers.store.exchanges.without_costs(1)
        assert layers.details(ids[:20]) == before
        assert all(detail.tokens for detail in before)


def _every(layers: ArchiveSearch, kind: str, by: Grouping) -> list[Hit]:
    return list(layers.find(Query.newest(kinds=[kind], limit=50, by=by)).hits)
