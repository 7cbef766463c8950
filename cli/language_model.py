"""Language model that judges contradictions of memories."""

from typing import TYPE_CHECKING

from ..templates.render import Renderer

if TYPE_CHECKING:
    from ..archiver.store import Store
    from ..observe.archive import Archive
    from ..observe.memory import Judge, JudgeFactory


def judge_factory(archive: "Archive") -> "JudgeFactory | None":
    """Return the factory of the model judge. Return None if the model is turned off, or has no key or budget."""
    config, templates = archive.config, archive.home.templates
    if not config.llm_judge:
        return None
    # Few users turn the judge on, and these imports load the memories and all providers.
    from ..observe.llm.model_judge import SECONDS, ModelJudge
    from ..observe.llm.model_settings import provider_of, why_off

    if why_off(config):
        return None

    def make_judge(store: "Store") -> "Judge":
        return ModelJudge(store, config, Renderer(templates).prompts("judge"), provider_of(config, SECONDS))

    return make_judge
