"""Python equivalent of `palaver ask`: answer a question from past conversations."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from .agents.ask.agent_definition import LoopLimits
from .agents.ask.question_asker import QuestionAsker
from .core.conversation import use_time_zone
from .core.home import Home, is_read_only_mode
from .core.query import Filters
from .core.results import CitedAnswer
from .core.runtime import never, silent
from .observe.archive import Archive
from .templates.render import Renderer

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

    If the settings allow it, the language model of `palaver observe` searches the archive and writes the answer.
    Otherwise, or if the model fails, rules compose the answer. After a failure, `notices` contains the reason.

    Args:
        question: The question.
        home: Folder with the data. The default is `PALAVER_HOME`, or else the data folder of the platform.
        project: Folder of the current project, whose entries rank higher. The default is the working folder.
        projects: Only these projects are searched: names or full paths.
        after: First date, inclusive: `2026-03-01`, or words such as `last month`.
        before: Last date, inclusive.
        max_turns: Maximum number of model calls.
        max_tokens: Maximum tokens that the model reads and writes.
        max_cost: Maximum cost in US dollars. A given cost also enables the model, as a budget in the settings does. The
            default maximum is 0.50, which does not enable the model.
        timeout: Maximum duration in seconds.
        report: Function that is called with one line of text for each step.
        should_stop: Function that returns True to cancel the model. It is called between steps.

    Raises:
        StoreMissing: Nothing is archived.
        InvalidInput: The question or a filter is invalid.
        ConfigInvalid: A setting is invalid, or the price of the model is unknown.
    """
    root = Home.find().root if home is None else Path(home).expanduser().absolute()
    archive = Archive(Home(root, read_only=is_read_only_mode()))
    use_time_zone(archive.config.display_zone)
    filters = Filters.parse(after=after, before=before, projects=projects)
    limits = LoopLimits(max_turns, max_tokens, timeout, max_cost)
    with archive:
        folder = Path.cwd() if project is None else Path(project).expanduser()
        here = "" if projects else archive.search.project_at(folder)
        asker = QuestionAsker(archive, Renderer(archive.home.templates))
        return asker.ask(question, filters, here, limits, report=report, should_stop=should_stop)
