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
