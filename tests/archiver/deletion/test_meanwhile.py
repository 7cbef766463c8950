"""What happens between a preview and its confirmation?"""

from pathlib import Path

import pytest

from palaver.archiver.deletion.deletions import Deletions
from palaver.archiver.deletion.selection import Selector
from palaver.core.deletion import DeletionRequest
from palaver.core.errors import ChangedMeanwhile, InvalidInput

from ..history import ORIGINAL, History, talk


def test_what_changed_since_it_was_planned_stays(tmp_path: Path) -> None:
    """Nothing goes, and nobody is told that the call was wrong: a program may make the same one again."""
    with History(tmp_path) as history:
        history.write(talk("one", "two"))
        history.ingest()
        forgetting = Deletions(history.store, history.raw)
        selector = Selector(history.store, history.raw, DeletionRequest(targets=(ORIGINAL,)))
        plan = forgetting.plan(selector, selector.select())
        with history.store.transaction():
            history.store.exchanges.delete([min(plan.selected.exchanges)])

        with pytest.raises(ChangedMeanwhile) as refused:
            forgetting.forget(plan, lambda _: None)

        assert not isinstance(refused.value, InvalidInput)
        assert len(history.stored()) == 1
