"""Tests of index entries of memories."""

import os
import subprocess
import sys

PROGRAM = """
from types import SimpleNamespace
from palaver.core.memory import StoredMemory, Memory, MemoryState, MemoryStats
from palaver.search.index.indexed_texts import standalone_entries
memory = Memory("The kettle is brass.", namespace="project:shop", project="/home/demo/shop", session_id="one")
held = StoredMemory(1, memory, MemoryStats(), MemoryState.ACTIVE, 1, 1)
memories, documents = SimpleNamespace(load=lambda keys: {1: held}), SimpleNamespace(load=lambda keys: {})
store = SimpleNamespace(memories=memories, documents=documents)
print([entry.digest for entry in standalone_entries(store, [1])])
"""


def test_an_entry_does_not_depend_on_the_hash_seed() -> None:
    """An entry has the same digest in every process, so that another process can verify it."""
    texts = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in range(4)
    }

    assert len(texts) == 1
