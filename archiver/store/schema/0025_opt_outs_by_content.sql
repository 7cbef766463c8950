-- Keyed by marks of the content, so that an opt-out holds wherever the content occurs. Positions are converted when
-- they are read.
CREATE TABLE renunciation (
    mark INTEGER NOT NULL,
    forgetting INTEGER NOT NULL REFERENCES forgetting ON DELETE CASCADE,
    origins TEXT NOT NULL,
    PRIMARY KEY (mark, forgetting)
) WITHOUT ROWID;
CREATE INDEX renunciation_forgetting ON renunciation (forgetting);
