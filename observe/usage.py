"""Tokens of the archived conversations and their list price."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from msgspec.structs import replace

from ..archiver.store import Store
from ..archiver.store.usage_table import Reply
from ..core.config import Config
from ..core.conversation import Milliseconds, Session, SessionKind, show_day, show_instant, show_minute
from ..core.home import Home, is_in_project
from ..core.prices import Price, PriceList
from ..core.reports import NanoDollars
from ..core.runtime import Progress, silent
from ..core.tokens import Completeness, TokenCounts
from ..core.usage_report import UsageFilter, UsageGroup, UsageReport, UsageRow
from ..search.present.details import SessionNames
from ..search.query.tokenizer import check_agents, check_projects
from .usage_reader import read_usage

_HOUR: Final = 3_600_000
BLOCK: Final = 5 * _HOUR
"""Length of a block in milliseconds."""
_QUARTER: Final = _HOUR // 4
"""Milliseconds in which the date cannot change in any time zone."""
_DAY: Final = 24 * _HOUR

_ALL: Final = UsageFilter()
_Key: TypeAlias = tuple[str, str]
"""Name and project of a group."""


class _Spent(NamedTuple):
    """Reply with its session and its cost, or None if its price is unknown.

    The reply of a sub-agent belongs to the session that started the sub-agent.
    """

    reply: Reply
    root: int
    cost: NanoDollars | None


class SessionDay(NamedTuple):
    """Use of one model in a session, with its sub-agents, on one day in UTC. The cost of unknown models is 0."""

    session: int
    day: str
    model: str
    counts: TokenCounts
    cost: NanoDollars


class TokenUsage:
    """Token usage of one archive."""

    def __init__(self, home: Home, store: Store, config: Config) -> None:
        self._home, self._store, self._config = home, store, config

    def report(self, by: UsageGroup, filters: UsageFilter = _ALL, progress: Progress = silent) -> UsageReport:
        """Return the usage in groups. `progress` reports the reading of transcripts that changed since the last report.

        Raises:
            UnknownProject: A project is unknown.
            InvalidInput: An agent or a tag is unknown.
        """
        check_projects(self._store, filters.projects)
        check_agents(filters.agents, ())
        tagged = self._store.session_labels.sessions_with(filters.tags)
        unread = read_usage(self._home, self._store, progress)
        replies, prices = self._store.usage.replies(), _Prices(self._config)
        sessions = _Sessions(self._store.sessions.all())
        spent = [
            _Spent(reply, sessions.root(reply.session), prices.cost(reply))
            for reply in replies
            if sessions.matches(reply, filters)
            and (not filters.tags or tagged & {reply.session, sessions.root(reply.session)})
        ]
        rows = self._rows(by, spent, sessions)
        return UsageReport(
            by,
            tuple(rows),
            _row("total", spent),
            tuple(sorted(prices.sources)),
            _unpriced(spent),
            self._store.usage.uncounted(),
            unread,
        )

    def by_session_and_day(self) -> list[SessionDay]:
        """Return the dated usage of all sessions."""
        read_usage(self._home, self._store)
        prices, sessions = _Prices(self._config), _Sessions(self._store.sessions.all())
        groups: dict[tuple[int, int, str], list[_Spent]] = {}
        for reply in self._store.usage.replies():
            if reply.at is not None and sessions.has(reply.session):
                spending = _Spent(reply, sessions.root(reply.session), prices.cost(reply))
                groups.setdefault((spending.root, reply.at // _DAY, reply.model), []).append(spending)
        days = list[SessionDay]()
        for (session, day, model), spent in sorted(groups.items()):
            row = _row("", spent)
            days.append(SessionDay(session, show_instant(day * _DAY)[:10], model, row.counts, row.cost))
        return days

    def of_session(self, number: int) -> tuple[UsageRow, UsageRow]:
        """Return the usage of a session of the store without its sub-agents, and with them."""
        session, progress = self._store.sessions.load(number), Completeness.PROGRESS
        numbers = [number, *self._store.sessions.subagents(session)]
        read_usage(self._home, self._store, sessions=numbers)
        prices = _Prices(self._config)
        own, total = (
            [_Spent(reply, number, prices.cost(reply)) for reply in self._store.usage.replies(sources)]
            for sources in ([number], numbers)
        )
        if session.kind is not SessionKind.SUBAGENT:  # Progress of a session is of its sub-agents.
            own = [spending for spending in own if spending.reply.completeness is not progress]
        return _row(session.native_id, own), _row(session.native_id, total)

    def _rows(self, by: UsageGroup, spent: Sequence[_Spent], sessions: "_Sessions") -> list[UsageRow]:
        groups: dict[_Key, list[_Spent]] = {}
        if by is UsageGroup.BLOCK:
            rows = [_block(start, block) for start, block in _blocks(spent)]
        else:
            key_of = sessions.key_of(by)
            for spending in spent:
                groups.setdefault(key_of(spending), []).append(spending)
            rows = [_row(name, group, project) for (name, project), group in groups.items()]
        if by is UsageGroup.SESSION:
            names = SessionNames(self._store).of_all(int(row.name) for row in rows)
            for row in rows:
                row.name, row.title = names[int(row.name)]
        if by.is_period:
            return sorted(rows, key=lambda row: (row.name != "undated", row.name), reverse=True)
        return sorted(rows, key=lambda row: (-row.cost, -row.counts.total, row.name))


class _Prices:
    """Prices of replies. The price of a model is looked up once for each day."""

    def __init__(self, config: Config) -> None:
        self._list = PriceList(config)
        self._known: dict[tuple[str, int | None], Price | None] = {}

    @property
    def sources(self) -> set[str]:
        """Sources of the prices that were found."""
        return {price.source for price in self._known.values() if price is not None}

    def cost(self, reply: Reply) -> NanoDollars | None:
        """Return the list price of a reply, or None if the price of its model is unknown."""
        key = reply.model, None if reply.at is None else reply.at // _DAY
        if key not in self._known:
            self._known[key] = self._list.price(reply.model, at=reply.at)
        price = self._known[key]
        return None if price is None else price.cost(reply.counts)


class _Sessions:
    """Sessions with their properties by which usage is grouped and filtered."""

    def __init__(self, sessions: Mapping[int, Session]) -> None:
        self._sessions = sessions
        self._numbers = {(session.agent, session.native_id): number for number, session in sessions.items()}

    def has(self, number: int) -> bool:
        """Return whether a session exists. Another process can have just deleted it."""
        return number in self._sessions

    def root(self, number: int) -> int:
        """Return the session that started a sub-agent, directly or through other sub-agents, or else the session."""
        chain = {number: None}
        while (session := self._sessions[number]).kind is SessionKind.SUBAGENT:
            parent = self._numbers.get((session.agent, session.parent_id))
            if parent is None or parent in chain:  # Damaged transcripts can name each other.
                break
            chain[parent] = None
            number = parent
        return number

    def matches(self, reply: Reply, filters: UsageFilter) -> bool:
        """Return whether a reply matches the filters. An undated reply is in no time range."""
        if not self.has(reply.session):
            return False
        session = self._sessions[self.root(reply.session)]
        if filters.after is not None and (reply.at is None or reply.at < filters.after):
            return False
        if filters.before is not None and (reply.at is None or reply.at >= filters.before):
            return False
        return (
            (not filters.agents or session.agent in filters.agents)
            and (not filters.models or reply.model in filters.models)
            and (not filters.branches or self._branch(reply) in filters.branches)
            and (not filters.projects or is_in_project(filters.projects, session.project, session.cwd))
        )

    def key_of(self, by: UsageGroup) -> Callable[[_Spent], _Key]:
        """Return the function that names the group of a reply: its name, and the project of a session or a branch."""
        match by:
            case UsageGroup.DAY | UsageGroup.WEEK | UsageGroup.MONTH | UsageGroup.BLOCK:
                return lambda spending: (_period(by, spending.reply.at), "")
            case UsageGroup.PROJECT:
                return lambda spending: (self._sessions[spending.root].project, "")
            case UsageGroup.AGENT:
                return lambda spending: (self._sessions[spending.root].agent, "")
            case UsageGroup.MODEL:
                return lambda spending: (spending.reply.model, "")
            case UsageGroup.SESSION:
                return lambda spending: (str(spending.root), self._sessions[spending.root].project)
            case UsageGroup.BRANCH:
                return lambda spending: (self._branch(spending.reply), self._sessions[spending.root].project)

    def _branch(self, reply: Reply) -> str:
        return reply.branch or self._sessions[self.root(reply.session)].branch


def _period(by: UsageGroup, at: Milliseconds | None) -> str:
    """Return the day, the Monday of the week, or the month of an instant, or `undated`."""
    return _period_of_quarter(by, None if at is None else at // _QUARTER)


@lru_cache(1 << 16)
def _period_of_quarter(by: UsageGroup, quarter: int | None) -> str:
    day = show_day(None if quarter is None else quarter * _QUARTER)
    if day == "undated" or by is UsageGroup.DAY:
        return day
    if by is UsageGroup.MONTH:
        return day[:7]
    monday = date.fromisoformat(day)
    return (monday - timedelta(days=monday.weekday())).isoformat()


def _blocks(spent: Iterable[_Spent]) -> Iterator[tuple[Milliseconds | None, list[_Spent]]]:
    """Yield the replies of each block with its start. Undated replies are a block without a start.

    A block begins with the full hour of its first reply. It ends after five hours, and before a pause of five hours.
    """
    undated, start, last, block = list[_Spent](), 0, 0, list[_Spent]()
    for spending in sorted(spent, key=lambda spending: spending.reply.at or 0):
        at = spending.reply.at
        if at is None:
            undated.append(spending)
            continue
        if block and (at - start > BLOCK or at - last > BLOCK):
            yield start, block
            block = []
        if not block:
            start = at // _HOUR * _HOUR
        block.append(spending)
        last = at
    if block:
        yield start, block
    if undated:
        yield None, undated


def _block(start: Milliseconds | None, block: Sequence[_Spent]) -> UsageRow:
    row = _row(show_minute(start), block)
    return row if start is None else replace(row, start=start, end=start + BLOCK)


def _row(name: str, spent: Sequence[_Spent], project: str = "") -> UsageRow:
    """Return the sum of these replies."""
    return UsageRow(
        name,
        project=project,
        counts=TokenCounts(*map(sum, zip(*(spending.reply.counts.by_type for spending in spent), strict=True))),
        replies=len(spent),
        partial_replies=sum(spending.reply.completeness is not Completeness.WHOLE for spending in spent),
        sessions=len({spending.root for spending in spent}),
        cost=sum(spending.cost or 0 for spending in spent),
        unpriced_tokens=sum(spending.reply.counts.total for spending in spent if spending.cost is None),
    )


def _unpriced(spent: Iterable[_Spent]) -> dict[str, int]:
    """Return the tokens of each model without a known price, the most tokens first."""
    tokens = Counter[str]()
    for spending in spent:
        if spending.cost is None:
            tokens[spending.reply.model] += spending.reply.counts.total
    return dict(tokens.most_common())
