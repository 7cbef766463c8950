-- When each raw copy was last verified, and its fault at that time.
CREATE TABLE inspection (
    source INTEGER PRIMARY KEY REFERENCES source ON DELETE CASCADE,
    at INTEGER NOT NULL,
    fault TEXT NOT NULL
);
