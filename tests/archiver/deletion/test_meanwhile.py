"""What happens between a preview and its confirmation?"""

from pathlib import Path

import pytest

from palaver.archiver.deletion.deletions import Deletions
from palaver.core.deletion import DeletionRequest
from palaver.core.errors import ChangedMeanwhile, InvalidInput

from ..history import ORIGINAL, History, talk


def test_what_changed_since_it_was_planned_stays(tmp_path: Path) -> None:
    """Nothing goes, and nobody is told that the call was wrong: a program may make the same one again."""
    with History(tmp_path) as history:
        history.write(talk("one", "two"))
        history.ingest()
        forgetting = Deletions(history.store, history.raw)
        plan = forgetting.plan(DeletionRequest(targets=(ORIGINAL,)))
        with history.store.transaction():
            history.store.exchanges.delete([min(plan.selection.exchanges)])

        with pytest.raises(ChangedMeanwhile) as refused:
            forgetting.delete(plan)

        assert not isinstance(refused.value, InvalidInput)
        assert len(history.stored()) == 1
