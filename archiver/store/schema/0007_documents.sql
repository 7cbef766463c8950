CREATE TABLE document (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    path BLOB NOT NULL,
    namespace TEXT NOT NULL,
    language TEXT NOT NULL,
    digest BLOB NOT NULL,
    at INTEGER NOT NULL,
    UNIQUE (path, namespace)
);
CREATE TABLE chunk (
    item INTEGER PRIMARY KEY REFERENCES item ON DELETE CASCADE,
    document INTEGER NOT NULL REFERENCES document,
    ordinal INTEGER NOT NULL,
    text TEXT NOT NULL,
    kind TEXT NOT NULL,
    start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL,
    page INTEGER NOT NULL,
    header_path TEXT NOT NULL,
    unit TEXT NOT NULL,
    name TEXT NOT NULL,
    signature TEXT NOT NULL
);
CREATE INDEX chunk_document ON chunk (document, ordinal);
CREATE TABLE waiting_file (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    path BLOB NOT NULL,
    namespace TEXT NOT NULL,
    root BLOB NOT NULL,
    problem TEXT NOT NULL DEFAULT '',
    hint TEXT NOT NULL DEFAULT '',
    UNIQUE (path, namespace)
);
