-- What the user calls a session, and how the user sorts it.
CREATE TABLE session_label (
    session INTEGER PRIMARY KEY REFERENCES session ON DELETE CASCADE,
    title TEXT NOT NULL DEFAULT '',
    pinned INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE session_tag (
    tag TEXT NOT NULL,
    session INTEGER NOT NULL REFERENCES session ON DELETE CASCADE,
    PRIMARY KEY (tag, session)
) WITHOUT ROWID;
CREATE INDEX session_tag_session ON session_tag (session);
