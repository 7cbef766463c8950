"""Layers as markdown: one packaged template per rendered thing, each replaceable by the user's own."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ..core.amount import many
from ..core.conversation import SessionKind
from ..core.errors import PalaverError
from ..core.query import Filters, Grouping, Mode
from ..core.results import BUDGET, Detail, Hit, Results, Timeline, TranscriptExcerpt, ZeroResultExplanation
from ..core.tokens import count, tally, together
from .budget import (
    CutLine,
    cut_line,
    fitting_details,
    fitting_hits,
    fitting_timeline,
    fitting_transcript,
    rows_that_fit,
)
from .called import sought, was_said
from .elsewhere import also_in
from .filling import Filling
from .memory_changes import changes
from .page import TOKENS, Page, filled, slots
from .portion import portion
from .room import FURTHER, PROJECT, common_year, title_room

if TYPE_CHECKING:
    from ..core.checkup import Checkup, Diagnosis, Rebuilt
    from ..core.deletion import DeletionPreview, DeletionResult, PastDeletion
    from ..core.document import DocumentStats, IndexedDirectory
    from ..core.memory import Edge, MemoryEvent, StoredMemory
    from ..core.report import Exported, Report, Secrets, Status
    from ..core.spending import DeadLetter, Estimate, Extraction, Stats

    Scored = tuple[StoredMemory, float]

_NAME = 40
"""Tokens of a session's id or a project's name where it stands outside the envelope: a UUID has about 25."""
_RESPELLED, _RESPELLING = 3, 12
"""Words that were respelled, phrases that are words now and periods that are named with a page of hits, and the tokens
that each may have: the hits are what was asked for.
"""
_WHOLE = 100
"""Tokens that hardly a name or title has."""
_MARKER = re.compile(r"^<(recalled-\w+)>$", re.MULTILINE)
"""The line before recalled text. Nothing that was stored comes before the first one of a page."""
_LISTED = 20
"""Lines of a list of what would be forgotten; its totals are exact."""


def _new_nonce() -> str:
    """Return eight random digits. Digits cost the same number of tokens, whichever they are."""
    return f"{secrets.randbelow(10**8):08d}"


class Renderer:
    """Turns the layers' values into what an agent or a person reads.

    `user_folder` is where the user's own templates are; a broken one raises `TemplateInvalid`. With `at_shell` a reply
    names the next layer by its command instead of its tool; with `roomy` titles are whole and what was found stands in
    bold. No reply has more tokens than the `budget`, but for `memory_context`, which is chosen within one, and prompts.
    """

    def __init__(
        self,
        user_folder: Path | None = None,
        *,
        at_shell: bool = False,
        roomy: bool = False,
        budget: int = BUDGET,
        new_nonce: Callable[[], str] = _new_nonce,
    ) -> None:
        """`new_nonce` makes the random part of the marker around recalled text, once for each page."""
        self._at_shell, self._roomy, self._budget, self._new_nonce = at_shell, roomy, budget, new_nonce
        self._filling = Filling(user_folder)

    def search(self, results: Results, *, facts: bool = False, snippets: bool = False, explain: bool = False) -> str:
        """Layer 1: one line per hit; with `facts` a block per hit; several concepts are shown as conversations. With
        `snippets` each hit shows where it was found, with `explain` what its score is made of.
        """
        several = len(results.query.concepts) > 1
        if not results.hits:
            return self._nothing(results, "conversations" if several else sought(results.query.filters.kinds))
        name = "search_conversations" if several else "search_facts" if facts else "search"

        @cache  # most fit as they are, and are shown as they were counted
        def shown(some: tuple[Hit, ...]) -> Page:
            return self._hits(name, results, some, facts=facts, snippets=snippets, explain=explain)

        return self._within(shown(fitting_hits(results.hits, lambda some: shown(some).tokens, self._budget)))

    def _hits(
        self, name: str, results: Results, hits: Sequence[Hit], *, facts: bool, snippets: bool, explain: bool
    ) -> Page:
        cut, year = len(hits) < len(results.hits), common_year(hits) if name == "search" and not self._roomy else ""
        further = (hits[-1].cursor if hits else "") if cut else results.cursor
        return self._page(
            name,
            hits=hits,
            missing=_missing(results),
            respelled=results.corrections[:_RESPELLED],
            respelled_more=len(results.corrections[_RESPELLED:]),
            reworded=results.inexact[:_RESPELLED],
            reworded_more=len(results.inexact[_RESPELLED:]),
            loosened=results.relaxed[:_RESPELLED],
            loosened_more=len(results.relaxed[_RESPELLED:]),
            occasions=results.times[:_RESPELLED],
            vacant=results.empty_times[:_RESPELLED],
            newest=results.newest,
            name_room=_RESPELLING,
            scored=bool(results.query.concepts),
            by_session=many(len(hits), "session") if results.query.by is Grouping.SESSION else "",
            several_projects=len({hit.project for hit in hits}) > 1,
            year=year,
            title_room=_WHOLE
            if self._roomy
            else title_room(hits, FURTHER if further and self._at_shell else 0, year=year),
            project_room=_WHOLE if self._roomy else PROJECT,
            roomy=self._roomy,
            facts=facts,
            snippets=snippets,
            explain=explain,
            cut=len(results.hits) if cut else 0,
            further=further,
            beyond=results.ranking_limit and not cut,
            **_price(hits),
        )

    def _nothing(self, results: Results, noun: str) -> str:
        why = results.explanation or ZeroResultExplanation()
        return self._render(
            "search_none",
            noun=noun,
            filters=_removable(results.query.filters),
            dates=[name for name in ("after", "before") if getattr(results.query.filters, name) is not None],
            missing=_missing(results),
            why=why,
            vacant=results.empty_times[:_RESPELLED],
            newest=results.newest,
            worded=bool(results.query.concepts),
            lag=results.index_lag,
            title_room=_WHOLE if self._roomy else title_room(why.weak),
            name_room=_NAME,
        )

    def timeline(self, timeline: Timeline) -> str:
        """What stands before and after a hit, one line each, with the hit marked."""
        room = _WHOLE if self._roomy else title_room(timeline.hits)

        @cache  # most fit as they are, and are shown as they were counted
        def shown(part: Timeline) -> Page:
            return self._page("timeline", timeline=part, title_room=room, **_price(part.hits))

        return self._within(shown(fitting_timeline(timeline, lambda part: shown(part).tokens, self._budget)))

    def observations(self, details: Sequence[Detail]) -> str:
        """Layer 2: every observation, each cut to its `portion`, with the lines that prove it; others are named."""
        ids = tuple(detail.id for detail in details)

        @cache  # rendered and counted once, alone and among others
        def part(one: Detail) -> Page:
            return filled(self._filling.fill("observation.md.j2", {"detail": one, "at_shell": self._at_shell}))

        def shown(some: tuple[Detail, ...], rest: tuple[str, ...] = ()) -> Page:
            parts = tuple(map(part, some))
            return self._page("observations", parts, details=some, rest=rest, **_price([*filter(was_said, some)]))

        def first(some: tuple[Detail, ...]) -> Page:
            return shown(some, ids[len(some) :]) if len(some) < len(ids) else shown(some)

        every = tuple(portion(detail, lambda one: shown((one,)).tokens) for detail in details)
        return self._within(first(fitting_details(every, lambda some: first(some).tokens, self._budget)))

    def with_read_costs(
        self, details: Sequence[Detail], load: Callable[[str, int, int], TranscriptExcerpt]
    ) -> tuple[Detail, ...]:
        """Return the details with the tokens that `read` costs for their lines, counted as it renders them.

        A detail whose lines cannot be loaded keeps its estimate.
        """
        return tuple(self._with_read_cost(one, load) if was_said(one) else one for one in details)

    def _with_read_cost(self, one: Detail, load: Callable[[str, int, int], TranscriptExcerpt]) -> Detail:
        try:
            lines = load(one.path, one.start_line, one.end_line)
        except PalaverError:
            return one
        return replace(one, tokens=count(self.read(lines)))

    def read(self, transcript: TranscriptExcerpt) -> str:
        """Layer 3: the conversation. Results of tools share a limited room unless a single line was asked for."""
        whole = transcript.start_line == transcript.end_line

        @cache  # most fit as they are, and are shown as they were counted
        def shown(part: TranscriptExcerpt) -> Page:
            return self._transcript(part, cut_line(transcript, part), whole=whole)

        return self._within(shown(fitting_transcript(transcript, lambda part: shown(part).tokens, self._budget)))

    def _transcript(self, transcript: TranscriptExcerpt, rest: CutLine | None, *, whole: bool) -> Page:
        from .dialogue import share, steps  # a page of hits has none

        limit = share(transcript.exchanges, whole=whole)
        dialogue = [(exchange, steps(exchange, limit)) for exchange in transcript.exchanges]
        excerpts = [part for _, shown in dialogue for step in shown for part in (step.said, step.result) if part]
        about = (
            ("Title", transcript.title),
            ("Path", transcript.path),
            ("Agent", f"{transcript.agent} {transcript.version}".strip()),
            ("Branch", transcript.branch),
            ("Directory", transcript.cwd),
            ("Forked from", transcript.parent_id if transcript.kind is SessionKind.MAIN else ""),
            ("Pull request", transcript.pull_request),
            ("Also in", also_in(transcript.also_in)),
        )
        shortened = any(part.hidden for part in excerpts)
        values = {"dialogue": dialogue, "shortened": shortened, "name_room": _NAME, "rest": rest}
        return self._page("read", transcript=transcript, about=about, **values)

    def memories(self, memories: Sequence[StoredMemory], total: int, held: int) -> str:
        """A page of the `total` memories that were asked for, one line each, of `held` in all."""
        return self._render("memories", memories=memories, total=total, held_in_all=held)

    def recalled(
        self,
        found: Sequence[Scored],
        weak: Sequence[Scored],
        meant: int,
        held: int,
        contradictions: Sequence[tuple[str, str]] = (),
    ) -> str:
        """Memories that answer, with their scores; the `weak` ones where none clearly does of those that were `meant`,
        of `held` in all. `contradictions` are pairs of ids of what is shown.
        """
        values = {"found": found, "weak": weak, "meant": meant, "held_in_all": held, "contradictions": contradictions}
        return self._render("recalled", **values)

    def memory(self, held: StoredMemory, edges: Sequence[Edge] = ()) -> str:
        """One memory whole, with what it has earned and its edges."""
        return self._render("memory", held=held, edges=edges)

    def memory_history(self, held: StoredMemory, events: Sequence[MemoryEvent]) -> str:
        """What happened to a memory, newest first, and what it said before each change; `events` are its last ones."""
        return self._render("memory_history", held=held, changes=changes(held, events))

    def memory_context(
        self,
        sections: Sequence[tuple[str, Sequence[StoredMemory]]],
        left_out: int = 0,
        contradictions: Sequence[tuple[str, str]] = (),
    ) -> str:
        """What a new session should know, by heading; empty where there is nothing. Of `contradictions`, pairs of ids,
        each side names the other.
        """
        against: dict[str, list[str]] = {}
        for one, other in contradictions:
            against.setdefault(one, []).append(other)
            against.setdefault(other, []).append(one)
        values = {"sections": sections, "left_out": left_out, "against": against}
        return self._fill("memory_context", **values) if sections else ""

    def status(self, status: Status) -> str:
        """How the archive is, with an account of every line."""
        return self._render("status", status=status)

    def checkup(self, checkup: Checkup) -> str:
        """What `fsck` compared, found and repaired."""
        return self._render("checkup", checkup=checkup)

    def diagnosis(self, diagnosis: Diagnosis) -> str:
        """How everything is, on one screen."""
        return self._render("doctor", diagnosis=diagnosis)

    def rebuilt(self, rebuilt: Rebuilt) -> str:
        """What was made anew."""
        return self._render("rebuilt", rebuilt=rebuilt)

    def searchable(self, report: Report) -> str:
        """Return what an ingest run archived, as soon as its text can be searched."""
        return self._render("searchable", report=report)

    def report(self, report: Report, *, announced: bool = False) -> str:
        """Return what an ingest run did and could not read; `announced` if `searchable` was printed before."""
        return self._render("report", report=report, announced=announced)

    def indexed(self, indexed: IndexedDirectory, namespace: str) -> str:
        """What became of the files that were to be indexed."""
        return self._render("indexed", indexed=indexed, namespace=namespace)

    def documents(self, stats: DocumentStats) -> str:
        """The files that are held, and those that wait or could not be read."""
        return self._render("documents", stats=stats)

    def exported(self, exported: Exported) -> str:
        """Which files were given back, and which could not be."""
        return self._render("exported", exported=exported)

    def secrets(self, found: Secrets) -> str:
        """Which kinds of secrets were taken out, and where."""
        return self._render("secrets", found=found)

    def forget_preview(self, preview: DeletionPreview) -> str:
        """Exactly what would be forgotten: counts, and titles of the first."""
        return self._render("forget_preview", preview=preview, room=_LISTED)

    def forget_done(self, done: DeletionResult) -> str:
        """What was forgotten, how that was verified, and what is out of reach."""
        return self._render("forget_done", done=done, room=_LISTED)

    def forgotten(self, past: Sequence[PastDeletion]) -> str:
        """What was forgotten before, and until when it can be had back."""
        return self._render("forgotten", past=past)

    def next_steps(self, command: str, server: str, about: str, own: str = "") -> str:
        """What to do once an archive is there, `about` which there is something to search for, where that is known.

        `command` runs Palaver on this archive, `server` is how `claude mcp add` is told to; `own` is given where the
        archive is the made-up one, and runs Palaver on the person's own.
        """
        return self._render("next_steps", command=command, server=server, about=about, own=own)

    def estimate(self, estimate: Estimate, off: str) -> str:
        """What asking a language model would cost, and why none is asked yet."""
        return self._render("estimate", estimate=estimate, off=off)

    def extraction(self, extraction: Extraction, observed: int, off: str) -> str:
        """What the rules and a language model learned; `off` is why no model was asked."""
        return self._render("extraction", extraction=extraction, observed=observed, off=off)

    def dead_letters(self, letters: Sequence[DeadLetter]) -> str:
        """Requests that were given up, with the last reply as it came."""
        return self._render("dead_letters", letters=letters)

    def stats(self, stats: Stats) -> str:
        """What was spent, and what layers save."""
        return self._render("stats", stats=stats)

    def prompt(self, name: str, **values: object) -> str:
        """A prompt for a language model."""
        return self._fill(name, **values)

    def source(self, name: str) -> str:
        """The template of this name as it would be used now."""
        return self._filling.source(f"{name}.md.j2")

    def _render(self, name: str, **values: object) -> str:
        return self._within(self._page(name, **values))

    def _within(self, page: Page) -> str:
        if page.tokens <= self._budget:
            return page.text
        marker = _MARKER.search(page.text)
        closing = f"</{marker[1]}>" if marker else ""
        return rows_that_fit(page.text, self._budget, closing, "; --json has all" if self._at_shell else "")

    def _fill(self, name: str, **values: object) -> str:
        return self._page(name, **values).text

    def _page(self, name: str, parts: Sequence[Page] = (), /, **values: object) -> Page:
        given: dict[str, object] = {"parts": slots(parts), "tokens": TOKENS, "at_shell": self._at_shell}
        given |= {"nonce": self._new_nonce(), **values}
        page = filled(self._filling.fill(f"{name}.md.j2", given), parts)
        return Page(page.text.strip() + "\n", together([page.tally, tally("\n")]))


def _price(items: Sequence[Hit] | Sequence[Detail]) -> dict[str, int]:
    """The cheapest and the dearest of what the next layer would cost."""
    tokens = [item.tokens for item in items] or [0]
    return {"cheapest": min(tokens), "dearest": max(tokens)}


def _removable(filters: Filters) -> str:
    """What could be taken away to find more; empty where nothing narrows the search."""
    others = replace(filters, after=None, before=None)
    return "filters" if others else "date filters" if filters else ""


def _missing(results: Results) -> tuple[str, ...]:
    """The engines that should have answered and did not."""
    mode = results.query.mode
    wanted = (Mode.TEXT.value, Mode.VECTOR.value) if mode is Mode.BOTH else (mode.value,)
    return tuple(engine for engine in wanted if engine not in results.engines)
