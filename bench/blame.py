"""Measure `palaver blame` in repositories whose lines have a known author: `python -m bench.blame [--seed N]`.

Agents and people write about 1,000 lines in each repository. A line keeps its author when somebody moves, indents or
reformats it. Half of the lines occur in many places, as `return None` does.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tests.observe.traces.working import Working

from .table import table

PEOPLE: Final = ""
"""Author of the lines that no agent wrote."""
_COMMON: Final = (
    "return None", "else:", "try:", "import os", "import sys", "continue", "pass", "return result", "self.close()",
    "if not rows:", "raise ValueError(name)", "def main():", ")", "}", "],", "with self._lock:", "break",
)  # fmt: skip
_WORDS: Final = "order price user invoice cart total index name stock row page token batch queue cache".split()


class Line(NamedTuple):
    """Line of a file with its author: a session, or `PEOPLE`."""

    text: str
    author: str


class Project:
    """Repository with its true authors."""

    def __init__(self, root: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.working = Working(root)
        self.files: dict[str, list[Line]] = {}

    def block(self, author: str, count: int) -> list[Line]:
        """Return new lines of an author."""
        return [Line(self._text(), author) for _ in range(count)]

    def _text(self) -> str:
        indent = "    " * self.random.randrange(3)
        if self.random.random() < 0.5:
            return indent + self.random.choice(_COMMON)
        left, right, verb = (self.random.choice(_WORDS) for _ in range(3))
        return f"{indent}{left}_{right} = {verb}({right}, {self.random.randrange(1000)})"

    def insert(self, author: str, name: str, count: int) -> None:
        """Insert new lines at a random place of a file."""
        lines = self.files.get(name, [])
        at = self.random.randrange(len(lines) + 1)
        self.save(author, name, [*lines[:at], *self.block(author, count), *lines[at:]])

    def delete(self, author: str, name: str, count: int) -> None:
        """Delete consecutive lines of a file."""
        at = self.random.randrange(max(1, len(self.files[name]) - count))
        self.save(author, name, [*self.files[name][:at], *self.files[name][at + count :]])

    def save(self, author: str, name: str, lines: Sequence[Line]) -> None:
        """Write a file as its author does: agents by an edit or as a whole, people without a trace."""
        text = "".join(f"{line.text}\n" for line in lines)
        old = "".join(f"{line.text}\n" for line in self.files.get(name, []))
        self.files[name] = [*lines]
        if author == PEOPLE:
            self.working.later()
            self.working.type(name, text)
        elif old:
            self.working.edit(author, name, old, text)
        else:
            self.working.write(author, name, text)

    def score(self) -> "Score":
        """Compare the authors that blame finds with the true ones. Empty lines do not count."""
        score = Score()
        with self.working.traces() as traces:
            for name, lines in self.files.items():
                path, seconds = self.working.repository / name, time.process_time()
                blocks = traces.blame(path).blocks
                score.seconds += time.process_time() - seconds
                sessions = [block.session for block in blocks for _ in range(block.lines[0], block.lines[1] + 1)]
                for line, session in zip(lines, sessions, strict=True):
                    score.add(line.author, session)
        return score


class Score:
    """Counts of lines by result."""

    def __init__(self) -> None:
        self.lines = self.written = self.credited = self.right = 0
        self.seconds = 0.0

    def add(self, author: str, session: str) -> None:
        """Count a line."""
        self.lines += 1
        self.written += author != PEOPLE
        self.credited += session != ""
        self.right += session != "" and session == author

    def row(self, name: str) -> tuple[str, ...]:
        """Return the row of the table."""
        precision, recall = self.right / max(1, self.credited), self.right / max(1, self.written)
        cost = 1_000_000 * self.seconds / max(1, self.lines)
        return name, str(self.lines), str(self.written), f"{precision:.3f}", f"{recall:.3f}", f"{cost:.0f}"


def _separate(project: Project) -> None:
    """Agents and people commit alternately."""
    for step in range(36):
        author = PEOPLE if step % 3 == 0 else f"s{step % 2}"
        project.insert(author, "app.py", 30)
        if step % 5 == 4:
            project.delete(author, "app.py", 10)
        project.working.commit()


def _mixed(project: Project) -> None:
    """A commit contains the edits of an agent and of a person."""
    for step in range(18):
        project.insert(f"s{step % 3}", "app.py", 30)
        project.insert(PEOPLE, "app.py", 25)
        project.working.commit()


def _moved(project: Project) -> None:
    """People move blocks within a file and to another file."""
    _separate(project)
    for step in range(8):
        lines = project.files["app.py"]
        at = project.random.randrange(len(lines) - 40)
        block, rest = lines[at : at + 40], [*lines[:at], *lines[at + 40 :]]
        if step % 2:
            project.save(PEOPLE, "app.py", rest)
            project.save(PEOPLE, "lib.py", [*project.files.get("lib.py", []), *block])
        else:
            place = project.random.randrange(len(rest))
            project.save(PEOPLE, "app.py", [*rest[:place], *block, *rest[place:]])
        project.working.commit()


def _squashed(project: Project) -> None:
    """Branches of many commits become one commit each."""
    project.insert(PEOPLE, "app.py", 100)
    project.working.commit()
    for branch in range(6):
        project.working.git("checkout", "--quiet", "-b", f"b{branch}")
        for step in range(6):
            project.insert(PEOPLE if step == 2 else f"s{branch}", "app.py", 25)
            project.working.commit()
        project.working.git("checkout", "--quiet", "main")
        project.working.git("merge", "--quiet", "--squash", f"b{branch}")
        project.working.commit()


def _reformatted(project: Project) -> None:
    """A person indents and reformats what agents and people wrote."""
    _separate(project)
    lines = [Line(line.text.replace("(", "( ").replace(")", " )"), line.author) for line in project.files["app.py"]]
    project.save(PEOPLE, "app.py", lines)
    project.working.commit()
    lines = [Line(f"    {line.text}", line.author) for line in project.files["app.py"]]
    project.save(PEOPLE, "app.py", lines)
    project.working.commit()


def _rebased(project: Project) -> None:
    """A branch is rebased days later, so that all its commits get new dates."""
    project.insert(PEOPLE, "app.py", 100)
    project.working.commit()
    project.working.git("checkout", "--quiet", "-b", "feature")
    for step in range(30):
        project.insert(PEOPLE if step % 4 == 0 else f"s{step % 3}", "app.py", 30)
        project.working.commit()
    project.working.git("checkout", "--quiet", "main")
    project.save(PEOPLE, "notes.py", project.block(PEOPLE, 20))
    project.working.commit()
    project.working.at += 3 * 24 * 3_600_000
    project.working.git("checkout", "--quiet", "feature")
    project.working.git("rebase", "--quiet", "main")


def _merged(project: Project) -> None:
    """Branches are merged, a lock file is generated by a command, and a person raises its versions."""
    project.insert("s0", "app.py", 100)
    project.working.commit()
    for branch in range(8):
        project.working.git("checkout", "--quiet", "-b", f"b{branch}")
        name = f"part{branch % 2}.py"
        for step in range(4):
            project.insert(PEOPLE if step % 2 else f"s{branch % 3}", name, 20)
            project.working.commit()
        project.working.git("checkout", "--quiet", "main")
        project.insert(PEOPLE, "app.py", 10)
        project.working.commit()
        project.working.git("merge", "--quiet", "--no-edit", f"b{branch}")
    lock = [Line(f'"{word}-{number}": "1.{number}.0",', PEOPLE) for number in range(10) for word in _WORDS]
    project.save(PEOPLE, "app.lock", lock)
    project.insert("s1", "app.py", 20)
    project.working.commit()
    project.save(PEOPLE, "app.lock", [line._replace(text=line.text.replace(".0", ".1")) for line in lock])
    project.working.commit()


HISTORIES: Final[dict[str, Callable[[Project], None]]] = {
    "separate commits": _separate,
    "mixed commits": _mixed,
    "moved": _moved,
    "squashed": _squashed,
    "reformatted": _reformatted,
    "rebased": _rebased,
    "merged": _merged,
}
"""Ways in which the lines of a repository come about, by name."""


def measure(name: str, seed: int) -> Score:
    """Make a repository, and return the score of its blame."""
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder), seed)
        HISTORIES[name](project)
        return project.score()


def main(arguments: Sequence[str] | None = None) -> None:
    """Print precision, recall and time for each repository."""
    parser = argparse.ArgumentParser(prog="python -m bench.blame", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    seed = parser.parse_args(arguments).seed
    heads = ["repository", "lines", "by agents", "precision", "recall", "CPU ms for 1,000 lines"]
    sys.stdout.write(table(heads, [measure(name, seed).row(name) for name in HISTORIES]) + "\n")


if __name__ == "__main__":
    main()
