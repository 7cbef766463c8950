"""The prompts that Palaver sends to a language model."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Protocol

from ..core.recursion import OWN_PROMPT_MARK
from .render import Renderer

_SYSTEM, _REQUEST = "observe_system", "observe_request"


class Shown(Protocol):
    """What is shown of an exchange: passages with a line, a voice and a text, and how many were left out where."""

    @property
    def passages(self) -> Sequence[object]: ...
    @property
    def gap(self) -> int: ...
    @property
    def left_out(self) -> int: ...


class ExtractionPrompts:
    """Asks what was learned in an exchange. A person's own templates replace ours like any other."""

    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer

    @property
    def version(self) -> str:
        """Another one for every change of a template, so that nobody has to remember to raise it."""
        told = "\0".join(self._renderer.source(name) for name in (_SYSTEM, _REQUEST))
        return sha256(told.encode()).hexdigest()[:8]

    def system(self) -> str:
        """What the model is told each time."""
        return self._renderer.fill(_SYSTEM, mark=OWN_PROMPT_MARK)

    def request(self, shown: Shown, nonce: str, known: Sequence[str]) -> str:
        """One exchange as quoted data. Its text is indented, so that no line of it stands where ours do."""
        return self._renderer.fill(_REQUEST, mark=OWN_PROMPT_MARK, shown=shown, nonce=nonce, known=known)


class JudgingPrompts:
    """Asks how one of two memories stands to the other, for as many pairs as there are."""

    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer

    def system(self) -> str:
        """What the model is told each time."""
        return self._renderer.fill("judge_system", mark=OWN_PROMPT_MARK)

    def request(self, pairs: Sequence[tuple[str, str]], nonce: str) -> str:
        """The pairs as quoted data, the older memory of each first. Their text is indented, as that of exchanges is."""
        return self._renderer.fill("judge_request", mark=OWN_PROMPT_MARK, pairs=pairs, nonce=nonce)
