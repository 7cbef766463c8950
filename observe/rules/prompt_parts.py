"""Origins of the lines of a prompt (typed or pasted), the user's request in it, and trimming of observations.

A transcript marks a whole prompt as typed, although most of its text may be pasted from code, logs, documents,
programs and agents. The shape of a line, delimiters and phrases such as "the docs say:" distinguish the parts. A
doubtful line counts as pasted, so that the text of another author is not stored as the user's.

The request is the prompt without pasted logs and code, or the plan in it. Observations are trimmed to the size limit
of the detail view, starting with the least important parts.
"""

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.lines import heading_of, plan_in
from ...core.conversation import Exchange, Kind, Speaker, Turn
from ...core.observation import Observation
from ...core.text import headline, strip_markdown, truncate
from .languages import languages
from .salience import NAMED, phrases, salience
from .statements import Statement, quote_of, statements, with_valid_quotes


class PartOrigin(StrEnum):
    """Origin of a line of a prompt."""

    TYPED = "typed"
    QUOTATION = "quotation"
    CODE = "code"
    LOG = "log"
    DOCUMENT = "document"
    """Headings, lists, tables and hard-wrapped paragraphs."""
    PROGRAM = "program"
    """Text of hooks and bots, and reminders by the agent's program."""
    AGENT = "agent"
    """Plans, prompts and transcripts of agents."""


class PromptPart(Struct, frozen=True):
    """Line of a prompt with its origin."""

    origin: PartOrigin
    text: str


MASK: Final = "\ufffc"
"""Character that replaces quoted characters in a masked line."""
_PAIRS: Final = {'"': '"', "“": "”", "„": "“”", "«": "»", "「": "」", "『": "』", "《": "》"}
_QUOTED: Final = re.compile(
    r"""`+[^`]+`+|"[^"]+"|“[^”]+”|„[^“”]+[“”]|«[^»]+»|「[^」]+」|『[^』]+』|(?<!\w)(?:'[^'\n]{2,}'|‘[^’\n]{2,}’)(?![a-zà-ÿ])"""
)
_DELIMITERS: Final = (
    (re.compile(r"\s*(```|~~~)"), PartOrigin.CODE),
    (re.compile(r"\s*(\"\"\"|''')"), PartOrigin.QUOTATION),
)
_TAG: Final = re.compile(r"\s*<([a-zA-Z][\w-]*)(?:\s[^<>]*)?>")
_IMAGE: Final = re.compile(r"\s*\[(?:Image|Pasted|file\b|image|(?:image|text|application)/)[^\]\n]*\]\s*$")
_QUOTE_LINE: Final = re.compile(r"\s*(?:>|\|\s?>)")
_AGENT: Final = re.compile(
    r"""\s*(?:implement\ the\ following\ plan | \[\[\ \#\# | @\[\w+\] | your\ task\ is\b | task\ for\ \w+
    | (?:user|human|assistant|agent|system|ai|claude|codex|gemini)\s?:(?:\s|$) | \d+\.\ (?:user|assistant)\b
    | you\ are\ an?\s | du\ bist\ eine?\s | (?:tu\ es|vous\ êtes)\ une?\s | eres\ una?\s | você\ é\ uma?\s
    | (?:너는|당신은)\s | 你是(?:一|个|资深|专业) | あなたは)""",
    re.IGNORECASE | re.VERBOSE,
)
"""Pattern for the beginning of an agent's text, or of a prompt for an agent."""
_MAIL: Final = re.compile(
    r"\s*(?:From|To|Cc|Subject|Von|An|Betreff|De|À|Objet|Para|Asunto|Assunto|差出人|件名|제목|发件人|主题)\s?[:：]\s*\S"
)
"""Pattern for the header of an e-mail."""
_LABEL: Final = re.compile(r"\s*([^:：]{1,80}?)\s?(?::\s|：)")
_NAME: Final = re.compile(r"[@\w.-]+(?: [\w.-]+)?")
"""Pattern for the name before a chat message."""
_PROGRAM: Final = re.compile(
    r"""\s*(?:\w+\ hook\b | .{0,40}\bhook\ (?:feedback|output|error|success|blocking) | \[?system[-\s]reminder | caveat:
    | committable\ suggestion | actionable\ comments | refactor\ suggestion | potential\ issue | nitpick
    | [\u2190-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff]\ufe0f?\s*\S)""",
    re.IGNORECASE | re.VERBOSE,
)
_HEADING: Final = re.compile(r"\s{0,3}#{1,6}\s+\S|\s*[=\-─═━_*]{4,}|\s*\*\*[^*]+\*\*:?\s*$|\s*---\s*$")
_LIST: Final = re.compile(r"\s*(?:[-*+•‣▪·–—]\s+|\d{1,3}[.)]\s+|\(\d+\)\s|[①-⑳]|\||\[[ xX]\])\s*\S?")
_LOG: Final = re.compile(
    r"""\s*(?:\[[^\]\n]{1,60}\] | \(?\d{4}[-/]\d\d[-/]\d\d[T\s] | \[?\d\d:\d\d(?::\d\d)?[\].,\s]  # labels and times
    | at\s\S+(?:\s?\(|$|:\d) | \S*[./]\S*:\d+(?::\d+)?\b | \d+:\d+\s | \d+\s{2,}\S | /\S+/\S+\s*$  # places in code
    | [$❯➜%]\s | \S+@\S+:\S*[$\#] | File\s" | Traceback\s | \w+(?:Error|Exception|Warning)\b
    | [CWEFNRD]\d{3,4}\b | [WEID]:\s | [WEID]/\w+[(:]  # codes of linters
    | (?:ERROR|WARN(?:ING)?|INFO|DEBUG|FATAL|FAIL(?:ED)?|PASS)\b
    | (?i:error|warn(?:ing)?|info|debug|fatal|critical|hint|remote|npm\ \w+|erreur|fehler|aviso|erro|경고|오류|警告|错误
      |エラー)(?:\[\w+\])?(?:\s?[:!：(]|\s{2,}))
    | .*\S{120}""",
    re.VERBOSE,
)
_CODE: Final = re.compile(
    r"""\s*(?://|/\*|\*/|\*\s|<!--|--\s|;;|\#!|\#\[|@\w+\(|<[/!\w]|"{1,3}[\w-]+"\s*:)
    | \s*(?:import\s+[\w{*"'.]+(?:\s+from\b|;|\s*$) | from\s\S+\simport\b | (?:async\ )?def\s\w+\( | class\s\w+\s*[:({]
      | (?:func|fn)\s[\w(]+.*[({] | (?:export\ )?(?:const|let|var)\s\w+\s*[:=] | (?:export\s|async\s)*function\s?\w*\(
      | (?:public|private|protected)\s.*[({;] | package\s[\w.]+;?\s*$ | (?:SELECT|INSERT|UPDATE|DELETE|ALTER|CREATE)\s
      | (?:if|for|while)\s?\(.*\{ | return\s[\w.(\[{"']+;)
    | .*(?:[{};]|=>|\)\s*:)\s*$ | (?:\s{4,}|\t)\S | \s*[\w.\[\]"']+\s(?:=|:=|\+=)\s\S
    | \s*[\w.-]+:\s*(?:["'\[{|>\d]|true\b|false\b) | .*(?://|\#)\s?(?i:todo|fixme|xxx|note|nolint|noqa)\b""",
    re.VERBOSE,
)
_COLON: Final = re.compile(r"[:：]\s*$")
_WRAPPED_MIN, _WRAPPED_MAX = 55, 110
"""Width range of lines of a hard-wrapped paragraph."""


class _Reader:
    """State while the lines of a prompt are read."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self._last_lines: dict[str, int] = {}
        self.closing: tuple[str, ...] = ()
        """Texts that end the delimited block. The tuple is empty outside a block."""
        self.delimited = PartOrigin.QUOTATION
        self.rest: PartOrigin | None = None
        """Origin of all following lines."""
        self.block: PartOrigin | None = None
        """Origin of the lines up to the next empty line."""
        self.announced = False
        """True after a phrase that announces the text of another author."""
        self.colon = False
        """True after a line that ends with a colon."""
        self.mentioned = False
        """True if the paragraph mentions a text of another author."""

    def read(self, number: int) -> PartOrigin:
        """Return the origin of a line that is not empty."""
        line = self.lines[number]
        if self.closing:
            if any(end in line for end in self.closing):
                self.closing = ()
            return self.delimited
        if opened := self._opened(number):
            return opened
        self.rest = self.rest or self._rest(number)
        if self.rest:
            return self.rest
        if origin := self._shaped(number):
            self.block, self.announced, self.colon = origin, False, False
            return origin
        if self.announced:
            self.rest = PartOrigin.QUOTATION
            return self.rest
        if self.colon:
            self.block, self.colon = PartOrigin.DOCUMENT, False
        if self.block:
            return self.block
        self._typed(number)
        return PartOrigin.TYPED

    def end_paragraph(self) -> None:
        """Reset the state at an empty line, which ends a paragraph."""
        self.block = None
        self.announced = self.announced or self.mentioned
        self.mentioned = False

    def _opened(self, number: int) -> PartOrigin | None:
        """Return the origin of a delimited block that starts on this line."""
        line = self.lines[number]
        for pattern, origin in _DELIMITERS:
            if opening := pattern.match(line):
                return self._open((opening.group(1),), origin, line[opening.end() :])
        if tag := _TAG.match(line):
            end = f"</{tag.group(1)}>"
            if end in line or self._ends_below(number, (end,)):
                return self._open((end,), PartOrigin.PROGRAM, line)
        quoted = line.strip()
        ends = tuple(_PAIRS.get(quoted[0], ""))
        if ends and not any(end in quoted[1:] for end in ends) and self._ends_below(number, ends):
            return self._open(ends, PartOrigin.QUOTATION, "")
        return None

    def _ends_below(self, number: int, closing: tuple[str, ...]) -> bool:
        """Return whether one of the texts occurs in the lines below."""
        for end in closing:
            if end not in self._last_lines:
                self._last_lines[end] = max((place for place, line in enumerate(self.lines) if end in line), default=-1)
        return any(self._last_lines[end] > number for end in closing)

    def _open(self, closing: tuple[str, ...], origin: PartOrigin, left: str) -> PartOrigin:
        """Start a delimited block, unless `left`, the rest of its first line, already ends the block."""
        self.announced = self.colon = self.mentioned = False
        self.block, self.delimited = None, origin
        self.closing = () if any(end in left for end in closing) else closing
        return origin

    def _rest(self, number: int) -> PartOrigin | None:
        """Return the origin of this and all following lines if the line starts a document or another agent's text."""
        line = self.lines[number]
        if _AGENT.match(line):
            return PartOrigin.AGENT
        if _MAIL.match(line):
            return PartOrigin.QUOTATION
        if _PROGRAM.match(line):
            return PartOrigin.PROGRAM
        if _HEADING.match(line) and self.block is not PartOrigin.CODE and not self._code_follows(number):
            return PartOrigin.DOCUMENT
        return None

    def _code_follows(self, number: int) -> bool:
        """Return whether a line that starts with `#` is a comment above code."""
        return number + 1 < len(self.lines) and _CODE.match(self.lines[number + 1]) is not None

    def _shaped(self, number: int) -> PartOrigin | None:
        """Return the origin of a line if the shape of the line shows it."""
        line = self.lines[number]
        if _QUOTE_LINE.match(line):
            return PartOrigin.QUOTATION
        if _IMAGE.match(line):
            return None
        if _LOG.match(line):
            return PartOrigin.LOG
        if _CODE.match(line) or _HEADING.match(line):
            return PartOrigin.CODE
        if _LIST.match(line) or self._wrapped(number):
            return PartOrigin.DOCUMENT
        return None

    def _wrapped(self, number: int) -> bool:
        """Return whether three lines from this line on have about the same width, as in an e-mail or a document."""
        near = self.lines[number : number + 3]
        widths = [len(line) for line in near]
        return (
            len(near) == 3
            and min(widths[:2]) >= _WRAPPED_MIN
            and max(widths) <= _WRAPPED_MAX
            and all(line[-1:].isalpha() or line[-1:] == "," for line in near[:2])
            and near[2].strip() != ""
        )

    def _typed(self, number: int) -> None:
        """Record which lines after a typed line belong to another author."""
        line = mask_quotations(self.lines[number])
        attributed = any(each.attributions.search(line) for each in languages())
        named = any(each.sources.search(line) for each in languages())
        self.mentioned = self.mentioned or named
        self.colon = _COLON.search(line) is not None
        self.announced = attributed or (self.colon and named)


def prompt_parts(prompt: str) -> Iterator[PromptPart]:
    """Yield the lines of a prompt with their origins. Empty lines are omitted."""
    lines = prompt.split("\n")
    reader = _Reader(lines)
    for number, line in enumerate(lines):
        if line.strip():
            yield PromptPart(reader.read(number), line)
        else:
            reader.end_paragraph()


def typed_text(line: str) -> str:
    """Return a typed line in which quotations are masked without changing its length.

    Text after phrases such as "the docs say", or after the name of a speaker and a colon, is masked too.
    """
    masked = mask_quotations(line)
    if (label := _LABEL.match(masked)) and _is_foreign(label.group(1)):
        masked = masked[: label.end()] + MASK * (len(masked) - label.end())
    for language in languages():
        if attribution := language.attributions.search(masked):
            masked = masked[: attribution.end()] + MASK * (len(masked) - attribution.end())
    return masked


def _is_foreign(label: str) -> bool:
    """Return whether a label before a colon names a person or a document as the author of the text after the colon."""
    if any(each.sources.search(label) for each in languages()):
        return True
    own = any(each.openers.fullmatch(label) or each.lasting.search(f"{label}: ") for each in languages())
    return not own and _NAME.fullmatch(label) is not None


def mask_quotations(line: str) -> str:
    """Return a line in which quoted text is masked without changing the length of the line."""
    masked = _QUOTED.sub(lambda quoted: MASK * len(quoted.group()), line)
    for opening, ends in _PAIRS.items():
        start = masked.rfind(opening)
        if start >= 0 and not any(end in masked[start + 1 :] for end in ends):
            masked = masked[:start] + MASK * (len(masked) - start)
    return masked


TOKENS_MAX = 480
"""Maximum tokens of an observation, with its heading and evidence, that the detail view shows in full."""
_FACTS_MANY, _FACTS_MIN, _MODIFIED_MIN, _CONCEPTS_MIN, _STEP = 6, 3, 8, 5, 4
_NARRATIVE_MAX, _NARRATIVE_MIN = 400, 250
"""Maximum characters of the narrative, after an early step and after a late step of trimming."""


def trim_to_budget(observation: Observation) -> Observation:
    """Return the observation trimmed to `TOKENS_MAX`.

    The function removes, in this order: names of read files, the end of a long narrative, concepts and names of
    modified files, and the least salient facts down to six. If the observation is still too long, it shortens the
    narrative further, and then removes more facts and files.
    """
    while observation.tokens > TOKENS_MAX:
        smaller = _smaller(observation)
        if smaller == observation:
            break
        observation = smaller
    return observation


def _smaller(whole: Observation) -> Observation:
    """Return the observation without its least important part. Return it unchanged if only the minimum is left."""
    if whole.files_read:
        return replace(whole, files_read=whole.files_read[: max(0, len(whole.files_read) - _STEP)])
    if len(whole.narrative) > _NARRATIVE_MAX:
        return replace(whole, narrative=truncate(whole.narrative, _NARRATIVE_MAX))
    if len(whole.concepts) > _CONCEPTS_MIN:
        return replace(whole, concepts=whole.concepts[:-1])
    if len(whole.files_modified) > _MODIFIED_MIN:
        return replace(whole, files_modified=whole.files_modified[:-1])
    if len(whole.facts) > _FACTS_MANY:
        return _without_least_fact(whole)
    if len(whole.narrative) > _NARRATIVE_MIN:
        return replace(whole, narrative=truncate(whole.narrative, _NARRATIVE_MIN))
    if len(whole.facts) > _FACTS_MIN:
        return _without_least_fact(whole)
    if len(whole.facts) > 1:
        return _without_least_fact(whole)
    return replace(whole, files_modified=whole.files_modified[: max(1, len(whole.files_modified) - 1)])


def _without_least_fact(whole: Observation) -> Observation:
    """Return the observation without a fact that its title states, or else without its least salient fact.

    On a tie, remove the last one.
    """

    def weight(place: int) -> tuple[bool, int, int]:
        fact = whole.facts[place]
        return fact.rstrip(".") not in whole.title, salience(fact), -place

    least = min(range(len(whole.facts)), key=weight)
    facts = whole.facts[:least] + whole.facts[least + 1 :]
    return replace(whole, facts=facts, evidence=whole.evidence[:least] + whole.evidence[least + 1 :])


REQUEST_MAX = 420
_WHOLE_MAX = 1_500
_TITLE_MAX = 240
"""Maximum characters of the title of a request. A title that is shown is shorter."""

_TITLE_LABEL = re.compile(r"(?:implementation |the )?plan\s*[:—–-]\s*", re.IGNORECASE)
_REASONS = re.compile(
    r"""^\#{2,4}\s+(?:\d+\.\s*)?(?:context|contexte|problem|background|goal|overview|summary|objective|why|motivation
    |root\ cause)\b""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_IMAGE_MARK = re.compile(
    r"'/[^'\n]+\.(?:png|jpe?g|gif|webp)'|\[(?:Image|Pasted text|(?:image|application|text|video)/)[^\]\n]{0,80}\]"
    r"|\[[^\]\n]{0,120}\.(?:png|jpe?g|gif|webp)[^\]\n]{0,80}\]"
)
_LOG_LINE = re.compile(
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
"""Pattern for a slash command. A request may follow it."""
_ACTION = phrases("user_request.action")
LOOK = phrases("user_request.look")
"""Pattern for an instruction to inspect, think or explain. Such an instruction does not state its result."""
_BRANCHING = phrases("user_request.branching")
"""Pattern for instructions about branches, such as `push to main`. They do not describe the change itself."""
_ASKED_FOR = re.compile(
    r"(?:.{8,120}?[,;.:—–-]\s*)?(?:(?:and|so|but|then)\s)?(?:can|could|would|will)\s(?:you|we)\s"
    r"(?:(?:please|also|maybe|now|just)\s)*(?P<order>.{12,})\?",
    re.IGNORECASE,
)
"""Pattern for an instruction in the form of a question, which can follow a remark: `it is slow, can you cache it?`."""
_SUBJECT = re.compile(
    r"\w+(?: \S+){0,4} (?:fail(?:s|ed)?|does(?:n['’]t)?|is(?:n['’]t)?|are|was|seems?|looks?)\b", re.IGNORECASE
)
"""Pattern for a report that begins like an instruction, as in `publish to npm failed`."""
_ORDERED_BY = 4
"""Number of sentences of a prompt that are searched for an instruction."""
_LOWER_CASE = re.compile(r"(?<=[a-z)]{2})([.?!]) +(?=[a-z]{2})(?<!e\.g\. )(?<!i\.e\. )(?<!etc\. )(?<!vs\. )")
"""Pattern for the end of a sentence in a text without capital letters."""
_WISH = phrases("user_request.wish")


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
"""Words that do not describe the subject of a request."""


_POINTS = re.compile(r"\b(?:this|that|these|those|it|them|there|same|above)\b", re.IGNORECASE)
"""Pattern for words that point to an earlier message."""


class UserRequest(Struct, frozen=True):
    """Request of an exchange.

    `title` is the heading of a plan or the first specific sentence of a prompt. `text` has at most `REQUEST_MAX`
    characters. A `routine` request ("commit this") names no subject. `asks` is True for an instruction ("add …") and
    False for a complaint or a question.
    """

    title: str
    text: str
    quote: str
    line: int
    human: bool
    statements: tuple[Statement, ...] = ()
    """Sentences of a prompt. For a plan, the tuple is empty, because the assistant usually wrote the plan."""
    reasons: tuple[Statement, ...] = ()
    """Sentences that say why something is asked: the first section of a plan, or the sentences of a prompt."""
    plan: bool = False
    routine: bool = False
    asks: bool = False
    orders: bool = False
    """True if the title itself is an instruction, so that it also describes the result."""
    looks: bool = False
    """True if the request is only to inspect, think or explain."""

    @property
    def whole(self) -> str:
        """Beginning of the prompt, used to classify the request."""
        return " ".join(statement.text for statement in self.statements)[:_WHOLE_MAX]


def read_request(exchange: Exchange) -> UserRequest:
    """Return the request of an exchange. Without a prompt, the request is empty and marked as routine."""
    prompts = [turn for turn in exchange.turns if turn.kind is Kind.PROMPT and turn.text.strip()]
    for turn in prompts:
        if (plan := plan_in(turn.text)) is not None:
            return _plan(turn, plan)
    for turn in prompts:
        found = _prompt(turn)
        if not found.routine or turn is prompts[-1]:
            return found
    return UserRequest("", "", "", exchange.span.start_line, human=False, routine=True)


def _plan(turn: Turn, markdown: str) -> UserRequest:
    """Return the request to carry out a plan.

    The title is the plan's heading, and the reason is its first section.
    """
    heading = heading_of(markdown)
    title = plan_title(markdown)
    reasons = _REASONS.search(markdown)
    start = markdown.find("\n", reasons.end()) if reasons else (heading.end() if heading else 0)
    section = re.split(r"^#{1,4}\s", markdown[max(start, 0) :], maxsplit=1, flags=re.MULTILINE)[0]
    stated = [statement for statement in _statements_of(turn, section) if len(statement.text) > 20]
    why = _fit(stated[:4])
    quote = heading.group(1) if heading else (stated[0].quote if stated else "")
    human = turn.speaker is Speaker.HUMAN
    if not title and not why:
        return _prompt(turn)
    return UserRequest(
        title or headline(why, _TITLE_MAX),
        why,
        quote_of(quote),
        turn.line,
        human,
        reasons=tuple(stated),
        plan=True,
        asks=True,
        orders=True,
    )


def plan_title(markdown: str) -> str:
    """Return the heading of a plan without the word "plan", or an empty string."""
    heading = heading_of(markdown)
    return _TITLE_LABEL.sub("", strip_markdown(heading.group(1)), count=1) if heading else ""


def _prompt(turn: Turn) -> UserRequest:
    lines = _IMAGE_MARK.sub("", _FENCED.sub("", turn.text)).split("\n")
    words = "\n".join(_INLINE_LOG.sub("", line).rstrip(" :") for line in lines if not _LOG_LINE.match(line))
    statements = _statements_of(turn, _LOWER_CASE.sub(r"\1\n", _COMMAND.sub("", words.replace("@", ""))))
    text = _fit(statements)
    title = _title(statements)
    ordered = _ACTION.match(title) is not None and not (_BRANCHING.match(title) or _SUBJECT.match(title))
    return UserRequest(
        title,
        text,
        statements[0].quote if statements else "",
        turn.line,
        human=turn.speaker is Speaker.HUMAN,
        statements=tuple(statements),
        reasons=tuple(statements),
        routine=is_routine(text),
        asks=ordered or (_WISH.search(title) is not None and not _BRANCHING.match(title)),
        orders=ordered and not title.endswith("?"),
        looks=LOOK.match(title) is not None,
    )


def _title(statements: list[Statement]) -> str:
    """Return the first sentence or, if it is not an instruction, a later sentence that is one."""
    orders = [_order(statement.text) for statement in statements[:_ORDERED_BY]]
    titles = [headline(order, _TITLE_MAX) or truncate(order, _TITLE_MAX) for order in orders]
    if not titles:
        return ""
    if not _ACTION.match(titles[0]):
        ordered = (title for title in titles[1:] if _ACTION.match(title) and len(title) > 24 and is_specific(title))
        if order := next(ordered, ""):
            return order
    return titles[1] if len(titles[0]) < 16 and len(titles) > 1 else titles[0]


def _order(sentence: str) -> str:
    """Return the instruction in a question such as `can you add X?`, or else the sentence unchanged."""
    asked = _ASKED_FOR.fullmatch(sentence)
    return asked["order"] if asked and _ACTION.match(asked["order"]) and is_specific(asked["order"]) else sentence


def is_specific(title: str, words: int = 2) -> bool:
    """Return whether a title names its subject with so many words. `fix it again`, for example, does not.

    A name of code replaces all words but one.
    """
    telling = {word.lower() for word in _WORD.findall(title)} - _VAGUE - _ROUTINE
    return len(telling) >= words or (len(telling) > 0 and NAMED.search(title) is not None)


def stands_alone(order: str) -> bool:
    """Return whether an order can be understood without the conversation: `add retries to the uploader`."""
    return is_specific(order) and _POINTS.search(order) is None


def _fit(statements: list[Statement]) -> str:
    """Join whole statements up to `REQUEST_MAX` characters. Truncate the first one if it is longer."""
    text = ""
    for statement in statements:
        if len(text) + len(statement.text) >= REQUEST_MAX:
            break
        text = f"{text} {statement.text}".strip()
    return text or (truncate(statements[0].text, REQUEST_MAX) if statements else "")


def _statements_of(turn: Turn, text: str) -> list[Statement]:
    shown = Turn(turn.line, turn.speaker, turn.kind, text)
    return list(with_valid_quotes(statements(shown), turn))


def is_routine(text: str) -> bool:
    """Return whether a request has no subject, as in `commit this and push`, `continue`, `ok thanks`."""
    words = [re.sub(r"\W", "", word).lower() for word in _COMMAND.sub("", text).split()]
    return all(word in _ROUTINE or word.startswith("http") or not word for word in words)
