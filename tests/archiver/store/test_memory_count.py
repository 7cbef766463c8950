"""The count of memories equals the length of their list."""

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palaver.archiver.store import Store
from palaver.core.memory import Memory, MemoryFilter, MemoryState

TERMS = st.none() | st.integers(0, 5)
MEMORIES = st.tuples(st.sampled_from(["a", "b"]), TERMS, TERMS)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    st.lists(MEMORIES, max_size=12),
    st.sampled_from([(), ("project:a",)]),
    st.sampled_from([(MemoryState.ACTIVE,), tuple(MemoryState), ()]),
    st.none() | st.integers(0, 6),
)
def test_a_count_is_the_length_of_the_list(
    tmp_path: Path,
    memories: list[tuple[str, int | None, int | None]],
    namespaces: tuple[str, ...],
    states: tuple[MemoryState, ...],
    at: int | None,
) -> None:
    """The count equals the length of the list for any filter at any time."""
    path = tmp_path / "palaver.db"
    path.unlink(missing_ok=True)
    with Store.create(path) as store:
        with store.transaction():
            for number, (name, begins, ends) in enumerate(memories):
                memory = Memory(f"{number}", namespace=f"project:{name}", valid_from=begins, valid_until=ends)
                store.memories.insert(memory, number)
        wanted = MemoryFilter(namespaces=namespaces, states=states, valid_at=at)

        assert store.memories.count(wanted) == len(store.memories.select(wanted))


def test_a_project_selects_the_global_memories_that_name_it(tmp_path: Path) -> None:
    """A list has the memories that `admits` accepts: those of projects, and global ones that name the project."""
    wanted = MemoryFilter(projects=("shop",))
    memories = [
        Memory("1", namespace="global", project="shop"),
        Memory("2", namespace="global", project="bank"),
        Memory("3", namespace="default"),
        Memory("4", namespace="project:bank", project="bank"),
    ]
    with Store.create(tmp_path / "palaver.db") as store:
        with store.transaction():
            for number, memory in enumerate(memories):
                store.memories.insert(memory, number)
        found = store.memories.select(wanted)

        assert sorted(each.memory.content for each in found) == ["1", "4"]
        assert [each for each in store.memories.select(MemoryFilter()) if wanted.admits(each)] == found
