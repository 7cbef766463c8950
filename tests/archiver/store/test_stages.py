"""Each stage has the time of its last success and its last problem."""

from palaver.archiver.store import Store
from palaver.core.errors import PalaverError


def test_success_and_failure(store: Store) -> None:
    """A stage fails until it succeeds again; its last problem is kept."""
    store.stages.note("archive")
    store.stages.note("seal", [PalaverError("no space"), PalaverError("no rights"), PalaverError("no idea")])
    archive, seal = store.stages.all()
    assert (archive.name, archive.fails, archive.problem, archive.failed) == ("archive", False, "", None)
    assert (seal.name, seal.fails, seal.succeeded) == ("seal", True, None)
    assert seal.problem == "no space (and 2 more)"

    store.stages.note("seal")
    store.stages.note("archive", [PalaverError("no space")])

    archive, seal = store.stages.all()
    assert archive.problem == "no space"
    assert archive.succeeded
    assert (seal.fails, seal.problem) == (False, "no space (and 2 more)")
