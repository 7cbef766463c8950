"""The user's request in a prompt, and trimming of observations.

The request is the prompt without pasted logs and code, or the plan in it. Observations are trimmed to the size limit
of the detail view, starting with the least important parts.
"""

import re

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.lines import heading_of, plan_in
from ...core.conversation import Exchange, Kind, Speaker, Turn
from ...core.observation import NEXT, OPEN, Observation
from ...core.text import headline, strip_markdown, truncate
from .salience import NAMED, phrases, regex, salience, word_set
from .statements import Statement, quote_of, statements, with_valid_quotes

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

    On a tie, remove the last one. Open items and next steps stay longest, because no other text lists them.
    """

    def weight(place: int) -> tuple[bool, bool, int, int]:
        fact = whole.facts[place]
        return fact.rstrip(".") not in whole.title, fact.startswith((OPEN, NEXT)), salience(fact), -place

    least = min(range(len(whole.facts)), key=weight)
    facts = whole.facts[:least] + whole.facts[least + 1 :]
    return replace(whole, facts=facts, evidence=whole.evidence[:least] + whole.evidence[least + 1 :])


REQUEST_MAX = 420
_WHOLE_MAX = 1_500
_TITLE_MAX = 240
"""Maximum characters of the title of a request. A title that is shown is shorter."""

_TITLE_LABEL = re.compile(r"(?:implementation |the )?plan\s*[:—–-]\s*", re.IGNORECASE)
_REASONS = regex("user_request.reasons")
_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_IMAGE_MARK = regex("user_request.image_mark")
_LOG_LINE = regex("user_request.log_line")
_INLINE_LOG = re.compile(r"\s*(?:\[\d\d:\d\d|\[[A-Z]\w{3,20}\] |\bat \S+ \().*")
_ROUTINE = word_set("user_request.routine")
_COMMAND = re.compile(r"\A(?:\s*/[\w:-]+(?=\s|$))+")
"""Pattern for a slash command. A request may follow it."""
_ACTION = phrases("user_request.action")
LOOK = phrases("user_request.look")
"""Pattern for an instruction to inspect, think or explain. Such an instruction does not state its result."""
_BRANCHING = phrases("user_request.branching")
"""Pattern for instructions about branches, such as `push to main`. They do not describe the change itself."""
_ASKED_FOR = regex("user_request.asked_for")
"""Pattern for an instruction in the form of a question, which can follow a remark: `it is slow, can you cache it?`."""
_SUBJECT = regex("user_request.subject")
"""Pattern for a report that begins like an instruction, as in `publish to npm failed`."""
_ORDERED_BY = 4
"""Number of sentences of a prompt that are searched for an instruction."""
_LOWER_CASE = re.compile(r"(?<=[a-z)]{2})([.?!]) +(?=[a-z]{2})(?<!e\.g\. )(?<!i\.e\. )(?<!etc\. )(?<!vs\. )")
"""Pattern for the end of a sentence in a text without capital letters."""
_WISH = phrases("user_request.wish")


_WORD = re.compile(r"[^\W\d_]{3,}")
_VAGUE = word_set("user_request.vague")
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
