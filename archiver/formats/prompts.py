"""Prompts: what a person asked in one session, told once and taken back by number."""

from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec import Struct, field

from ...core.conversation import Fact, Note
from ..files.lines import Line


class Accounts(Struct):
    """The tellings of an exchange's prompt, in a file that keeps several accounts of what was asked."""

    _told: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])

    def repeats(self, text: str, *, of: str) -> bool:
        """Whether the account `of` has told this already; each of its tellings answers for one repetition."""
        told = (of, " ".join(text.split()))
        if not self._told[told]:
            return False
        self._told[told] -= 1
        return True

    def tell(self, account: str, text: str) -> None:
        """An account tells what was asked."""
        self._told[account, " ".join(text.split())] += 1

    def clear(self) -> None:
        """The exchange ends."""
        self._told.clear()


class Prompts(Struct):
    """The lines on which the person asked something, for agents that count back in prompts."""

    partial: bool = False
    """Whether reading began in the middle of the file, so that there may be earlier ones."""
    _lines: list[int] = field(default_factory=list[int])

    def following(self, lines: Iterable[Line]) -> Iterator[Line]:
        """The lines, on their way to whoever reads them."""
        for count, line in enumerate(lines):
            self.partial = self.partial or (count == 0 and line.number > 1)
            yield line

    def add(self, line: int) -> None:
        """A prompt was typed."""
        self._lines.append(line)

    def take_back(self, line: int, count: int) -> list[Note]:
        """A note of what the person left when they went back `count` prompts; none where that is no number of them."""
        if not 0 < count <= len(self._lines):
            return [Note(line, Fact.REWOUND, "")] if self.partial and count else []
        first = self._lines[-count]
        del self._lines[-count:]
        return [Note(line, Fact.REWOUND, str(first))]
