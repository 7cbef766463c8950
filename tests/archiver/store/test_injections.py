"""The log of injections records what hooks showed in which session."""

from palaver.archiver.store import Store
from palaver.core.hooks import HookEvent
from palaver.core.reports import Injection, InjectionTotal

START, TOOL = HookEvent.SESSION_START, HookEvent.TOOL


def test_injections_are_listed_by_session_and_counted_by_event(store: Store) -> None:
    """Injections of a session are returned in order, and totals count injections, sessions and tokens."""
    first = Injection(1_000, START, "s1", "project:shop", 500, ("obs-1", "mem_2"))
    then = Injection(2_000, TOOL, "s1", "project:shop", 40, ("ex-3",))
    other = Injection(3_000, START, "s2", "project:cart", 300, ())
    with store.transaction():
        for each in (first, then, other):
            store.injections.add(each)

    assert store.injections.of_session("s1") == [first, then]
    assert store.injections.of_session("s3") == []
    assert store.injections.totals() == [InjectionTotal(START, 2, 2, 800), InjectionTotal(TOOL, 1, 1, 40)]
    assert store.injections.totals(since=2_500) == [InjectionTotal(START, 1, 1, 300)]
    assert store.injections.totals(project="project:shop") == [
        InjectionTotal(START, 1, 1, 500),
        InjectionTotal(TOOL, 1, 1, 40),
    ]
