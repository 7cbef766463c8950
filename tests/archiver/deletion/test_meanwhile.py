"""A deletion stops if the content changes between the preview and the confirmation."""

from pathlib import Path

import pytest

from palaver.archiver.deletion.deletions import Deletions
from palaver.core.deletion import DeletionRequest
from palaver.core.errors import ChangedMeanwhile, InvalidInput

from ..history import ORIGINAL, History, talk


def test_content_that_changed_since_the_plan_is_not_deleted(tmp_path: Path) -> None:
    """If content changed after the preview, deletion raises an error that is no usage error, so callers may retry."""
    with History(tmp_path) as history:
        history.write(talk("one", "two"))
        history.ingest()
        deletions = Deletions(history.store, history.raw)
        plan = deletions.plan(DeletionRequest(targets=(ORIGINAL,)))
        with history.store.transaction():
            history.store.exchanges.delete([min(plan.selection.exchanges)])

        with pytest.raises(ChangedMeanwhile) as refused:
            deletions.delete(plan)

        assert not isinstance(refused.value, InvalidInput)
        assert len(history.stored()) == 1
