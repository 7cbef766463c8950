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
