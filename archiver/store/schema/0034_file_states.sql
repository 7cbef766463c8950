-- Keyed hashes of the files that a live exchange read or modified, taken when it was observed. `path` is the path as
-- observations cite it, `file` the absolute path.
CREATE TABLE file_state (
    exchange INTEGER NOT NULL REFERENCES exchange ON DELETE CASCADE,
    path TEXT NOT NULL,
    file TEXT NOT NULL,
    hash BLOB NOT NULL,
    PRIMARY KEY (exchange, path)
) WITHOUT ROWID;
