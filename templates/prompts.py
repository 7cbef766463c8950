"""Prompts that Palaver sends to a language model."""

from collections.abc import Sequence
from hashlib import sha256

from ..core.clock import now
from ..core.recursion import OWN_PROMPT_MARK
from ..core.text import readable
from .render import Renderer


class ExtractionPrompts:
    """Prompts that request the observations of an exchange, or the card of a session. Users can replace the templates.

    The names of the templates begin with `name`, as in `observe_system`.
    """

    def __init__(self, renderer: Renderer, name: str = "observe") -> None:
        self._renderer, self._system, self._request = renderer, f"{name}_system", f"{name}_request"

    @property
    def of_sessions(self) -> "ExtractionPrompts":
        """Prompts that request the card of a session."""
        return ExtractionPrompts(self._renderer, "session")

    @property
    def version(self) -> str:
        """Version of the prompts, which changes with every change of a template."""
        sources = "\0".join(self._renderer.source(name) for name in (self._system, self._request))
        return sha256(sources.encode()).hexdigest()[:8]

    def system(self) -> str:
        """Return the system prompt: the rules for the extraction and the format of the reply."""
        return self._renderer.fill(self._system, mark=OWN_PROMPT_MARK)

    def request(self, excerpt: object, nonce: str, known: Sequence[str] = (), before: str = "") -> str:
        """Return the prompt that quotes an excerpt as data. The quoted texts are indented."""
        values = {"shown": excerpt, "nonce": nonce, "known": known, "before": before}
        return self._renderer.fill(self._request, mark=OWN_PROMPT_MARK, **values)


class JudgingPrompts:
    """Prompts that ask a model how the two memories of each pair are related."""

    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer

    def system(self) -> str:
        """Return the system prompt: the possible relations and the format of the reply."""
        return self._renderer.fill("judge_system", mark=OWN_PROMPT_MARK)

    def request(self, pairs: Sequence[tuple[str, str]], nonce: str) -> str:
        """Return the prompt that quotes pairs of memories as data, the older memory of each pair first."""
        return self._renderer.fill("judge_request", mark=OWN_PROMPT_MARK, pairs=pairs, nonce=nonce)


class QuestionPrompts:
    """Prompts of a model that answers a question with tools. `instructions` come from the search agent."""

    def __init__(self, renderer: Renderer, instructions: str) -> None:
        self._renderer, self._instructions = renderer, instructions

    def system(self) -> str:
        """Return the system prompt: the agent's instructions, marked as a prompt of Palaver."""
        return f"{OWN_PROMPT_MARK}\n{self._instructions}\n"

    def request(self, question: str, here: str, evidence: Sequence[str]) -> str:
        """Return the first prompt: the question, the current project and the first results of the tools."""
        values = {"question": readable(question), "here": here, "evidence": evidence, "now": now()}
        return self._renderer.fill("question_request", mark=OWN_PROMPT_MARK, **values)
