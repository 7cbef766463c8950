-- Keyed by position, so that an exchange restored after a deletion keeps its opt-out; `origins` limits it.
DROP INDEX renounced_exchange;
ALTER TABLE renounced RENAME TO renounced_before;
CREATE TABLE renounced (
    forgetting INTEGER NOT NULL REFERENCES forgetting ON DELETE CASCADE,
    source INTEGER NOT NULL REFERENCES source ON DELETE CASCADE,
    start_line INTEGER NOT NULL,
    size INTEGER NOT NULL,
    origins TEXT NOT NULL,
    PRIMARY KEY (source, start_line, forgetting)
) WITHOUT ROWID;
CREATE INDEX renounced_forgetting ON renounced (forgetting);
INSERT INTO renounced (forgetting, source, start_line, size, origins)
    SELECT r.forgetting, e.source, e.start_line, length(e.turns), '[]'
    FROM renounced_before r JOIN exchange e ON e.item = r.exchange WHERE e.observed = 'llm:renounced';
DROP TABLE renounced_before;
