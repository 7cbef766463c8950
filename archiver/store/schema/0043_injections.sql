-- Text that hooks injected into sessions: what was shown, not the text itself.
CREATE TABLE injection (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    event TEXT NOT NULL,
    session_id TEXT NOT NULL,
    project TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    items TEXT NOT NULL
);
CREATE INDEX injection_session ON injection (session_id);
