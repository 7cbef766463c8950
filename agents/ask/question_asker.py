"""Answers to questions, written by the configured language model or else composed by rules.

The language model searches the archive with the tools search, get_observations and read.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ...core.config import Config
from ...core.errors import PalaverError, StoreReadOnly
from ...core.home import Home
from ...core.query import Filters
from ...core.reports import many
from ...core.results import AnswerReceipt, CitedAnswer, CitedSession, CitedSource
from ...core.runtime import never, silent
from ...observe.archive import Archive
from ...observe.llm.ledger import BookedCalls
from ...observe.llm.model_settings import provider_of, why_off
from ...observe.llm.provider import BudgetExhausted, ExtractionError, ModelRefused, ToolProvider, UserMessage
from ...search.query.query_analysis import redacted
from ...templates.render import QuestionPrompts, Renderer
from .agent_definition import LoopLimits, agent_definition
from .citation_check import CheckedText, CitationChecker, MarkedText, ids_in, mark_claims
from .extractive_answer import extractive_answer
from .scoped_index import ScopedIndex
from .tool_loop import ArchiveTools, LoopStopped, ModelReply, OpenProvider, ProgressLine, ToolLoop

if TYPE_CHECKING:
    from ...archiver.store import Store
    from ...search.archive_search import ArchiveSearch

REASON: Final = "asking"
"""Purpose that the ledger records for calls of the model that answer questions."""
_OPENED: Final = 3
"""Number of hits whose full text is part of the first request to the model."""
_OUTPUT_TOKENS: Final = 4_000
"""Maximum tokens of the result of one tool call."""

_INSTEAD: Final = "Rules composed this answer instead."


class Dispatcher:
    """Dispatcher of questions to the configured language model, within the configured budgets.

    `page` is the renderer that counts the tokens of the printed answer.
    """

    def __init__(
        self,
        archive: "ArchiveSearch",
        store: "Store",
        home: Home,
        config: Config,
        open_provider: OpenProvider,
        limits: LoopLimits,
        page: Renderer,
    ) -> None:
        self._archive, self._store, self._home, self._config = archive, store, home, config
        self._open, self._limits, self._page = open_provider, limits, page

    def answer(
        self,
        question: str,
        otherwise: Callable[[], CitedAnswer],
        filters: Filters,
        here: str,
        *,
        also: Sequence[str] = (),
        report: ProgressLine = silent,
        should_stop: Callable[[], bool] = never,
    ) -> CitedAnswer:
        """Return the model's answer with checked citations.

        If the model gives no answer, return the result of `otherwise` with a notice that states the reason.

        Args:
            question: The question.
            otherwise: Function that returns an answer made without a model.
            filters: Only entries that satisfy these filters are used.
            here: The current project, whose entries rank higher. It is ignored if it is private.
            also: Other wordings of the question, for the first search.
            report: Function that gets a line for each step.
            should_stop: Function that returns True to cancel. It is called between steps.

        Raises:
            ConfigInvalid: The price of the model is unknown.
            InvalidInput: The question or a filter is invalid.
        """
        calls = BookedCalls(self._store, self._config, REASON)
        index = ScopedIndex(self._archive, self._store, filters, self._config.private_projects)
        here = "" if index.is_private(here) else here
        renderer = Renderer(self._home.templates, budget=_OUTPUT_TOKENS)
        tools = ArchiveTools(index, renderer, here, report)
        loop = ToolLoop(calls, self._open, tools, self._limits, report, should_stop=should_stop)
        prompts = QuestionPrompts(renderer, agent_definition().prompt)
        wanted = redacted(question, self._home)
        reworded = [redacted(wording, self._home) for wording in also]
        evidence = [output.text for output in tools.look_up(wanted, _OPENED, reworded)]
        first = UserMessage(prompts.request(wanted, here, evidence))
        try:
            reply = loop.run(self._config.llm_name, prompts.system(), [first])
        except (LoopStopped, BudgetExhausted, ExtractionError, StoreReadOnly) as error:
            answer, notice = otherwise(), f"The language model gave no answer: {error}. {_remedy(error)}"
            spent = replace(answer.receipt, cost=calls.spent(), model=self._config.llm_name, model_tokens=loop.used)
            answer = replace(answer, notices=(*answer.notices, notice), receipt=spent)
        else:
            answer = self._checked(question, reply, tools, index, calls.spent(), loop.used)
        return self._page.with_answer_tokens(answer)

    def _checked(
        self, question: str, reply: ModelReply, tools: ArchiveTools, index: ScopedIndex, cost: int, used: int
    ) -> CitedAnswer:
        """Return the reply with invalid citations marked, warnings, cited sessions, and the calls and tokens spent."""
        checked = CitationChecker(self._archive).check(reply.text)
        known = ids_in(tools.outputs)

        def is_read(source: CitedSource) -> bool:
            return source.id in known if source.id else index.has_read(source.path, source.start_line, source.end_line)

        marked = mark_claims(checked.text, checked.sources, is_read)
        sources = tuple(replace(each, read=each in marked.sources) for each in checked.sources)
        sessions = tuple(self._sessions(marked.sources))
        receipt = AnswerReceipt(
            cost=cost,
            model_tokens=used,
            read_tokens=tools.tokens,
            transcript_tokens=sum(self._archive.conversation_tokens(session.path) for session in sessions),
            searches=tools.searches,
            details=tools.details,
            reads=tools.reads,
            model=self._config.llm_name,
        )
        return CitedAnswer(
            question,
            text=marked.text,
            sources=sources,
            sessions=sessions,
            notices=tuple(_notices(reply, checked, marked)),
            receipt=receipt,
        )

    def _sessions(self, sources: Sequence[CitedSource]) -> Iterator[CitedSession]:
        """Yield the conversation of each cited transcript, without repetitions."""
        sessions = self._store.sessions
        for path, line in {source.path: source.start_line for source in sources if source.path}.items():
            excerpt = self._archive.read(path, line, line)
            source = self._store.sources.by_archived(excerpt.path)
            number = source.session if source else None
            label = "" if number is None else sessions.short_ids([number])[number]
            yield CitedSession(label, excerpt.session_id, excerpt.title, excerpt.project, path, excerpt.started)


def _remedy(error: PalaverError) -> str:
    if isinstance(error, BudgetExhausted) and error.setting == "budget_run":
        return f"{_INSTEAD} Raise --max-cost to allow more."
    return f"{_INSTEAD} {error.hint}" if isinstance(error, ModelRefused) else _INSTEAD


def _notices(reply: ModelReply, checked: CheckedText, marked: MarkedText) -> Iterator[str]:
    if reply.note:
        yield f"The answer may be incomplete: {reply.note}."
    invented = len(checked.missing) + sum(source.exists for source in checked.sources) - len(marked.sources)
    if invented:
        yield f"Invented by the model, and marked: {many(invented, 'citation')}."
    if marked.unsupported:
        yield f"Without a valid source, and marked: {many(marked.unsupported, 'claim')}."


COST_MAX: Final = 0.50
"""Default maximum cost of a question in US dollars."""


class QuestionAsker:
    """Service that answers questions from an open archive.

    `page` is the renderer that counts the tokens of each answer.
    """

    def __init__(self, archive: Archive, page: Renderer) -> None:
        self._archive, self._page = archive, page

    def ask(
        self,
        question: str,
        filters: Filters,
        here: str,
        limits: LoopLimits,
        *,
        also: Sequence[str] = (),
        report: Callable[[str], None] = silent,
        should_stop: Callable[[], bool] = never,
    ) -> CitedAnswer:
        """Return an answer by the language model or else by rules. See `Dispatcher.answer` for the arguments."""
        rules = partial(extractive_answer, self._archive.search, self._page, question, filters, here, also=also)
        config, off = _within_cost(self._archive.config, limits.cost)
        if self._archive.home.is_read_only:  # The ledger of costs cannot be written.
            off = "the archive is read-only"
        elif off and limits.cost is None:
            return rules()
        if off:
            answer = rules()
            notices = (*answer.notices, f"No language model was used: {off}.")
            return self._page.with_answer_tokens(replace(answer, notices=notices))

        def open_provider(seconds: float) -> ToolProvider:
            return provider_of(config, seconds)()

        archive = self._archive
        dispatcher = Dispatcher(archive.search, archive.store, archive.home, config, open_provider, limits, self._page)
        return dispatcher.answer(question, rules, filters, here, also=also, report=report, should_stop=should_stop)


def _within_cost(config: Config, cost: float | None) -> tuple[Config, str]:
    """Return the settings with a maximum cost for one question, and the reason why the model is off, or an empty text.

    A given `cost` counts as a budget, so it can enable the model. The default `COST_MAX` cannot.
    """
    if cost is not None:
        config = replace(config, budget_run=cost)
    off = why_off(config)
    if cost is None:
        set_up = COST_MAX if config.budget_run is None else min(config.budget_run, COST_MAX)
        config = replace(config, budget_run=set_up)
    return config, off
