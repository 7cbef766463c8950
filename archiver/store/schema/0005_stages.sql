CREATE TABLE stage (
    name TEXT PRIMARY KEY,
    succeeded INTEGER,
    problem TEXT NOT NULL DEFAULT '',
    failed INTEGER
) WITHOUT ROWID;
