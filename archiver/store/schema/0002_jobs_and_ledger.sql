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
