-- Extraction opt-outs, by exchange, so that undo can revert them. Every deletion that covered only observations may
-- have been one. An opt-out without a deletion was undone.
CREATE TABLE renounced (
    forgetting INTEGER NOT NULL REFERENCES forgetting ON DELETE CASCADE,
    exchange INTEGER NOT NULL REFERENCES exchange ON DELETE CASCADE,
    PRIMARY KEY (forgetting, exchange)
) WITHOUT ROWID;
CREATE INDEX renounced_exchange ON renounced (exchange);
INSERT INTO renounced (forgetting, exchange)
    SELECT f.id, e.item FROM forgetting f JOIN exchange e ON e.observed = 'llm:renounced'
    WHERE coalesce(json_extract(f.told, '$.exchanges'), 0) = 0
        AND coalesce(json_extract(f.told, '$.observations'), 1) > 0;
UPDATE exchange SET observed = NULL
    WHERE observed = 'llm:renounced' AND item NOT IN (SELECT exchange FROM renounced);
