"""Function that answers questions from past conversations: the Python form of `palaver ask`."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from palaver.agents.ask.loop_limits import LoopLimits
from palaver.agents.ask.question_asker import QuestionAsker
from palaver.core.cited_answer import CitedAnswer
from palaver.core.config import Config
from palaver.core.home import Home, is_read_only_mode
from palaver.core.progress import never, silent
from palaver.core.query import Filters
from palaver.search.archive_search import ArchiveSearch
from palaver.templates.render import Renderer

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
    limits = LoopLimits(max_turns, max_tokens, timeout, max_cost)
    with ArchiveSearch(found, config.model) as archive:
        here = "" if projects else archive.project_at(Path.cwd() if project is None else Path(project).expanduser())
        asker = QuestionAsker(archive, found, config, Renderer(found.templates))
        return asker.ask(question, filters, here, limits, report=report, should_stop=should_stop)
