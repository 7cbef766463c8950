-- Keyed by position, so that an exchange restored after a deletion finds its repetitions. Sources archived before are
-- read again if they have repeated lines.
CREATE TABLE repetition (
    source INTEGER NOT NULL REFERENCES source ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    elsewhere INTEGER NOT NULL REFERENCES source ON DELETE CASCADE,
    start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL,
    PRIMARY KEY (source, ordinal, elsewhere)
) WITHOUT ROWID;
CREATE INDEX repetition_elsewhere ON repetition (elsewhere);
UPDATE source SET rules = '' WHERE coverage ->> '$.repeated' > 0;
