"""Use of tokens by day, project, agent and model, for projects at the level `metrics` or above.

Each machine reports the sessions that were recorded on it, not those received by `palaver sync`, so that nothing counts
twice. The exchanges of a session on a day count for the model that used most tokens.
"""

from collections import Counter
from collections.abc import Iterator

from ...archiver.store import Store
from ...archiver.store.sync_table import owner_of
from ...core.conversation import show_instant
from ...observe.archive import Archive
from ...observe.usage import SessionDay
from ..protocol import Level, SharedProject, UsageDay
from .places import Places


def usage_days(archive: Archive, places: Places) -> Iterator[tuple[SharedProject, Level, UsageDay]]:
    """Yield the use of each model, with the project and its level."""
    if not places.of_all_sessions():
        return
    store = archive.store
    sessions, own = (
        store.sessions.all(),
        {source.session for source in store.sources.all() if not owner_of(source.archived)},
    )
    exchanges = _exchanges_by_day(store)
    groups: dict[tuple[str, str, str, str], list[SessionDay]] = {}
    shared = dict[str, tuple[SharedProject, Level]]()
    days = [day for day in archive.usage.by_session_and_day() if day.session in own]
    main = _main_models(days)
    for day in days:
        session = sessions.get(day.session)
        place = places.of_session(session) if session is not None else None
        if session is not None and place is not None and place.level is not Level.PRIVATE:
            shared[place.project.id] = place.project, place.level
            groups.setdefault((place.project.id, day.day, session.agent, day.model), []).append(day)
    for (project, name, agent, model), used in sorted(groups.items()):
        counted = sum(exchanges[day.session, name] for day in used if main[day.session, name] == model)
        tokens_out = sum(day.counts.output for day in used)
        tokens_in = sum(day.counts.total for day in used) - tokens_out
        cost = sum(day.cost for day in used)
        yield *shared[project], UsageDay(name, agent, model, len(used), counted, tokens_in, tokens_out, cost)


def _exchanges_by_day(store: Store) -> Counter[tuple[int, str]]:
    outlines = store.exchanges.outlines()
    return Counter((outline.session, show_instant(outline.at)[:10]) for outline in outlines if outline.at is not None)


def _main_models(days: list[SessionDay]) -> dict[tuple[int, str], str]:
    """Return the model that used most tokens, by session and day."""
    main = dict[tuple[int, str], tuple[int, str]]()
    for day in days:
        key = day.session, day.day
        main[key] = max(main.get(key, (-1, "")), (day.counts.total, day.model))
    return {key: model for key, (_, model) in main.items()}
