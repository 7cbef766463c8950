"""Storage of parsed conversations, observations and memories in one SQLite database.

No other package contains SQL. `Store` (`store.py`) opens the database and has one attribute for each table. The class
of a table is in the module with the same name. `database.py` manages the connection, and `migrations.py` the schema.
"""

from .change_log import ChangeLog, Entity
from .confirmation_table import Confirmation
from .document_table import Document, QueuedFile
from .edit_table import Edit
from .exchange_table import StoredExchange, StoredPrompt
from .lease_table import ARCHIVER, LEARNER, MODEL, WATCHER, Lease
from .ledger_table import PlannedCall
from .mnemonic_table import MirroredFile
from .observation_table import FINDING_PREFIX, MODEL_PREFIX, SUMMARY_PREFIX, StoredObservation
from .repetition_table import Repetition
from .source_table import Source, SourceLine
from .sqlite import is_wal_safe, sqlite_version
from .store import Store
from .vector_table import Embedding, StoredVector

__all__ = [
    "ARCHIVER",
    "FINDING_PREFIX",
    "LEARNER",
    "MODEL",
    "MODEL_PREFIX",
    "SUMMARY_PREFIX",
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
