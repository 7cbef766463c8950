"""Storage of parsed conversations, observations and memories in one SQLite database.

No other package contains SQL. `Store` (`store.py`) opens the database and has one attribute for each table. The tables
of one entity share a module. `database.py` manages the connection and the schema.
`migration.py` converts the databases of earlier versions.
"""

from .change_log import ChangeLog, Embedding, Entity, StoredVector
from .database import is_wal_safe, sqlite_version
from .document_table import Document, QueuedFile
from .exchange_table import Edit, Repetition, StoredExchange, StoredPrompt
from .lease_table import ARCHIVER, LEARNER, MODEL, TEAM, WATCHER, Lease
from .ledger_table import PlannedCall
from .memory_table import MirroredFile
from .observation_table import FINDING_PREFIX, MODEL_PREFIX, SUMMARY_PREFIX, Confirmation, StoredObservation
from .source_table import Source, SourceLine
from .store import Store

__all__ = [
    "ARCHIVER",
    "FINDING_PREFIX",
    "LEARNER",
    "MODEL",
    "MODEL_PREFIX",
    "SUMMARY_PREFIX",
    "TEAM",
    "WATCHER",
    "ChangeLog",
    "Confirmation",
    "Document",
    "Edit",
    "Embedding",
    "Entity",
    "Lease",
    "MirroredFile",
    "PlannedCall",
    "QueuedFile",
    "Repetition",
    "Source",
    "SourceLine",
    "Store",
    "StoredExchange",
    "StoredObservation",
    "StoredPrompt",
    "StoredVector",
    "is_wal_safe",
    "sqlite_version",
]
