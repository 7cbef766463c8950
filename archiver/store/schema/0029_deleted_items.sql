-- Packed rows of deleted exchanges, while the deletion can be undone. Summaries of sessions have line 0.
CREATE TABLE forgotten_item (
    exchange INTEGER PRIMARY KEY,
    forgetting INTEGER NOT NULL REFERENCES forgetting ON DELETE CASCADE,
    source INTEGER NOT NULL REFERENCES source ON DELETE CASCADE,
    start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL,
    observed TEXT,
    rows BLOB NOT NULL
);
