"""Tokenizer that converts text into terms for index and queries, and checks of agent and project names.

User text is only tokenized and never parsed as a query language, because deep nesting can crash Tantivy's parser. For
an unknown agent or project, similar names are suggested.
"""

import posixpath
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path, PurePath
from typing import Final

import tantivy

from ...archiver.store import Store
from ...core.agent_names import AGENTS
from ...core.errors import InvalidInput, UnknownProject
from ...core.home import main_worktree, root_of, working_folders
from ...core.memory import PROJECT, MemoryFilter, project_namespace
from ...core.text import nfc, readable, similar_names

VERSION = 6
"""Version of the tokenizer and of the indexed texts. Increment it with each change to rebuild all indexes."""

PROSE = "prose"
_STEM = "english"
_LONGEST = 80
"""Maximum number of characters of an indexed word. Longer words rarely repeat and are not cached."""
_KEPT = 1 << 16
"""Maximum number of words whose parts are cached, and of paths whose labels are cached."""
_SHORT, _TEXTS = 1_000, 2_048
"""Maximum number of characters of a text whose terms are cached, and maximum number of cached texts."""

_IDEOGRAPHS = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0002fa1f"
_PICTOGRAPHS = r"\u2600-\u27bf\U0001f000-\U0001faff"
_HUMP = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_MIXED = re.compile(r"(?<![A-Za-z0-9])(?=[A-Za-z0-9]*?(?:[a-z][A-Z]|[A-Z]{2}[a-z]))[A-Za-z0-9]++")
_SNAKE = re.compile(r"(?<![A-Za-z0-9_])[A-Za-z0-9]++(?:_[A-Za-z0-9]++)+")
_LATIN = bytes(range(256)).decode("latin-1")
_CLASSES = re.sub(r"\s", " ", re.sub("[A-Z]", "A", re.sub("[a-z]", "a", _LATIN))).encode("latin-1")
"""Translation table of Latin-1 to character classes: `a` and `A` for ASCII letters, and a space for whitespace."""
_COMPOUND = (b"aA", b"AAa", b"_")
"""Character-class patterns of the words that the regular expressions `_MIXED` and `_SNAKE` may match."""


def analyzer() -> tantivy.TextAnalyzer:
    """Return an analyzer that lower-cases, removes accents, stems English words and drops words over 80 characters."""
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    for step in (
        tantivy.Filter.remove_long(_LONGEST),
        tantivy.Filter.lowercase(),
        tantivy.Filter.ascii_fold(),
        tantivy.Filter.stemmer(_STEM),
    ):
        builder = builder.filter(step)
    return builder.build()


_ANALYZER = analyzer()


def stems(text: str) -> list[str]:
    """Return the stemmed terms of a text in order. To split compound names, pass the result of `expand`."""
    return _ANALYZER.analyze(text)


def terms(text: str) -> tuple[str, ...]:
    """Return the distinct terms of a query or word."""
    return _cached_terms(text) if len(text) <= _SHORT else _terms(text)


def _terms(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(stems(expand(text))))


_cached_terms = lru_cache(_TEXTS)(_terms)


def expand(text: str) -> str:
    """Return a text with additional words, so that Tantivy indexes compound names, CJK text and emoji.

    The parts of CamelCase names (`parse` and `Args`) and the joined form of snake_case names (`parseargs`) are
    appended. CJK text is split into pairs of characters, and emoji become words.
    """
    text = spaced(text)
    extra = " ".join(_names(text))
    return f"{text}\n{extra}" if extra else text


def spaced(text: str) -> str:
    """Return a text in which CJK runs become pairs of characters and emoji become words."""
    text = composed(text)
    return text if text.isascii() or not _wide().search(text) else _wide_runs().sub(_words, text)


def composed(text: str) -> str:
    """Return a text in Unicode normalization form NFKC."""
    return text if text.isascii() else unicodedata.normalize("NFKC", readable(text))


def literal_pattern(phrase: str) -> re.Pattern[str]:
    """Return a pattern that matches a quoted phrase in `composed` text.

    The pattern ignores case, accepts any whitespace and matches whole words only.
    """
    letter = rf"[^\W_{_IDEOGRAPHS}]"
    said = r"\s+".join(map(re.escape, composed(phrase).split()))
    # Users type straight apostrophes, but texts can contain curly ones.
    said = re.sub("['’]", "['’]", said)
    # Only the phrase ignores case: compiling case-insensitive character ranges would take 10 ms.
    return re.compile(rf"(?<!{letter}(?={letter}))(?i:{said})(?!(?<={letter}){letter})")


@cache
def _wide() -> re.Pattern[str]:
    """Return a pattern for CJK characters and emoji, which Tantivy does not tokenize. Compiling it takes 3 ms."""
    return re.compile(f"[{_IDEOGRAPHS}{_PICTOGRAPHS}]")


@cache
def _wide_runs() -> re.Pattern[str]:
    return re.compile(f"[{_IDEOGRAPHS}]+|([{_PICTOGRAPHS}])")


def _words(run: re.Match[str]) -> str:
    words = [f"u{ord(run[1]):x}"] if run[1] else pairs(run[0])
    return f" {' '.join(words)} "


def forms(terms: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that matches words that may have any of these terms as their stem.

    The pattern matches every word that begins with a term. The caller must stem each match and compare it exactly.
    """
    stemmed = list(terms)
    begun = "|".join(re.escape(term.removesuffix("i")) for term in stemmed if term.isascii())
    plain = [re.escape(term) for term in stemmed if not term.isascii()]
    return re.compile("|".join([rf"\b(?:{begun})\w*"] * bool(begun) + plain), re.IGNORECASE)


def pairs(run: str) -> list[str]:
    """Return the overlapping pairs of adjacent characters. A single character is returned as is."""
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


def label(value: str) -> str:
    """Return a type, concept or project as the index stores it: in lower case, without surrounding spaces."""
    return nfc(readable(value)).strip().lower().rstrip("/")


def project_labels(names: Iterable[str]) -> Iterator[str]:
    """Yield both labels of each project: its name, stored for sessions, and its namespace, stored for memories."""
    for name in names:
        yield label(name)
        bare = name.removeprefix(PROJECT)
        if "/" not in bare and (namespace := project_namespace(bare)) != "global":
            yield from (label(bare), label(namespace))


@lru_cache(_KEPT)
def path_label(path: str, folder: str = "") -> str:
    """Return a path as stored in the index: its names in reverse order, so that a prefix finds the end of a path.

    For example, `/src/app.py` becomes `app.py/src/`. A relative path is resolved against `folder`. The label of an
    absolute path ends with a slash.
    """
    plain = posixpath.normpath(posixpath.join(*(label(part).replace("\\", "/") for part in (folder, path))))
    return "/".join(reversed(plain.split("/")))


def _names(text: str) -> Iterator[str]:
    """Yield the parts of CamelCase names and the joined form of snake_case names, once per distinct word."""
    words = dict.fromkeys(_compounds(text))
    return filter(None, (_cached_parts(word) if len(word) <= _LONGEST else _parts(word) for word in words))


def _compounds(text: str) -> list[str]:
    """Return the words that match a pattern of `_COMPOUND`, in order. Only these words can contain compound names."""
    classes = f"{text} ".encode("latin-1", "replace").translate(_CLASSES)
    words: dict[int, str] = {}
    for pattern in _COMPOUND:
        at = classes.find(pattern)
        while at >= 0:
            start, end = classes.rfind(b" ", 0, at) + 1, classes.find(b" ", at)
            words[start] = text[start:end]
            at = classes.find(pattern, end)
    return [words[start] for start in sorted(words)]


def _parts(word: str) -> str:
    parts = [] if word.islower() else [part for name in _MIXED.findall(word) for part in _HUMP.findall(name)]
    joined = [name.replace("_", "") for name in _SNAKE.findall(word)] if "_" in word else []
    return " ".join(parts + joined)


_cached_parts = lru_cache(_KEPT)(_parts)


_AGENT_SIMILARITY: Final = 50
"""Minimum similarity of a suggested name, 0 to 100."""


def check_agents(names: Sequence[str], archived: Iterable[str]) -> None:
    """Check that each name is that of a supported agent, or of an agent with entries.

    Raises:
        InvalidInput: A name belongs to no such agent. The hint names the most similar agent.
    """
    agents = dict.fromkeys((*AGENTS, *archived))
    for name in names:
        if label(name) not in agents:
            similar = [agent for agent in agents if label(name) in agent]
            similar = similar or similar_names(label(name), agents, least=_AGENT_SIMILARITY)
            question = f"Did you mean {' or '.join(similar)}? " if similar else ""
            raise InvalidInput(f"Unknown agent: {name}", hint=f"{question}Use one of: {', '.join(agents)}.")


_NEAREST: Final = 3
"""Maximum number of names to suggest. If at most this many names exist, all of them are suggested."""
_PROJECT_SIMILARITY: Final = 60
"""Minimum similarity of a suggested name, 0 to 100."""


def check_projects(store: Store, names: Sequence[str]) -> None:
    """Check that each project, given by name or folder, has a session, a memory or a document.

    Raises:
        UnknownProject: A project has none of them.
    """
    for name in names:
        if not _is_known(store, name):
            raise unknown_project(store, name)


def project_at(store: Store, folder: Path) -> str:
    """Return the project filter for the sessions of a folder, or an empty string if the folder has none.

    The filter is the full path if a session ran in the folder, or else the folder name if a project has this name.
    """
    places, main_folder = store.sessions.projects(), _in_main_worktree(folder.resolve())
    if any(
        PurePath(working_folder).is_relative_to(main_folder)
        for _, cwd in places
        for working_folder in working_folders(cwd)
    ):
        return str(main_folder)
    return main_folder.name if main_folder.name in {project for project, _ in places} else ""


def _in_main_worktree(folder: Path) -> PurePath:
    """Return the same folder in the main worktree of its repository, in Unicode normalization form C."""
    root = root_of(folder)
    below = folder.relative_to(root) if folder.is_relative_to(root) else ""
    return PurePath(nfc(str(main_worktree(root) / below)))


def unknown_project(store: Store, name: str) -> UnknownProject:
    """Return the error for an unknown project, with the most similar names."""
    plain = (PurePath(name).name or name).removeprefix(PROJECT).lower()
    projects = sorted(
        {project.removeprefix(PROJECT) for project in _project_names(store) if project not in {"", "global", "default"}}
    )
    spelled = {project.lower(): project for project in projects}
    containing = [project for project in spelled if plain and (plain in project or project in plain)]
    similar = similar_names(plain, spelled, least=_PROJECT_SIMILARITY, limit=_NEAREST)
    few = spelled if len(projects) <= _NEAREST else ()
    suggestions = list(dict.fromkeys([*similar, *sorted(containing, key=len), *few]))
    return UnknownProject(name, [spelled[project] for project in suggestions[:_NEAREST]])


def _is_known(store: Store, name: str) -> bool:
    """Return whether a project has a session, a memory or a document.

    For a folder, memories and documents of its namespace count too.
    """
    labels = {place_label for place_label in project_labels([name]) if place_label}
    if name.startswith("/") and (namespace := store.projects.of_archived(Path(name))) != "global":
        labels.add(label(namespace))
    return any(
        place_label in labels or any(place_label.startswith(f"{folder}/") for folder in labels)
        for place_label in map(label, _places(store))
        if place_label
    )


def _places(store: Store) -> Iterator[str]:
    """Yield the names, namespaces and folders of all projects. Forgotten memories are ignored."""
    for project, cwd in store.sessions.projects():
        yield from (project, *working_folders(cwd))
    for column in ("namespace", "project"):
        yield from store.memories.count_by(column, MemoryFilter())
    yield from store.documents.count_by("namespace")


def _project_names(store: Store) -> Iterator[str]:
    """Yield the names and namespaces of all projects."""
    for project, _ in store.sessions.projects():
        yield project
    yield from store.memories.count_by("namespace", MemoryFilter())
    yield from store.documents.count_by("namespace")
