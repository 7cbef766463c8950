"""Rendering of replies, reports and language model prompts as Markdown, from templates that users can replace."""

import re
import secrets
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final, TypeVar

from msgspec.structs import replace

from ..core.conversation import SessionKind, now
from ..core.document import CodeLine, CodeLines, Symbol, Symbols
from ..core.home import OWN_PROMPT_MARK
from ..core.memory import MemoryEvent, StoredMemory
from ..core.observation import DETAIL_TOKENS
from ..core.query import Filters, Mode
from ..core.reports import HANDOFF_TOKENS, Handoff
from ..core.results import (
    BUDGET,
    CitedAnswer,
    Detail,
    DigestSection,
    Hit,
    OutputMatch,
    OutputMatches,
    Results,
    SessionPage,
    Timeline,
    TranscriptExcerpt,
    ZeroResultExplanation,
    result_limit,
)
from ..core.text import readable
from ..core.tokens import count
from .environment import Templates, changes, count_results, dialogues, has_transcript, other_sessions, plural_of
from .hit_columns import brief_columns, complete_columns, limited, listed_title
from .quote import brief
from .truncation import TruncatedLine, fit_items, fit_rows, fit_timeline, fit_transcript, truncated_line

_NAME: Final = 40
"""Maximum tokens of an ID or a name. A UUID has about 25."""
_NOTES: Final = 3
"""Maximum number of corrected words, of inexact phrases and of time expressions in the notes of a page."""
_NOTE_TOKENS: Final = 12
"""Maximum tokens of each word, phrase or expression in a note."""
_UNLIMITED: Final = 100
"""Token limit of titles, which no title of at most 90 characters exceeds."""
_DIGEST: Final = 40
"""Maximum tokens of each text in a line about a past session."""
_TRIALS: Final = 4
"""Maximum number of times an answer is rendered until the token count that it states is correct.

The count rarely changes after the second time.
"""
_TOKENS: Final = "\0"
"""Placeholder for a page's token count. `quote` removes NUL, so stored text cannot contain this placeholder."""
_MARKER: Final = re.compile(r"^<(recalled-\w+)>$", re.MULTILINE)
"""Pattern for the first line of quoted text. The first match on a page is always Palaver's own marker."""
_LISTED: Final = 20
"""Maximum number of rows in each list of a deletion preview."""

_Item = TypeVar("_Item")


def _new_nonce() -> str:
    """Return eight random digits. All values cost the same number of tokens."""
    return f"{secrets.randbelow(10**8):08d}"


class Renderer:
    """Renderer of core values as Markdown for agents and users.

    Stored text is placed between two markers with a random number, which the text cannot predict. `user_folder`
    contains the user's templates. With `at_shell`, a reply refers to commands instead of tools. With `full_titles`,
    each hit has its full date and score, and matches are bold. No reply has more than `budget` tokens, except for
    `fill`.
    """

    def __init__(
        self,
        user_folder: Path | None = None,
        *,
        at_shell: bool = False,
        full_titles: bool = False,
        budget: int = BUDGET,
        new_nonce: Callable[[], str] = _new_nonce,
    ) -> None:
        self._at_shell, self._full_titles, self._budget, self._new_nonce = at_shell, full_titles, budget, new_nonce
        self._templates = Templates(user_folder)

    def search(self, results: Results, *, facts: bool = False, snippets: bool = False, explain: bool = False) -> str:
        """Return layer 1: one line for each hit, or blocks for `facts` and for several concepts.

        `snippets` adds the matching text, and `explain` adds the parts of each score.
        """
        several = len(results.query.concepts) > 1
        if not results.hits:
            return self._no_results(results, "conversations" if several else plural_of(results.query.filters.kinds))
        name = "search_conversations" if several else "search_facts" if facts else "search"

        def page(hits: tuple[Hit, ...]) -> str:
            return self.fill(name, **self._hits(name, results, hits), facts=facts, snippets=snippets, explain=explain)

        return self._first_items(results.hits, page)

    def _hits(self, name: str, results: Results, hits: Sequence[Hit]) -> dict[str, object]:
        cut, by_rank = len(hits) < len(results.hits), bool(results.query.concepts)
        cursor = (hits[-1].cursor if hits else "") if cut else results.cursor
        columns = complete_columns(hits) if self._full_titles else brief_columns(hits)
        return {
            "hits": hits,
            "results": results,
            "missing_engines": _missing_engines(results),
            "notes": _NOTES,
            "name_budget": _NOTE_TOKENS,
            "scored": by_rank and (name != "search" or self._full_titles),
            "columns": columns,
            "score_range": _score_range(hits) if by_rank and name == "search" and not self._full_titles else "",
            "titles": [brief(listed_title(hit), _UNLIMITED) for hit in hits],
            "project_budget": _NAME,
            "full_titles": self._full_titles,
            "cut": len(results.hits) if cut else 0,
            "cursor": cursor,
            **_costs(hits),
        }

    def _no_results(self, results: Results, noun: str) -> str:
        filters = results.query.filters
        why = results.explanation or ZeroResultExplanation()
        return self.render(
            "search_none",
            noun=noun,
            filters=_removable(filters),
            dates=[name for name in ("after", "before") if getattr(filters, name) is not None],
            missing_engines=_missing_engines(results),
            why=why,
            empty_times=results.empty_times[:_NOTES],
            newest=results.newest,
            worded=bool(results.query.concepts),
            lag=results.index_lag,
            title_budget=_UNLIMITED,
            name_budget=_NAME,
        )

    def output(self, found: OutputMatches, *, filtered: bool) -> str:
        """Return matches in tool output with their context. `filtered` is true if the search had filters."""

        def page(some: tuple[OutputMatch, ...]) -> str:
            return self.fill("output", found=found.first(some), filtered=filtered, name_budget=_NAME)

        return self._first_items(found.matches, page)

    def symbols(self, found: Symbols, *, filtered: bool) -> str:
        """Return the units of code found by name, one line each. `filtered` is true if filters applied."""

        def page(some: tuple[Symbol, ...]) -> str:
            part = replace(found, symbols=some, limited=found.limited or len(some) < len(found.symbols))
            return self.fill("symbols", found=part, filtered=filtered, name_budget=_NAME)

        return self._first_items(found.symbols, page)

    def code_lines(self, found: CodeLines, *, filtered: bool) -> str:
        """Return lines of code with their context. `filtered` is true if filters applied."""

        def page(some: tuple[CodeLine, ...]) -> str:
            part = replace(found, lines=some, limited=found.limited or len(some) < len(found.lines))
            return self.fill("code_lines", found=part, filtered=filtered, name_budget=_NAME)

        return self._first_items(found.lines, page)

    def timeline(self, timeline: Timeline) -> str:
        """Return the events around a hit, one line each. The line of the hit is marked."""

        def page(part: Timeline) -> str:
            return self.fill("timeline", timeline=part, title_budget=_UNLIMITED, **_costs(part.hits))

        return self._fit(page(fit_timeline(timeline, lambda part: count(page(part)), self._budget)))

    def sessions(self, page: SessionPage) -> str:
        """Return one page of a list of sessions."""
        return self.render(
            "sessions", sessions=page.sessions, cursor=page.cursor, name_budget=_NAME, text_tokens=_UNLIMITED
        )

    def observations(self, details: Sequence[Detail]) -> str:
        """Return layer 2: entries, and the IDs of entries that do not fit.

        An entry has at most `DETAIL_TOKENS`. For users, it has more if all entries together fit into the budget.
        """
        limit = max(DETAIL_TOKENS, self._budget // max(1, len(details)) if self._at_shell else 0)
        ids = tuple(detail.id for detail in details)

        def page(some: tuple[Detail, ...], rest: tuple[str, ...] = ()) -> str:
            return self.fill("observations", details=some, rest=rest, readable=any(map(has_transcript, some)))

        def first(some: tuple[Detail, ...]) -> str:
            return page(some, ids[len(some) :])

        every = tuple(limited(detail, lambda one: count(page((one,))), limit) for detail in details)
        return self._first_items(every, first)

    def read(self, transcript: TranscriptExcerpt) -> str:
        """Return layer 3: the conversation. Tool results are shortened, unless only one line is requested."""
        single = transcript.start_line == transcript.end_line

        def page(part: TranscriptExcerpt) -> str:
            return self._transcript(part, truncated_line(transcript, part), single=single)

        return self._fit(page(fit_transcript(transcript, lambda part: count(page(part)), self._budget)))

    def _transcript(self, transcript: TranscriptExcerpt, rest: TruncatedLine | None, *, single: bool) -> str:
        limit = None if single else result_limit(count_results(transcript.exchanges), self._budget)
        dialogue = dialogues(transcript.exchanges, limit, transcript.subagents)
        texts = [part for _, shown in dialogue for step in shown for part in (step.said, step.result) if part]
        # Callers of a tool already know the path, and facts about the program would cost as many tokens as a paragraph.
        program = (
            ("Path", transcript.path),
            ("Agent", f"{transcript.agent} {transcript.version}".strip()),
            ("Directory", transcript.cwd),
        )
        about = (
            ("Title", transcript.title),
            *(program if self._at_shell else ()),
            ("Branch", transcript.branch),
            ("Forked from", transcript.parent_id if transcript.kind is SessionKind.MAIN else ""),
            ("Pull request", transcript.pull_request),
            ("Also in", other_sessions(transcript.also_in)),
        )
        return self.fill(
            "read",
            transcript=transcript,
            about=about,
            dialogue=dialogue,
            shortened=any(part.hidden for part in texts),
            name_budget=_NAME,
            rest=rest,
        )

    def cited_answer(self, answer: CitedAnswer) -> str:
        """Return an answer with its findings, sources and receipt."""
        return self.render("cited_answer", answer=answer, name_budget=_NAME, title_budget=_UNLIMITED)

    def with_answer_tokens(self, answer: CitedAnswer) -> CitedAnswer:
        """Return the answer with the token count of its page in the receipt. The page itself states this number."""
        for _ in range(_TRIALS):
            tokens = count(self.cited_answer(answer))
            if tokens == answer.receipt.tokens:
                break
            answer = replace(answer, receipt=replace(answer.receipt, tokens=tokens))
        return answer

    def memory_history(self, stored: StoredMemory, events: Sequence[MemoryEvent]) -> str:
        """Return the latest events of a memory, newest first, with the text before each edit."""
        return self.render("memory_history", stored=stored, changes=changes(stored, events))

    def memory_context(
        self,
        sections: Sequence[tuple[str, Sequence[StoredMemory]]],
        left_out: int = 0,
        contradictions: Sequence[tuple[str, str]] = (),
        digest: Sequence[DigestSection] = (),
    ) -> str:
        """Return memories and the digest of past sessions, grouped under headings.

        The result is empty if there are no memories and no past sessions. Each memory lists the memories that
        contradict it. `contradictions` are pairs of IDs.
        """
        against: dict[str, list[str]] = {}
        for one, other in contradictions:
            against.setdefault(one, []).append(other)
            against.setdefault(other, []).append(one)
        values = {"sections": sections, "left_out": left_out, "against": against}
        return self.fill("memory_context", **values, digest=digest, text_tokens=_DIGEST) if sections or digest else ""

    def handoff(self, handoff: Handoff) -> str:
        """Return a brief for another agent, with as many lines as `HANDOFF_TOKENS` allows."""
        page = self.fill("handoff", handoff=handoff)
        while count(page) > HANDOFF_TOKENS and (shorter := handoff.shortened()) is not handoff:
            handoff = shorter
            page = self.fill("handoff", handoff=handoff)
        return page

    def render(self, name: str, **values: object) -> str:
        """Return a page with these values. Rows that exceed the budget are omitted.

        Raises:
            TemplateInvalid: A user's template is invalid.
        """
        return self._fit(self.fill(name, **values))

    def fill(self, name: str, **values: object) -> str:
        """Fill a template without limiting the length of the output. Raises the same errors as `render`."""
        given = {"tokens": _TOKENS, "at_shell": self._at_shell, "nonce": self._new_nonce(), "listed": _LISTED}
        page = self._templates.fill(f"{name}.md.j2", {**given, **values}).strip() + "\n"
        return page.replace(_TOKENS, str(count(page))) if _TOKENS in page else page

    def source(self, name: str) -> str:
        """Return the source text of the template with this name."""
        return self._templates.source(f"{name}.md.j2")

    def _first_items(self, items: tuple[_Item, ...], page: Callable[[tuple[_Item, ...]], str]) -> str:
        """Return the page with as many of the first items as the budget allows."""
        whole = page(items)
        if count(whole) <= self._budget:
            return whole
        return self._fit(page(fit_items(items, lambda some: count(page(some)), self._budget)))

    def _fit(self, page: str) -> str:
        marker = _MARKER.search(page)
        hint = "; --json has all" if self._at_shell else ""
        return fit_rows(page, self._budget, f"</{marker[1]}>" if marker else "", hint)


def _score_range(hits: Sequence[Hit]) -> str:
    """Return the highest and the lowest score of a list, such as `0.58-0.12`, or the only score."""
    scores = [f"{hit.score:.2f}" for hit in hits] or ["0.00"]
    return "-".join(dict.fromkeys((max(scores), min(scores))))


def _costs(items: Sequence[Hit] | Sequence[Detail]) -> dict[str, int]:
    """Return the lowest and the highest token cost of an entry in the next layer."""
    tokens = [item.tokens for item in items] or [0]
    return {"lowest_cost": min(tokens), "highest_cost": max(tokens)}


def _removable(filters: Filters) -> str:
    """Return the word for the filters that the user could remove to find more hits.

    The result is `date filters` if only dates are set, `filters` if other filters are set, or empty without filters.
    """
    others = replace(filters, after=None, before=None)
    return "filters" if others else "date filters" if filters else ""


def _missing_engines(results: Results) -> tuple[str, ...]:
    """Return the search engines that were requested but did not answer."""
    mode = results.query.mode
    wanted = (Mode.TEXT.value, Mode.VECTOR.value) if mode is Mode.BOTH else (mode.value,)
    return tuple(engine for engine in wanted if engine not in results.searched)


class ExtractionPrompts:
    """Prompts that request the observations of an exchange, or the card of a session. Users can replace the templates.

    The names of the templates begin with `name`, as in `observe_system`.
    """

    def __init__(self, renderer: Renderer, name: str = "observe") -> None:
        self._renderer, self._system, self._request = renderer, f"{name}_system", f"{name}_request"

    @property
    def of_sessions(self) -> "ExtractionPrompts":
        """Prompts that request the card of a session."""
        return ExtractionPrompts(self._renderer, "session")

    @property
    def version(self) -> str:
        """Version of the prompts, which changes with every change of a template."""
        sources = "\0".join(self._renderer.source(name) for name in (self._system, self._request))
        return sha256(sources.encode()).hexdigest()[:8]

    def system(self) -> str:
        """Return the system prompt: the rules for the extraction and the format of the reply."""
        return self._renderer.fill(self._system, mark=OWN_PROMPT_MARK)

    def request(self, excerpt: object, nonce: str, known: Sequence[str] = (), before: str = "") -> str:
        """Return the prompt that quotes an excerpt as data. The quoted texts are indented."""
        values = {"shown": excerpt, "nonce": nonce, "known": known, "before": before}
        return self._renderer.fill(self._request, mark=OWN_PROMPT_MARK, **values)


class JudgingPrompts:
    """Prompts that ask a model how the two memories of each pair are related."""

    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer

    def system(self) -> str:
        """Return the system prompt: the possible relations and the format of the reply."""
        return self._renderer.fill("judge_system", mark=OWN_PROMPT_MARK)

    def request(self, pairs: Sequence[tuple[str, str]], nonce: str) -> str:
        """Return the prompt that quotes pairs of memories as data, the older memory of each pair first."""
        return self._renderer.fill("judge_request", mark=OWN_PROMPT_MARK, pairs=pairs, nonce=nonce)


class QuestionPrompts:
    """Prompts of a model that answers a question with tools. `instructions` come from the search agent."""

    def __init__(self, renderer: Renderer, instructions: str) -> None:
        self._renderer, self._instructions = renderer, instructions

    def system(self) -> str:
        """Return the system prompt: the agent's instructions, marked as a prompt of Palaver."""
        return f"{OWN_PROMPT_MARK}\n{self._instructions}\n"

    def request(self, question: str, here: str, evidence: Sequence[str]) -> str:
        """Return the first prompt: the question, the current project and the first results of the tools."""
        values = {"question": readable(question), "here": here, "evidence": evidence, "now": now()}
        return self._renderer.fill("question_request", mark=OWN_PROMPT_MARK, **values)
