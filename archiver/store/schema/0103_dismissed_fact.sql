-- Open items and next steps of session cards that the user dismissed: a hash of the text of each.
CREATE TABLE dismissed_fact (
    session INTEGER NOT NULL REFERENCES session ON DELETE CASCADE,
    hash BLOB NOT NULL,
    PRIMARY KEY (session, hash)
) WITHOUT ROWID;
