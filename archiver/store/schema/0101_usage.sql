-- Token usage of each reply as each source records it, and the state in which a source was last read for it.
CREATE TABLE usage (
    source INTEGER NOT NULL REFERENCES source ON DELETE CASCADE,
    message TEXT NOT NULL,
    request TEXT NOT NULL,
    line INTEGER NOT NULL,
    at INTEGER,
    model TEXT NOT NULL,
    branch TEXT NOT NULL,
    partial INTEGER NOT NULL,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    cache_read INTEGER NOT NULL,
    cache_write_5m INTEGER NOT NULL,
    cache_write_1h INTEGER NOT NULL,
    PRIMARY KEY (source, message, request)
) WITHOUT ROWID;
CREATE TABLE usage_read (
    source INTEGER PRIMARY KEY REFERENCES source ON DELETE CASCADE,
    state TEXT NOT NULL,
    byte INTEGER NOT NULL,
    line INTEGER NOT NULL,
    context TEXT NOT NULL
);
-- A source is scheduled to be read again after a deletion or its undo. Until then, its counts are hidden.
CREATE TRIGGER usage_outdated AFTER UPDATE OF rules ON source WHEN NEW.rules = '' BEGIN
    DELETE FROM usage WHERE source = NEW.id;
    DELETE FROM usage_read WHERE source = NEW.id;
END;
