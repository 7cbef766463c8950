"""The first steps of the schema, from which every archive begins."""

from typing import Final

ARCHIVE_AND_OBSERVATIONS: Final = """
CREATE TABLE change (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    entity TEXT NOT NULL CHECK (entity IN ('item', 'vector')),
    id INTEGER NOT NULL
);
CREATE TABLE session (
    id INTEGER PRIMARY KEY,
    agent TEXT NOT NULL,
    native_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    parent_id TEXT NOT NULL,
    project TEXT NOT NULL,
    cwd TEXT NOT NULL,
    branch TEXT NOT NULL,
    title TEXT NOT NULL,
    title_rank INTEGER NOT NULL,
    version TEXT NOT NULL,
    models TEXT NOT NULL,
    links TEXT NOT NULL,
    started INTEGER,
    ended INTEGER,
    UNIQUE (agent, native_id)
);
CREATE TABLE source (
    id INTEGER PRIMARY KEY,
    agent TEXT NOT NULL,
    session INTEGER REFERENCES session,
    path BLOB NOT NULL,
    archived TEXT NOT NULL UNIQUE,
    superseded INTEGER NOT NULL DEFAULT 0,
    device INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    mtime INTEGER NOT NULL,
    size INTEGER NOT NULL,
    head BLOB NOT NULL,
    tail BLOB NOT NULL,
    parsed INTEGER NOT NULL DEFAULT 0,
    pending INTEGER NOT NULL DEFAULT 0,
    lines INTEGER NOT NULL DEFAULT 0,
    coverage TEXT NOT NULL DEFAULT '{}',
    resume TEXT NOT NULL DEFAULT '[1, 0, 0, {}]'
);
CREATE UNIQUE INDEX source_path ON source (path) WHERE NOT superseded;
CREATE TABLE record (
    id TEXT PRIMARY KEY,
    source INTEGER NOT NULL REFERENCES source,
    line INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE item (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    session INTEGER NOT NULL REFERENCES session,
    at INTEGER,
    embedded TEXT
);
CREATE INDEX item_session ON item (session);
CREATE INDEX item_embedded ON item (embedded);
CREATE TABLE exchange (
    item INTEGER PRIMARY KEY REFERENCES item ON DELETE CASCADE,
    source INTEGER NOT NULL REFERENCES source,
    ordinal INTEGER NOT NULL,
    start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL,
    start_byte INTEGER NOT NULL,
    end_byte INTEGER NOT NULL,
    cwd TEXT NOT NULL,
    branch TEXT NOT NULL,
    ended INTEGER,
    tokens_in INTEGER NOT NULL,
    tokens_out INTEGER NOT NULL,
    turns BLOB NOT NULL,
    observed TEXT,
    UNIQUE (source, ordinal)
);
CREATE INDEX exchange_observed ON exchange (observed);
CREATE TABLE observation (
    item INTEGER PRIMARY KEY REFERENCES item ON DELETE CASCADE,
    exchange INTEGER NOT NULL REFERENCES exchange ON DELETE CASCADE,
    type TEXT NOT NULL,
    title TEXT NOT NULL,
    subtitle TEXT NOT NULL,
    narrative TEXT NOT NULL,
    facts TEXT NOT NULL,
    concepts TEXT NOT NULL,
    files_read TEXT NOT NULL,
    files_modified TEXT NOT NULL,
    evidence TEXT NOT NULL,
    origin TEXT NOT NULL,
    extractor TEXT NOT NULL,
    price INTEGER NOT NULL
);
CREATE INDEX observation_exchange ON observation (exchange);
CREATE TABLE vector (
    item INTEGER NOT NULL REFERENCES item ON DELETE CASCADE,
    part INTEGER NOT NULL CHECK (part BETWEEN 0 AND 255),
    model TEXT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (item, part)
) WITHOUT ROWID;
CREATE TABLE problem (
    path BLOB PRIMARY KEY,
    reason TEXT NOT NULL,
    at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE lease (
    name TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    at INTEGER NOT NULL
) WITHOUT ROWID;
"""

JOBS_AND_LEDGER: Final = """
CREATE TABLE batch (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    token TEXT NOT NULL UNIQUE,
    name TEXT,
    at INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('intended', 'sent', 'ended'))
);
CREATE TABLE job (
    exchange INTEGER PRIMARY KEY REFERENCES exchange ON DELETE CASCADE,
    digest TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'leased', 'sent', 'done', 'dead')),
    attempts INTEGER NOT NULL DEFAULT 0,
    due INTEGER NOT NULL,
    batch INTEGER REFERENCES batch,
    outcome TEXT NOT NULL DEFAULT '',
    refused INTEGER NOT NULL DEFAULT 0,
    reason TEXT NOT NULL DEFAULT '',
    reply TEXT NOT NULL DEFAULT ''
);
CREATE INDEX job_state ON job (state, due);
CREATE INDEX job_batch ON job (batch) WHERE batch IS NOT NULL;
CREATE TABLE call (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run TEXT NOT NULL,
    at INTEGER NOT NULL,
    model TEXT NOT NULL,
    reason TEXT NOT NULL,
    exchange INTEGER NOT NULL,
    digest TEXT NOT NULL,
    batch INTEGER REFERENCES batch,
    state TEXT NOT NULL CHECK (state IN ('reserved', 'settled', 'released')),
    cost INTEGER NOT NULL,
    tokens_in INTEGER NOT NULL DEFAULT 0,
    cache_written INTEGER NOT NULL DEFAULT 0,
    cache_read INTEGER NOT NULL DEFAULT 0,
    tokens_out INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX call_at ON call (at);
CREATE INDEX call_batch ON call (batch) WHERE batch IS NOT NULL;
"""

MEMORIES: Final = """
ALTER TABLE item ALTER COLUMN session DROP NOT NULL;
CREATE TABLE memory (
    item INTEGER PRIMARY KEY REFERENCES item ON DELETE CASCADE,
    content TEXT NOT NULL,
    type TEXT NOT NULL,
    title TEXT NOT NULL,
    namespace TEXT NOT NULL,
    project TEXT NOT NULL,
    level TEXT NOT NULL,
    importance REAL NOT NULL,
    tags TEXT NOT NULL,
    metadata TEXT NOT NULL,
    source TEXT NOT NULL,
    origin TEXT NOT NULL,
    session_id TEXT NOT NULL,
    path TEXT NOT NULL,
    pinned INTEGER NOT NULL,
    valid_from INTEGER,
    valid_until INTEGER,
    family TEXT NOT NULL,
    hash TEXT NOT NULL,
    confidence REAL NOT NULL,
    successes INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    strikes INTEGER NOT NULL,
    promoted_from TEXT NOT NULL,
    state TEXT NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    accessed INTEGER,
    accesses INTEGER NOT NULL DEFAULT 0,
    decayed INTEGER
);
CREATE UNIQUE INDEX memory_claim ON memory (namespace, family, hash) WHERE state = 'active' AND path = '';
CREATE UNIQUE INDEX memory_path ON memory (path) WHERE state = 'active' AND path != '';
CREATE INDEX memory_scope ON memory (state, namespace, type, valid_until, valid_from);
CREATE INDEX memory_created ON memory (state, created);
CREATE INDEX memory_updated ON memory (state, updated);
CREATE INDEX memory_accessed ON memory (state, accessed);
CREATE INDEX memory_importance ON memory (state, importance);
CREATE INDEX memory_confidence ON memory (state, confidence);
CREATE TABLE memory_tag (
    tag TEXT NOT NULL,
    memory INTEGER NOT NULL REFERENCES memory ON DELETE CASCADE,
    PRIMARY KEY (tag, memory)
) WITHOUT ROWID;
CREATE INDEX memory_tag_memory ON memory_tag (memory);
CREATE TABLE memory_event (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    memory INTEGER NOT NULL REFERENCES memory ON DELETE CASCADE,
    kind TEXT NOT NULL,
    at INTEGER NOT NULL,
    context TEXT NOT NULL,
    session_id TEXT NOT NULL,
    before TEXT NOT NULL
);
CREATE INDEX memory_event_memory ON memory_event (memory, id);
CREATE TABLE memory_edge (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    source INTEGER NOT NULL REFERENCES memory ON DELETE CASCADE,
    target INTEGER NOT NULL REFERENCES memory ON DELETE CASCADE,
    relation TEXT NOT NULL,
    weight REAL NOT NULL,
    reason TEXT NOT NULL,
    inferred INTEGER NOT NULL,
    UNIQUE (source, target, relation)
);
CREATE INDEX memory_edge_target ON memory_edge (target);
"""
