-- Observations that a later observation of their session replaces, and the line that says so.
CREATE TABLE replacement (
    earlier INTEGER PRIMARY KEY REFERENCES observation ON DELETE CASCADE,
    later INTEGER NOT NULL REFERENCES observation ON DELETE CASCADE,
    line INTEGER NOT NULL
);
CREATE INDEX replacement_later ON replacement (later);
