"""Language model that judges contradictions of memories."""

from typing import TYPE_CHECKING

from palaver.core.config import Config
from palaver.core.home import Home
from palaver.templates.prompts import JudgingPrompts
from palaver.templates.render import Renderer

if TYPE_CHECKING:
    from palaver.archiver.store import Store
    from palaver.observe.memory import Judge, JudgeFactory


def judge_factory(home: Home, config: Config) -> "JudgeFactory | None":
    """Return the factory of the model judge. Return None if the model is turned off, or has no key or budget."""
    if not config.llm_judge:
        return None
    # Few users turn the judge on, and these imports load the memories and all providers.
    from palaver.observe.llm.configured_model import provider_of, why_off
    from palaver.observe.llm.model_judge import SECONDS, ModelJudge

    if why_off(config):
        return None

    def make_judge(store: "Store") -> "Judge":
        return ModelJudge(store, config, JudgingPrompts(Renderer(home.templates)), provider_of(config, SECONDS))

    return make_judge
