"""Answers to questions, written by the configured language model or else composed by rules."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from palaver.agents.ask.dispatcher import Dispatcher
from palaver.agents.ask.extractive_answer import extractive_answer
from palaver.agents.ask.loop_limits import LoopLimits
from palaver.archiver.store import Store
from palaver.cli.language_model import provider_of, why_off
from palaver.core.cited_answer import CitedAnswer
from palaver.core.config import Config
from palaver.core.home import Home, is_read_only_mode
from palaver.core.progress import never, silent
from palaver.core.query import Filters
from palaver.observe.llm.tool_turn import ToolProvider
from palaver.search.archive_search import ArchiveSearch
from palaver.templates.render import Renderer

COST_MAX: Final = 0.50
"""Default maximum cost of a question in US dollars."""
LIMITS: Final = LoopLimits()
"""Default limits of the model for one question: messages, tokens and seconds."""


def dispatch(
    question: str,
    *,
    home: str | Path | None = None,
    project: str | Path | None = None,
    projects: Sequence[str] = (),
    after: str | None = None,
    before: str | None = None,
    max_turns: int = LIMITS.turns,
    max_tokens: int = LIMITS.tokens,
    max_cost: float | None = None,
    timeout: float = LIMITS.seconds,
    report: Callable[[str], None] = silent,
    should_stop: Callable[[], bool] = never,
) -> CitedAnswer:
    """Answer a question from past conversations, with sources.

    The language model of `palaver observe` searches the archive, if the settings allow it. Otherwise, and if it gives
    no answer, rules compose the answer, and `notices` says so.

    Args:
        question: The question.
        home: Folder with the data. The default is `PALAVER_HOME`, or else the data folder of the platform.
        project: Folder of the current project, whose entries rank higher. The default is the working folder.
        projects: Only these projects are searched: names or full paths.
        after: First date, inclusive: `2026-03-01`, or words such as `last month`.
        before: Last date, inclusive.
        max_turns: Maximum number of messages that the model writes.
        max_tokens: Maximum tokens that it reads and writes.
        max_cost: Maximum cost in US dollars. The default is 0.50, and a model is then used only if a budget is set.
        timeout: Maximum seconds.
        report: Function that gets a line for each step.
        should_stop: Function that returns True to cancel the model. It is called between steps.

    Raises:
        StoreMissing: Nothing is archived.
        InvalidInput: The question or a filter is invalid.
        ConfigInvalid: A setting is invalid, or the price of the model is unknown.
    """
    root = Home.find().root if home is None else Path(home).expanduser().absolute()
    found = Home(root, read_only=is_read_only_mode())
    config = Config.read(found.config)
    filters = Filters.parse(after=after, before=before, projects=projects)
    limits = LoopLimits(max_turns, max_tokens, timeout)
    with ArchiveSearch(found, config.model) as archive:
        here = "" if projects else archive.project_at(Path.cwd() if project is None else Path(project).expanduser())
        asker = QuestionAsker(archive, found, config, Renderer(found.templates))
        return asker.ask(question, filters, here, limits, max_cost, report, should_stop)


class QuestionAsker:
    """Answers to questions from an open archive. `page` is the renderer that counts the tokens of each answer."""

    def __init__(self, archive: ArchiveSearch, home: Home, config: Config, page: Renderer) -> None:
        self._archive, self._home, self._config, self._page = archive, home, config, page

    def ask(
        self,
        question: str,
        filters: Filters,
        here: str,
        limits: LoopLimits,
        max_cost: float | None,
        report: Callable[[str], None],
        should_stop: Callable[[], bool] = never,
    ) -> CitedAnswer:
        """Return an answer by the language model or else by rules. See `dispatch` for the arguments."""
        rules = partial(extractive_answer, self._archive, self._page, question, filters, here)
        if self._home.is_read_only:  # The ledger of costs cannot be written.
            notice = "No language model was used: the archive is read-only."
            return self._page.with_answer_tokens(replace(rules(), notices=(notice,)))
        config, off = _within_cost(self._config, max_cost)
        if off and max_cost is not None:
            return self._page.with_answer_tokens(replace(rules(), notices=(f"No language model was used: {off}.",)))
        if off:
            return rules()

        def open_provider(seconds: float) -> ToolProvider:
            return provider_of(config, seconds)()

        with Store.open(self._home.database) as store:
            dispatcher = Dispatcher(self._archive, store, self._home, config, open_provider, limits, self._page)
            return dispatcher.answer(question, rules, filters, here, report=report, should_stop=should_stop)


def _within_cost(config: Config, max_cost: float | None) -> tuple[Config, str]:
    """Return the settings with a maximum cost for one question, and the reason why the model is off, or an empty text.

    A given `max_cost` counts as a budget, so it can enable the model. The default `COST_MAX` cannot.
    """
    if max_cost is not None:
        config = replace(config, budget_run=max_cost)
    off = why_off(config)
    if max_cost is None:
        set_up = COST_MAX if config.budget_run is None else min(config.budget_run, COST_MAX)
        config = replace(config, budget_run=set_up)
    return config, off
