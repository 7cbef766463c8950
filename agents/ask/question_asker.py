"""Answers to questions, written by the configured language model or else composed by rules."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ...archiver.store import Store
from ...core.cited_answer import CitedAnswer
from ...core.config import Config
from ...core.home import Home
from ...core.progress import never, silent
from ...core.query import Filters
from ...observe.llm.configured_model import provider_of, why_off
from ...observe.llm.tool_turn import ToolProvider
from ...templates.render import Renderer
from .dispatcher import Dispatcher
from .extractive_answer import extractive_answer
from .loop_limits import LoopLimits

if TYPE_CHECKING:
    from ...search.archive_search import ArchiveSearch

COST_MAX: Final = 0.50
"""Default maximum cost of a question in US dollars."""


class QuestionAsker:
    """Service that answers questions from an open archive.

    `page` is the renderer that counts the tokens of each answer.
    """

    def __init__(self, archive: "ArchiveSearch", home: Home, config: Config, page: Renderer) -> None:
        self._archive, self._home, self._config, self._page = archive, home, config, page

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
        rules = partial(extractive_answer, self._archive, self._page, question, filters, here, also=also)
        config, off = _within_cost(self._config, limits.cost)
        if self._home.is_read_only:  # The ledger of costs cannot be written.
            off = "the archive is read-only"
        elif off and limits.cost is None:
            return rules()
        if off:
            answer = rules()
            notices = (*answer.notices, f"No language model was used: {off}.")
            return self._page.with_answer_tokens(replace(answer, notices=notices))

        def open_provider(seconds: float) -> ToolProvider:
            return provider_of(config, seconds)()

        with Store.of(self._home) as store:
            dispatcher = Dispatcher(self._archive, store, self._home, config, open_provider, limits, self._page)
            return dispatcher.answer(question, rules, filters, here, report=report, should_stop=should_stop)


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
