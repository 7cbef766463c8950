"""Parser of statements, which splits a text into sentences or clauses of classified words.

Word lists name the negations, opposites, alternatives, units and function words for the contradiction rules.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct

from ...search.query.tokenizer import stems

NEGATORS = frozenset("not never no none nobody nothing without cannot neither nor avoid".split())

SCOPES = frozenset(
    """all any each every both some most only just more less except unless if when while where during until before after
    outside inside""".split()
)
"""Words that limit a statement to some cases or to part of its subject, such as `unless` or `only`."""

FUNCTION_WORDS = frozenset(
    """a an the this that these those it its they them their we our us you your i my he she is are was were be been
    being am to of in on at by for from with as and or but so than then there here who which what when where while
    if into onto up out off over under about per via do does did done has have had having will would shall should must
    may might can could through against via across within also just only very too all any each every both such own same
    other some more most""".split()
)
"""Function words, which carry grammar and no content."""

AUXILIARIES = frozenset(
    """is are was were be been am do does did has have had will would shall should must may might can could""".split()
)

LIGHT_VERBS = frozenset(
    """use work run need require keep get go goe make want wish like prefer put let hold store call start happen
    write find take give help provide support allow always usually often please time everyth everi build made done
    come serve own lead name handl generat return host log built kept held written stored called based""".split()
)
"""Stems of light verbs, such as `use`, and of other words that do not identify the subject of a statement."""

GENERIC_VERBS = frozenset("use work run go goe happen".split())
"""Stems of general verbs, such as `use`.

A later statement with a verb of change can replace a statement with such a verb: `we use A`, then `we switched to B`.
"""

CHANGE_WORDS = frozenset(
    """now moved migrated switched replaced changed raised lowered increased decreased reduced upgraded downgraded
    renamed rewritten rebuilt relocated removed dropped deprecated retired since anymore formerly previously longer
    stopped updated converted instead gone split ported swapped bumped extended shortened meanwhile became grown grew
    shrunk shrank rose risen fell fallen""".split()
)
"""Words that announce a change."""

PEOPLE = frozenset("user person team we customer everyon peopl compani develop".split())
"""Stems of subjects that can have many properties at the same time, such as `user`."""

SINGLE_OBJECT_VERBS = frozenset("prefer use want need default".split())
"""Stems of verbs that take one object at a time. Other verbs, such as know or visit, take several objects."""

EXCLUSIVE_VERBS = frozenset("owns leads maintains manages heads chairs".split())
"""Verbs that can have only one subject at a time, such as `lead`."""

VALUE_NOUNS = frozenset(
    "port version limit timeout level size max min maximum minimum count python node java ttl year age".split()
)
"""Nouns after which a number is a value. After any other noun, a number is part of a name, as in `bug 101`."""

PRODUCTS = frozenset(
    """php ruby rails django react angular vue kotlin swift postgresql postgres mysql mariadb mongodb redis
    elasticsearch kubernetes debian ubuntu""".split()
)
"""Products. A number after a product is a version, which conflicts only with another version of this product."""

_MEASURES = {
    "time": """ms s sec secs second seconds min mins minute minutes h hour hours day days week weeks month months year
        years milliseconds""",
    "size": "kb mb gb tb kib mib gib bytes kilobytes megabytes gigabytes terabytes",
    "share": "percent",
    "times": "times once twice",
    "text": "characters chars",
    "money": "euros dollars cents",
}
UNITS = {unit: kind for kind, units in _MEASURES.items() for unit in units.split()} | {
    unit: unit for unit in "lines pixels px requests files items entries rows users nodes connections replicas".split()
}
"""Kind of quantity of each unit. Numbers of different kinds never conflict."""

_ONES = "zero one two three four five six seven eight nine".split()
_TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
NUMBERS = (
    {word: str(number) for number, word in enumerate((*_ONES, *_TEENS))}
    | {word: str(number) for number, word in zip(range(20, 100, 10), _TENS, strict=True)}
    | {
        f"{ten}-{word}": str(number + digit)
        for number, ten in zip(range(20, 100, 10), _TENS, strict=True)
        for digit, word in enumerate(_ONES[1:], 1)
    }
    | {"once": "1", "twice": "2", "dozen": "12", "hundred": "100", "thousand": "1000"}
)

PHRASES = (
    ("no longer", "not longer"),
    ("any more|any longer", "anymore"),
    ("by hand", "manually"),
    ("have to", "must"),
    ("has to", "must"),
    ("need not", "not need"),
    ("as of", "since"),
    ("stepped down", "stopped"),
    ("rather than", "instead of"),
    ("turned on", "enabled"),
    ("turned off", "disabled"),
    ("switched on", "enabled"),
    ("switched off", "disabled"),
    ("opt in", "optional"),
    ("local time", "localtime"),
    ("(?:is|are) (not )?(?:allowed|permitted|accepted)", r"may \1"),
    ("(?:is|are) (?:forbidden|prohibited|disallowed)", "may not"),
    ("(?:kept|retained|stored|held|saved) for", "retention"),
    ("expires? after|(?:is|are) valid for", "lasts"),
    ("up to|at most|no more than", "maximum"),
)
"""Regular expressions of phrases and their replacements, applied before the text is split into words."""

OPPOSITES = tuple(
    """
    enabled disabled, enable disable, allow forbid, allowed forbidden, allow deny, allow prohibit, allow block,
    permit forbid, required optional, mandatory optional, before after, first last, long short, verbose concise,
    detailed brief, light dark, on off, public private, automatically manually, automatic manual, love hate,
    like hate, prefer avoid, include exclude, accept reject, safe unsafe, open closed, strict lenient, mutable
    immutable, stateful stateless, online offline, fast slow, small large, big small, true false, eager lazy,
    push pull, upper lower, uppercase lowercase, static dynamic, relative absolute, show hide, keep delete, keep
    remove, start stop, increase decrease, ascending descending, inside outside, above below, internal external,
    with without, success failure, alive dead, paid free, optimistic pessimistic, pinned unpinned, serial
    parallel, valid invalid
    """.replace("\n", " ").split(",")
)
"""Pairs of words with opposite meanings."""

ALTERNATIVES = (
    "postgresql postgres mysql mariadb sqlite mongodb oracle dynamodb cassandra cockroachdb",
    "tab space",
    "single double",
    "yaml toml json ini xml",
    "utc localtime gmt",
    "integer int float decimal string",
    "cent euro dollar",
    "second night hour day week month minute year nightly hourly daily weekly monthly yearly",
    "snake_case camelcase pascalcase kebab-case",
    "python go rust java kotlin typescript javascript ruby php c# swift scala elixir",
    "pip poetry uv pipenv conda npm yarn pnpm bun",
    "pytest unittest nose jest vitest mocha",
    "flake8 ruff pylint eslint biome",
    "black yapf prettier autopep8",
    "vim neovim emacs vscode nano intellij pycharm helix",
    "github gitlab bitbucket codeberg",
    "jenkins circleci travis buildkite",
    "aws gcp azure heroku fly.io vercel netlify",
    "react vue angular svelte solid",
    "redux zustand mobx pinia",
    "flask fastapi django starlette",
    "rest graphql grpc soap",
    "docker podman",
    "kubernetes nomad swarm",
    "rabbitmq kafka sqs nats",
    "redis memcached",
    "merge rebase squash",
    "mit apache gpl bsd",
    "english german french spanish japanese chinese portuguese italian",
    "bash zsh fish powershell",
    "webpack vite rollup esbuild parcel",
    "sphinx mkdocs docusaurus",
    "sentry rollbar bugsnag",
    "slack teams discord mattermost",
    "notion confluence",
    "css sass less tailwind",
    "http https",
    "debug info warning error critical",
)
"""Groups of alternatives. Two words of a group conflict if the statements agree in everything else."""

CATEGORIES = frozenset(
    "databas data store languag framework broker queue format licens system shell cloud provid editor tool".split()
)
"""Stems of category nouns that add nothing to an alternative, as in `the SQLite database`."""


_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=\S)|[\n;]+")
_CLAUSE = re.compile(r",\s+|\s+(?:and|but|so)\s+")
_WORD = re.compile(r"/[\w./-]*\w|\d+(?:[.:]\d+)*%?|[^\W\d_][\w'+#]*(?:[.\-/:]\w+)*")
_NOT = re.compile(r"n't\b")
_NUMBER = re.compile(r"\d+(?:[.:]\d+)*%?")
_CODE = re.compile(r".*[\d/_].*|.*[a-z][A-Z].*|[A-Z]{2,}")
_LETTERS = re.compile(r"[^\W\d_]+")
_PREFIXES = ("un", "in", "dis", "non", "im", "ir", "a", "non-")
SENTENCES_MAX = 40
"""Maximum number of sentences of a memory that are compared. Further sentences are ignored."""


class Word(Struct, frozen=True):
    """Content word at a position in its statement.

    `light` marks a light verb, such as `use`, which does not identify a subject. `value` marks a number, name or path,
    which another value can replace. A version can be replaced only by a version of the same `product`, and a number
    only by a number of the same `unit`.
    """

    stem: str
    text: str
    light: bool
    number: bool
    value: bool
    product: str = ""
    unit: str = ""
    position: int = 0


class ParsedStatement(Struct, frozen=True):
    """Sentence or clause.

    `words` are its content words, `tokens` all its words in lower case, and `changes` the words that announce a change.
    """

    words: tuple[Word, ...]
    tokens: tuple[str, ...]
    negated: bool
    changes: frozenset[str]

    @property
    def stems(self) -> frozenset[str]:
        """Stems of all content words except light verbs."""
        return frozenset(word.stem for word in self.words if not word.light)


@lru_cache(maxsize=512)
def sentences(content: str) -> tuple[ParsedStatement, ...]:
    """Return the sentences of a text."""
    parts = [part for part in _SENTENCE.split(content) if part.strip()]
    return tuple(parsed for part in parts[:SENTENCES_MAX] if (parsed := _parse(part)).words)


@lru_cache(maxsize=512)
def clauses(content: str) -> tuple[ParsedStatement, ...]:
    """Return the clauses of the sentences of a text."""
    parts = [clause for part in _SENTENCE.split(content)[:SENTENCES_MAX] for clause in _CLAUSE.split(part)]
    return tuple(parsed for part in parts if (parsed := _parse(part)).words)


@lru_cache(maxsize=512)
def whole(content: str) -> ParsedStatement:
    """Return all words of a text as one statement."""
    return _parse(content)


def normalized(text: str) -> str:
    """Return the text with contractions and fixed phrases replaced."""
    plain = _NOT.sub(" not", text.replace("’", "'").replace("can't", "cannot").replace("won't", "will not"))
    for phrase, replacement in PHRASES:
        plain = re.sub(rf"\b(?:{phrase})\b", replacement, plain, flags=re.IGNORECASE)
    return plain


def are_opposites(first: Word, second: Word) -> bool:
    """Return whether two words are opposites, according to the word list or a prefix such as `un`."""
    if first.stem != second.stem and _share_group(first, second, _OPPOSITES):
        return True
    short, long = sorted((first.stem, second.stem), key=len)
    return len(short) > 3 and long.endswith(short) and long[: -len(short)] in _PREFIXES


def are_alternatives(first: Word, second: Word) -> bool:
    """Return whether two words are alternatives of one kind, such as two databases."""
    return _share_group(first, second, _ALTERNATIVES)


def are_values(first: Word, second: Word) -> bool:
    """Return whether two words are values of the same kind: two numbers without conflicting units, or two names."""
    same_unit = first.unit == second.unit or not (first.unit and second.unit)
    return (
        first.value and second.value and same_unit and (first.number, first.product) == (second.number, second.product)
    )


@lru_cache(maxsize=4_096)
def stem_of(word: str) -> str:
    """Return the English stem of a word. A word with characters other than letters stays unchanged."""
    if not _LETTERS.fullmatch(word):
        return word
    [stem] = stems(word) or [word]
    return stem


def _parse(text: str) -> ParsedStatement:
    words = _WORD.findall(normalized(text))
    tokens = tuple(word.lower().removesuffix("'s") for word in words)
    negated = sum(word in NEGATORS for word in tokens) % 2 == 1
    return ParsedStatement(tuple(_words(words, tokens)), tokens, negated, CHANGE_WORDS.intersection(tokens))


def _words(words: list[str], tokens: tuple[str, ...]) -> Iterator[Word]:
    for position, (text, token) in enumerate(zip(words, tokens, strict=True)):
        if (
            token in NEGATORS
            or token in CHANGE_WORDS
            or (token in FUNCTION_WORDS and not _is_capitalized(text, position))
        ):
            continue
        word = NUMBERS.get(token, token)
        before = tokens[position - 1] if position else ""
        after = tokens[position + 1] if position + 1 < len(tokens) else ""
        if _NUMBER.fullmatch(word):
            yield _number(text, word, before, after, position)
        elif word in UNITS and position and _NUMBER.fullmatch(NUMBERS.get(before, before)):
            continue
        else:
            stem, named = stem_of(word), bool(_CODE.fullmatch(text)) or (position > 0 and text[:1].isupper())
            yield Word(stem, text, light=stem in LIGHT_VERBS, number=False, value=named, position=position)


def _number(text: str, word: str, before: str, after: str, position: int) -> Word:
    named = _LETTERS.fullmatch(before) and before not in FUNCTION_WORDS | CHANGE_WORDS | VALUE_NOUNS | PRODUCTS
    value = after in UNITS or not named or stem_of(before) in LIGHT_VERBS
    stem = f"{word} {after.rstrip('s') if after in UNITS else ''}".strip() if value else f"{before} {word}"
    unit = "share" if text.endswith("%") else UNITS.get(text.lower()) or UNITS.get(after, "")
    product = before if before in PRODUCTS else ""
    return Word(stem, text, light=False, number=value, value=value, product=product, unit=unit, position=position)


def _is_capitalized(text: str, position: int) -> bool:
    """Return whether a function word is capitalized because it is a name, as `US` or as `A` in `customer A`."""
    return text.isupper() and text != "I" and (len(text) > 1 or position > 0)


def _share_group(first: Word, second: Word, groups: Mapping[str, frozenset[int]]) -> bool:
    return not groups.get(first.stem, frozenset()).isdisjoint(groups.get(second.stem, ()))


def _groups_of(groups: Sequence[str]) -> dict[str, frozenset[int]]:
    """Return, for each stem, the indices of the groups that contain it."""
    groups_of: defaultdict[str, set[int]] = defaultdict(set)
    for number, group in enumerate(groups):
        for word in group.split():
            groups_of[stem_of(word)].add(number)
    return {stem: frozenset(numbers) for stem, numbers in groups_of.items()}


_OPPOSITES, _ALTERNATIVES = _groups_of(OPPOSITES), _groups_of(ALTERNATIVES)
