CREATE TABLE forgetting (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('kept', 'erasing', 'erased'))
);
CREATE TABLE tombstone (
    mark INTEGER NOT NULL,
    forgetting INTEGER NOT NULL REFERENCES forgetting,
    PRIMARY KEY (mark, forgetting)
) WITHOUT ROWID;
CREATE INDEX tombstone_forgetting ON tombstone (forgetting);
CREATE TABLE erasure (
    archived TEXT PRIMARY KEY,
    forgetting INTEGER NOT NULL REFERENCES forgetting,
    whole INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE emptied (
    mark INTEGER PRIMARY KEY,
    mtime INTEGER NOT NULL,
    size INTEGER NOT NULL
);
