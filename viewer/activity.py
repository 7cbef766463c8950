"""Calendar of activity: the number of exchanges on each day of up to a year, as cells of a drawing."""

from bisect import bisect_left
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Final

from msgspec import Struct

from ..archiver.store import Store
from ..core.conversation import day_start, show_day
from .html_filters import MONTHS

WEEKS: Final = 53
_LEVELS: Final = 4


class DayCell(Struct, frozen=True):
    """Day in the calendar: its column (week) and row (weekday, Monday first), and its level from 0 to 4."""

    day: str
    column: int
    row: int
    exchanges: int
    level: int


class Calendar(Struct, frozen=True):
    """Calendar that ends with the week of the latest activity.

    Attributes:
        months: Column and name of each month that begins in the calendar.
        columns: Number of weeks.
        total: Number of exchanges in the calendar.
        active: Number of days with exchanges.
        busiest: Day with most exchanges.
        earlier: Number of exchanges before the calendar.
        undated: Number of exchanges without a time.
    """

    cells: tuple[DayCell, ...]
    months: tuple[tuple[int, str], ...]
    columns: int
    total: int
    active: int
    busiest: DayCell
    earlier: int
    undated: int


def calendar_of(store: Store) -> Calendar | None:
    """Return the calendar of an archive, or None if no exchange has a time."""
    latest = store.session_list.latest()
    if latest is None or (last_day := show_day(latest)) == "undated":
        return None
    last = date.fromisoformat(last_day)
    first = last - timedelta(days=last.weekday(), weeks=WEEKS - 1)
    days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    starts = [day_start(day.isoformat()) for day in days]
    times = store.session_list.times(starts[0])
    positions = [bisect_left(times, start) for start in starts]
    exchanges = {
        day: end - begin for day, begin, end in zip(days, positions, [*positions[1:], len(times)], strict=True)
    }
    undated = store.session_list.count_undated()
    earlier = store.exchanges.count() - len(times) - undated
    return _drawn({day: count for day, count in exchanges.items() if count}, last, earlier, undated)


def _drawn(days: Mapping[date, int], last: date, earlier: int, undated: int) -> Calendar:
    """Return a calendar of at least half a year, which begins with the first activity if that is later."""
    first = min(*days, last - timedelta(weeks=25))
    monday, most = first - timedelta(days=first.weekday()), max(days.values())
    cells, months = list[DayCell](), list[tuple[int, str]]()
    for number in range((last - monday).days + 1):
        day = monday + timedelta(days=number)
        exchanges, column = days.get(day, 0), number // 7
        level = -(-exchanges * _LEVELS // most)
        cells.append(DayCell(day.isoformat(), column, number % 7, exchanges, level))
        if day.day == 1 or number == 0:
            months.append((column, MONTHS[day.month - 1]))
    if len(months) > 1 and months[1][0] - months[0][0] < 3:
        del months[0]  # The two names would overlap.
    busiest = max(cells, key=lambda cell: cell.exchanges)
    columns, total = cells[-1].column + 1, sum(days.values())
    return Calendar(tuple(cells), tuple(months), columns, total, len(days), busiest, earlier, undated)
