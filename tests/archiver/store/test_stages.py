"""Each stage records the time of its last success and its last problem."""

from palaver.archiver.store import Store
from palaver.core.errors import PalaverError


def test_a_stage_fails_until_it_succeeds_again(store: Store) -> None:
    """A failed stage stays failed until its next success, and its last problem is kept."""
    store.stages.note("archive")
    store.stages.note("compress", [PalaverError("no space"), PalaverError("no rights"), PalaverError("no idea")])
    archive, compress = store.stages.all()
    assert (archive.name, archive.fails, archive.problem, archive.failed) == ("archive", False, "", None)
    assert (compress.name, compress.fails, compress.succeeded) == ("compress", True, None)
    assert compress.problem == "no space (and 2 more)"

    store.stages.note("compress")
    store.stages.note("archive", [PalaverError("no space")])

    archive, compress = store.stages.all()
    assert archive.problem == "no space"
    assert archive.succeeded
    assert (compress.fails, compress.problem) == (False, "no space (and 2 more)")
