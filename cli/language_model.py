"""Language model that judges contradictions of memories."""

from typing import TYPE_CHECKING

from ..core.config import Config
from ..core.home import Home
from ..templates.render import JudgingPrompts, Renderer

if TYPE_CHECKING:
    from ..archiver.store import Store
    from ..observe.memory import Judge, JudgeFactory


def judge_factory(home: Home, config: Config) -> "JudgeFactory | None":
    """Return the factory of the model judge. Return None if the model is turned off, or has no key or budget."""
    if not config.llm_judge:
        return None
    # Few users turn the judge on, and these imports load the memories and all providers.
    from ..observe.llm.configured_model import provider_of, why_off
    from ..observe.llm.model_judge import SECONDS, ModelJudge

    if why_off(config):
        return None

    def make_judge(store: "Store") -> "Judge":
        return ModelJudge(store, config, JudgingPrompts(Renderer(home.templates)), provider_of(config, SECONDS))

    return make_judge
