"""Who says whether two memories disagree: rules, and a language model where a person configured one."""

from palaver.archiver.store import Store
from palaver.core.config import Config
from palaver.core.home import Home
from palaver.observe.llm.model_judge import SECONDS, ModelJudge
from palaver.observe.memory import Judge, JudgeFactory
from palaver.templates.prompts import JudgingPrompts
from palaver.templates.render import Renderer

from .provider import provider_of, why_off


def judging(home: Home, config: Config) -> JudgeFactory | None:
    """What makes the judge that asks a model; None while that is not wanted, or there is no key or budget for it."""
    if not config.llm_judge or why_off(config):
        return None

    def made(store: Store) -> Judge:

        return ModelJudge(store, config, JudgingPrompts(Renderer(home.templates)), provider_of(config, SECONDS))

    return made
