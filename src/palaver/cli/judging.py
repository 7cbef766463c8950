"""Judge of contradictions between memories: a language model, if one is configured."""

from palaver.archiver.store import Store
from palaver.core.config import Config
from palaver.core.home import Home
from palaver.observe.llm.model_judge import SECONDS, ModelJudge
from palaver.observe.memory import Judge, JudgeFactory
from palaver.templates.prompts import JudgingPrompts
from palaver.templates.render import Renderer

from .provider import provider_of, why_off


def judging(home: Home, config: Config) -> JudgeFactory | None:
    """Return the factory of the model judge; None if it is switched off, or without a key or budget."""
    if not config.llm_judge or why_off(config):
        return None

    def made(store: Store) -> Judge:

        return ModelJudge(store, config, JudgingPrompts(Renderer(home.templates)), provider_of(config, SECONDS))

    return made
