"""What was asked: the person's own words, freed of pasted logs and code, or the plan they handed over."""

import re

from msgspec import Struct

from ...archiver.files.clipping import heading_of, plan_in
from ...core.conversation import Exchange, Kind, Speaker, Turn
from .phrases import anywhere, opening
from .statements import Statement, proven, quote_of, statements
from .wording import clip, headline, plain
from .worth import NAMED

REQUEST_MAX = 420
_WHOLE_MAX = 1_500

_TITLE_LABEL = re.compile(r"(?:implementation |the )?plan\s*[:—–-]\s*", re.IGNORECASE)
_REASONS = re.compile(
    r"""^\#{2,4}\s+(?:\d+\.\s*)?(?:context|contexte|problem|background|goal|overview|summary|objective|why|motivation
    |root\ cause)\b""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_IMAGE = re.compile(
    r"'/[^'\n]+\.(?:png|jpe?g|gif|webp)'|\[(?:Image|Pasted text|(?:image|application|text|video)/)[^\]\n]{0,80}\]"
    r"|\[[^\]\n]{0,120}\.(?:png|jpe?g|gif|webp)[^\]\n]{0,80}\]"
)
_LOG = re.compile(
    r"""\s*(?:\[[^\]\n]{1,60}\]|\d{4}-\d\d-\d\d[T ]\d\d|\d\d:\d\d:\d\d|at\ \S+\ ?\(|at\ \S+\s*$|at\ \S+:\d+
    |\S+\.\w{1,4}:\d+(?::\d+)?\b|[$>❯➜]\s|File\ "|Traceback\ |[✓✗×⎿│├└])|.*\S{120}|\([^)]*\)\s*$""",
    re.VERBOSE,
)
_INLINE_LOG = re.compile(r"\s*(?:\[\d\d:\d\d|\[[A-Z]\w{3,20}\] |\bat \S+ \().*")
_ROUTINE = frozenset(
    "a again ahead all and as assistant can change changelog changelogmd changes clear comit commi commit continue do"
    " done everything exit file files finish fine go good great hello help hi hpush it its just keep lgtm message md"
    " merge my nice no now ok okay on open perfect please pls pr proceed pull push pushed quit ready recent release"
    " request resume run start sure test tests thank thanks that the then this to try update version warmup well work"
    " works yep yes you your".split()
)
_COMMAND = re.compile(r"\A(?:\s*/[\w:-]+(?=\s|$))+")
"""A slash command; what follows it may still be a wish."""
_ACTION = opening(
    r"""
    adapt | add | address | adjust | align | allow | analy[sz]e | append | apply | assess | audit | backport | be
    | block | build | bump | change | check | clarify | clean | collapse | combine | compare | configure | consolidate
    | convert
    | copy | cover | create | debug | delete | deploy | describe | design | diagnose | disable | display | distinguish
    | document | drop | enable | ensure | evaluate | expand | explain | explore | export | expose | extend | extract
    | fetch | filter | find | fix | format | generate | give | group | handle | hide | highlight | hook | implement
    | improve | include | increase | inline | insert | install | integrate | introduce | investigate | keep | limit
    | list | load | look | lower | make | mention | merge | migrate | move | optimi[sz]e | pass | perform | pin | plan
    | port
    | prepare | prevent | propose | publish | put | raise | rebuild | reduce | refactor | remove | rename | replace
    | research | resolve | restore | restructure | revert | review | reword | rework | rewrite | run | scaffold | search
    | set ?up | set | show | simplify | sort | split | store | suggest | summari[sz]e | support | swap | switch | test
    | tidy | track | trim | turn | tweak | undo | unify | update | upgrade | upload | use | validate | verify | wire
    | wrap | write
    """
)
_LOOK = opening(
    r"""
    analy[sz]e | assess | audit | check | compare | debug | describe | diagnose | evaluate | explain | explore | find
    | investigate | list | look | perform | plan | propose | research | review | run | search | suggest
    | summari[sz]e | test | verify
    """
)
_BRANCHING = opening(
    r"""
    (?:create|switch|check ?out|delete|push|merge|rebase|pull|open|go)\b(?! branching).{0,40}\b(?:branch(?:es)?|main
    |master|prs?|worktree)
    """
)
"""Orders about branches, which say nothing about what is on them."""
_SUBJECT = re.compile(
    r"\w+(?: \S+){0,4} (?:fail(?:s|ed)?|does(?:n['’]t)?|is(?:n['’]t)?|are|was|seems?|looks?)\b", re.IGNORECASE
)
"""A verb that is the subject of a complaint: `publish to npm failed`."""
_ORDERED_BY = 4
"""The sentences of a prompt among which an order is looked for."""
_LOWER_CASE = re.compile(r"(?<=[a-z)]{2})([.?!]) +(?=[a-z]{2})(?<!e\.g\. )(?<!i\.e\. )(?<!etc\. )(?<!vs\. )")
"""Where a sentence ends in what was typed without capitals."""
_WISH = anywhere("should(?! have) | must | needs? to | has to | have to | want")


_WORD = re.compile(r"[^\W\d_]{3,}")
_VAGUE = frozenset(
    """about again all also and any apply are ask asked bad before believe but can change changes check chceck confirm
    could create current did does doing done dont draft edit else ever every everything feel first fix fucking fuck
    get give going happens hell help here how implement into issue issues its just know let like line link list look
    looks make maybe mean meant more need needs new next not now off one other please problem recommend recommended
    remember review same seems see shit should sleep some someelse something still sure take task tell test that the
    them then there these they thing things think this those thought try update use used using very want was way well
    were what when where which who why will with work works would write yes you your""".split()
)
"""Words that do not say what a request is about."""


class Request(Struct, frozen=True):
    """What an exchange was for.

    `title` is the heading of a plan, or the first words of a prompt that say something.
    `text` is at most `REQUEST_MAX` characters in the asker's words. `routine` requests ("commit this") say nothing
    about their subject. `asks` is true for an order ("add …") and false for a complaint or a question.
    """

    title: str
    text: str
    quote: str
    line: int
    human: bool
    said: tuple[Statement, ...] = ()
    """The sentences of a prompt; of a plan none, for it was mostly written by an assistant."""
    plan: bool = False
    routine: bool = False
    asks: bool = False
    orders: bool = False
    """Whether the title itself is an order, which says what was done once it was done; a wish does not."""
    looks: bool = False
    """Whether it only orders to look, think or explain."""

    @property
    def whole(self) -> str:
        """All that was typed, as far as it may tell what kind of thing was asked for."""
        return " ".join(one.text for one in self.said)[:_WHOLE_MAX]


def request(exchange: Exchange) -> Request:
    """The request of an exchange; empty and routine where nothing was asked."""
    asked = [turn for turn in exchange.turns if turn.kind is Kind.PROMPT and turn.text.strip()]
    for turn in asked:
        if (plan := plan_in(turn.text)) is not None:
            return _plan(turn, plan)
    for turn in asked:
        found = _prompt(turn)
        if not found.routine or turn is asked[-1]:
            return found
    return Request("", "", "", exchange.span.start_line, human=False, routine=True)


def _plan(turn: Turn, markdown: str) -> Request:
    """A plan is asked for by its heading; its first section says why."""
    heading = heading_of(markdown)
    title = plan_title(markdown)
    reasons = _REASONS.search(markdown)
    start = markdown.find("\n", reasons.end()) if reasons else (heading.end() if heading else 0)
    section = re.split(r"^#{1,4}\s", markdown[max(start, 0) :], maxsplit=1, flags=re.MULTILINE)[0]
    said = [statement for statement in _told(turn, section) if len(statement.text) > 20]
    why = _within(said[:4])
    quote = heading.group(1) if heading else (said[0].quote if said else "")
    human = turn.speaker is Speaker.HUMAN
    if not title and not why:
        return _prompt(turn)
    return Request(title or headline(why), why, quote_of(quote), turn.line, human, plan=True, asks=True, orders=True)


def plan_title(markdown: str) -> str:
    """The heading of a plan without the word plan; empty when it has none."""
    heading = heading_of(markdown)
    return _TITLE_LABEL.sub("", plain(heading.group(1)), count=1) if heading else ""


def _prompt(turn: Turn) -> Request:
    lines = _IMAGE.sub("", _FENCED.sub("", turn.text)).split("\n")
    words = "\n".join(_INLINE_LOG.sub("", line).rstrip(" :") for line in lines if not _LOG.match(line))
    said = _told(turn, _LOWER_CASE.sub(r"\1\n", _COMMAND.sub("", words.replace("@", ""))))
    text = _within(said)
    title = _title(said)
    ordered = _ACTION.match(title) is not None and not (_BRANCHING.match(title) or _SUBJECT.match(title))
    return Request(
        title,
        text,
        said[0].quote if said else "",
        turn.line,
        human=turn.speaker is Speaker.HUMAN,
        said=tuple(said),
        routine=is_routine(text),
        asks=ordered or (_WISH.search(title) is not None and not _BRANCHING.match(title)),
        orders=ordered and not title.endswith("?"),
        looks=_LOOK.match(title) is not None,
    )


def _title(said: list[Statement]) -> str:
    """The first sentence, or the order that follows when the first one only complains or talks."""
    titles = [headline(one.text) for one in said[:_ORDERED_BY]]
    if not titles:
        return ""
    if not _ACTION.match(titles[0]):
        ordered = (title for title in titles[1:] if _ACTION.match(title) and len(title) > 24 and tells(title))
        if order := next(ordered, ""):
            return order
    return titles[1] if len(titles[0]) < 16 and len(titles) > 1 else titles[0]


def tells(title: str) -> bool:
    """Whether a title says what it is about: `fix it again` does not."""
    words = {word.lower() for word in _WORD.findall(title)} - _VAGUE - _ROUTINE
    return len(words) >= 2 or (len(words) == 1 and NAMED.search(title) is not None)


def _within(said: list[Statement]) -> str:
    """Whole statements as long as they fit; the first one cut if it alone does not."""
    text = ""
    for statement in said:
        if len(text) + len(statement.text) >= REQUEST_MAX:
            break
        text = f"{text} {statement.text}".strip()
    return text or (clip(said[0].text, REQUEST_MAX) if said else "")


def _told(turn: Turn, text: str) -> list[Statement]:
    shown = Turn(turn.line, turn.speaker, turn.kind, text)
    return list(proven(statements(shown), turn))


def is_routine(text: str) -> bool:
    """Whether a request names nothing of its own: `commit this and push`, `continue`, `ok thanks`."""
    words = [re.sub(r"\W", "", word).lower() for word in _COMMAND.sub("", text).split()]
    return all(word in _ROUTINE or word.startswith("http") or not word for word in words)
