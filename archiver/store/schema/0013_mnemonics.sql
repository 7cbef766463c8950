CREATE TABLE mnemonic (
    path TEXT PRIMARY KEY,
    memory INTEGER REFERENCES memory ON DELETE SET NULL,
    digest TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    declared TEXT NOT NULL,
    created TEXT NOT NULL,
    gone INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX mnemonic_memory ON mnemonic (memory);
