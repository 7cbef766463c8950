"""Rendering of replies, reports and language model prompts as Markdown, from templates that users can replace.

A hit in a list has columns: ID, date, session, type and title. Details have a maximum of tokens. The least important
parts of a longer item are omitted.
"""

import re
import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from sys import maxsize
from typing import Final, TypeVar

from msgspec.structs import replace

from ..core.conversation import SessionKind, now, show_day
from ..core.document import CodeLine, CodeLines, Symbol, Symbols
from ..core.home import OWN_PROMPT_MARK
from ..core.memory import MemoryEvent, StoredMemory
from ..core.observation import DETAIL_TOKENS, Observation, ObservationType
from ..core.query import FIELDS, Filters, Mode
from ..core.reports import HANDOFF_TOKENS, Handoff
from ..core.results import (
    BUDGET,
    CitedAnswer,
    CommandList,
    ComputedList,
    Detail,
    DigestSection,
    FixList,
    Hit,
    OpenItemList,
    OutputMatch,
    OutputMatches,
    Results,
    SessionPage,
    Timeline,
    TranscriptExcerpt,
    ZeroResultExplanation,
    result_limit,
)
from ..core.text import readable, similar_names
from ..core.tokens import count
from .environment import (
    Templates,
    changes,
    count_results,
    dialogues,
    has_transcript,
    label,
    other_sessions,
    packaged,
    plural_of,
)
from .quote import brief
from .truncation import (
    TruncatedLine,
    fit_items,
    fit_rows,
    fit_timeline,
    fit_transcript,
    largest_fitting,
    truncated_line,
)

_NAME: Final = 40
"""Maximum tokens of an ID or a name. A UUID has about 25."""
_NOTES: Final = 3
"""Maximum number of corrected words, of inexact phrases and of time expressions in the notes of a page."""
_NOTE_TOKENS: Final = 12
"""Maximum tokens of each word, phrase or expression in a note."""
_UNLIMITED: Final = 100
"""Token limit of titles, which no title of at most 90 characters exceeds."""
_TYPES: Final = " or ".join(", ".join(ObservationType).rsplit(", ", 1))
"""Types of observations in a sentence, for the prompt of a model."""
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
_TOLERANCE: Final = 1.1
"""Maximum cost of a page of a transcript, as a multiple of the stated cost, which is an estimate."""
_TEXT_MIN: Final = 80
"""Minimum number of characters of a tool call or result to which it is shortened for its stated cost."""

_Item = TypeVar("_Item")


def _new_nonce() -> str:
    """Return eight random digits. All values cost the same number of tokens."""
    return f"{secrets.randbelow(10**8):08d}"


_SENTENCE: Final = re.compile(r"\s*(?:[^\n]{1,240}?[.!?](?=\s)|[^\n]{1,240}(?=\s|$)|[^\n]{1,240})")
"""Pattern for a line, a sentence, or up to 240 characters of a long sentence."""
_FACTS, _NARRATIVE = 3, 500
"""Number of facts, and number of characters of the narrative, that have priority over the modified files."""
_NAMES: Final = 3
"""Number of names of files or concepts that are always shown. The other names are shown only if they fit."""


def limited(whole: Detail, cost: Callable[[Detail], int], limit: int = DETAIL_TOKENS) -> Detail:
    """Return the detail without its least important parts if it costs more than `limit` tokens.

    `left_out` counts the omitted parts. If the detail is too large even without these parts, its remaining texts
    are shortened.
    """
    if cost(whole) <= limit:
        return whole
    order = _by_importance(whole.observation)

    def first(number: int) -> Detail:
        kept = _with_parts(whole.observation, Counter(order[:number]))
        return replace(whole, observation=kept, left_out=len(order) - number)

    kept = largest_fitting(lambda number: cost(first(number)), len(order) - 1, limit)
    shortened = () if kept else fit_items((first(0),), lambda some: cost(some[0]) if some else 0, limit)
    return shortened[0] if shortened else first(kept)


def _by_importance(whole: Observation) -> list[str]:
    """Return the name of the field of each part, with the most important part first.

    A field with several parts, such as `facts`, occurs once per part.
    """
    ends = _ends(whole.narrative)
    early = sum(end <= _NARRATIVE for end in ends)
    ranked = (
        ("subtitle", bool(whole.lead)),
        ("narrative", early),
        ("facts", len(whole.facts[:_FACTS])),
        ("files_modified", bool(whole.files_modified)),
        ("facts", len(whole.facts[_FACTS:])),
        ("evidence", len(whole.new_quotes)),
        ("narrative", len(ends) - early),
        ("concepts", bool(whole.concepts)),
        ("files_read", bool(whole.files_read)),
        *((name, len(getattr(whole, name)) > _NAMES) for name in ("files_modified", "concepts", "files_read")),
    )
    return [field for field, number in ranked for _ in range(number)]


def _with_parts(whole: Observation, parts: Counter[str]) -> Observation:
    """Return the observation with only the first parts of each field.

    `parts` maps the name of a field to the number of parts to keep.
    """
    ends = _ends(whole.narrative)
    narrative = whole.narrative[: ends[parts["narrative"] - 1]] if parts["narrative"] else ""
    some = replace(
        whole,
        subtitle=whole.lead if parts["subtitle"] else "",
        narrative=f"{narrative} …" if 0 < parts["narrative"] < len(ends) else narrative,
        facts=whole.facts[: parts["facts"]],
        concepts=_names(whole.concepts, parts["concepts"]),
        files_read=_names(whole.files_read, parts["files_read"]),
        files_modified=_names(whole.files_modified, parts["files_modified"]),
    )
    # Also omit a quote that repeats an omitted text.
    hidden = {*some.new_quotes}.difference(whole.new_quotes[: parts["evidence"]])
    return replace(some, evidence=tuple(proof for proof in whole.quotes if proof not in hidden))


def _names(every: Sequence[str], parts: int) -> tuple[str, ...]:
    return tuple(every) if parts > 1 else tuple(every[: _NAMES * parts])


def _ends(text: str) -> list[int]:
    """Return the end position of each sentence in a narrative."""
    return [part.end() for part in _SENTENCE.finditer(text)]


_SHORT_PROMPT: Final = 3
"""Maximum number of words of a prompt that says too little without the title of its session."""
_SESSION: Final = 12
"""Maximum tokens of a session ID."""


def complete_columns(hits: Sequence[Hit]) -> list[str]:
    """Return the columns of each hit, with its full date and its session."""
    return [_joined(hit, show_day(hit.at), hit.short_session_id) for hit in hits]


def brief_columns(hits: Sequence[Hit]) -> list[str]:
    """Return the columns of each hit. The year is shown only where it changes, so that more of the title fits."""
    rows, year = list[str](), ""
    for hit in hits:
        day, before = show_day(hit.at), year
        year = f"{day[:4]}-"
        rows.append(_joined(hit, day.removeprefix(before) if before else day, hit.short_session_id))
    return rows


def _joined(hit: Hit, day: str, session: str) -> str:
    if hit.kind == "session":  # its ID already is that of the session
        return f"{hit.id} {day}"
    return " ".join(filter(None, (hit.id, day, brief(session, _SESSION), label(hit))))


def listed_title(hit: Hit) -> str:
    """Return the title of a hit in a list. The title of the session follows a short prompt, such as `commit`."""
    short = hit.kind == "exchange" and len(hit.title.split()) <= _SHORT_PROMPT
    named = hit.session_title and hit.session_title.casefold() != hit.title.casefold()
    return f"{hit.title} in: {hit.session_title}" if short and named else hit.title


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
            results=results,
            noun=noun,
            filters=_removable(filters),
            dates=[name for name in ("after", "before") if getattr(filters, name) is not None],
            fields=FIELDS,
            missing_engines=_missing_engines(results),
            why=why,
            empty_times=results.empty_times[:_NOTES],
            newest=results.newest,
            worded=bool(results.query.concepts),
            lag=results.index_lag,
            title_budget=_UNLIMITED,
            name_budget=_NAME,
        )

    def output(self, matches: OutputMatches, *, filtered: bool) -> str:
        """Return matches in tool output with their context. `filtered` is true if the search had filters."""

        def page(some: tuple[OutputMatch, ...]) -> str:
            return self.fill("output", found=matches.first(some), filtered=filtered, name_budget=_NAME)

        return self._first_items(matches.matches, page)

    def computed_list(self, rows: ComputedList, *, in_project: bool) -> str:
        """Return commands, fixes or open items. `in_project` is true if the query has a filter for projects."""
        match rows:
            case CommandList():
                words = (similar_names(word.lower(), rows.tasks) for word in rows.task.split())
                similar = next((name for names in words for name in names), "")
                return self.render("how", rows=rows, near=similar, in_project=in_project)
            case FixList():
                page = self.render("fix", rows=rows, in_project=in_project)
                return page + (self.search(rows.nearest) if rows.nearest and rows.nearest.hits else "")
            case OpenItemList():
                return self.render("open_items", rows=rows, name_budget=_NAME)

    def symbols(self, symbols: Symbols, *, filtered: bool) -> str:
        """Return the units of code found by name, one line each. `filtered` is true if filters applied."""

        def page(some: tuple[Symbol, ...]) -> str:
            part = replace(symbols, symbols=some, limited=symbols.limited or len(some) < len(symbols.symbols))
            return self.fill("symbols", found=part, filtered=filtered, name_budget=_NAME)

        return self._first_items(symbols.symbols, page)

    def code_lines(self, lines: CodeLines, *, filtered: bool) -> str:
        """Return lines of code with their context. `filtered` is true if filters applied."""

        def page(some: tuple[CodeLine, ...]) -> str:
            part = replace(lines, lines=some, limited=lines.limited or len(some) < len(lines.lines))
            return self.fill("code_lines", found=part, filtered=filtered, name_budget=_NAME)

        return self._first_items(lines.lines, page)

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

        def page(some: tuple[Detail, ...], left_out: tuple[str, ...] = ()) -> str:
            return self.fill("observations", details=some, rest=left_out, readable=any(map(has_transcript, some)))

        def first(some: tuple[Detail, ...]) -> str:
            return page(some, ids[len(some) :])

        every = tuple(limited(detail, lambda single: count(page((single,))), limit) for detail in details)
        return self._first_items(every, first)

    def read(self, transcript: TranscriptExcerpt) -> str:
        """Return layer 3: the conversation. Tool calls and results are shortened, unless only one line is requested.

        For agents, they are shortened so far that the page costs about as much as details state for its lines.
        """
        single = transcript.start_line == transcript.end_line
        most = 0 if single else self._text_limit(transcript)

        def page(part: TranscriptExcerpt) -> str:
            limit = None if single else min(most, self._result_limit(part))
            return self._transcript(part, truncated_line(transcript, part), limit)

        return self._fit(page(fit_transcript(transcript, lambda part: count(page(part)), self._budget)))

    def _result_limit(self, transcript: TranscriptExcerpt) -> int:
        return result_limit(count_results(transcript.exchanges), self._budget)

    def _text_limit(self, transcript: TranscriptExcerpt) -> int:
        """Return the maximum number of characters of a tool call or result, with which the page keeps to its cost.

        Users get as much as the budget allows.
        """
        if not transcript.stated_tokens or self._at_shell:
            return maxsize
        most, cost = self._result_limit(transcript), partial(self._cost_with, transcript)
        limit = largest_fitting(cost, most, int(transcript.stated_tokens * _TOLERANCE))
        return maxsize if limit == most else max(_TEXT_MIN, limit)

    def _cost_with(self, transcript: TranscriptExcerpt, limit: int) -> int:
        return count(self._transcript(transcript, None, limit))

    def _transcript(self, transcript: TranscriptExcerpt, truncated: TruncatedLine | None, limit: int | None) -> str:
        dialogue = dialogues(transcript.exchanges, limit, transcript.subagents)
        texts = [part for _, steps in dialogue for step in steps for part in (step.said, step.result) if part]
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
            rest=truncated,
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
        for memory, opponent in contradictions:
            against.setdefault(memory, []).append(opponent)
            against.setdefault(opponent, []).append(memory)
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
        common = {"tokens": _TOKENS, "at_shell": self._at_shell, "nonce": self._new_nonce(), "listed": _LISTED}
        page = self._templates.fill(f"{name}.md.j2", {**common, **values}).strip() + "\n"
        return page.replace(_TOKENS, str(count(page))) if _TOKENS in page else page

    def prompts(self, name: str) -> tuple[str, str, Callable[..., str]]:
        """Return the prompts for a language model: their version, the system prompt, and the filling of the request.

        The version changes with every change of a template or of the types. All requests have the same system prompt,
        so that a provider can cache it.
        """
        system, request = f"{name}_system", f"{name}_request"
        sources = "\0".join(packaged(f"{template}.md.j2") or "" for template in (system, request))
        version = sha256(sources.replace("{{ types }}", _TYPES).encode()).hexdigest()[:8]
        instructions = self.fill(system, mark=OWN_PROMPT_MARK, types=_TYPES)
        return version, instructions, partial(self.fill, request, mark=OWN_PROMPT_MARK)

    def _first_items(self, items: tuple[_Item, ...], page: Callable[[tuple[_Item, ...]], str]) -> str:
        """Return the page with as many of the first items as the budget allows."""
        complete = page(items)
        if count(complete) <= self._budget:
            return complete
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
    engines = (Mode.TEXT.value, Mode.VECTOR.value) if mode is Mode.BOTH else (mode.value,)
    return tuple(engine for engine in engines if engine not in results.searched)


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
