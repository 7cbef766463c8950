-- The sessions without a card of the current prompt are the queue. The ledger records how each reply was used.
DROP TRIGGER observation_gone;
CREATE TABLE calls (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run TEXT NOT NULL,
    at INTEGER NOT NULL,
    model TEXT NOT NULL,
    reason TEXT NOT NULL,
    exchange INTEGER NOT NULL,
    digest TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('reserved', 'settled', 'released')),
    outcome TEXT NOT NULL DEFAULT '',
    cost INTEGER NOT NULL,
    tokens_in INTEGER NOT NULL DEFAULT 0,
    cache_written INTEGER NOT NULL DEFAULT 0,
    cache_read INTEGER NOT NULL DEFAULT 0,
    tokens_out INTEGER NOT NULL DEFAULT 0
);
INSERT INTO calls (id, run, at, model, reason, exchange, digest, state, cost, tokens_in, cache_written, cache_read,
                   tokens_out)
    SELECT id, run, at, model, reason, exchange, digest, state, cost, tokens_in, cache_written, cache_read, tokens_out
    FROM call;
DROP TABLE call;
ALTER TABLE calls RENAME TO call;
CREATE INDEX call_at ON call (at);
CREATE INDEX call_digest ON call (digest);
DROP TABLE job;
DROP TABLE batch;
-- Cards by rules consist of observations, so they are deleted with any of these. Cards by a model quote lines.
CREATE TRIGGER observation_gone BEFORE DELETE ON observation WHEN OLD.scope = 'exchange' BEGIN
    UPDATE exchange SET observed = NULL
        WHERE item IN (SELECT exchange FROM confirmation WHERE observation = OLD.item)
        AND observed <> 'llm:renounced';
    INSERT INTO change (entity, id) SELECT 'item', s.item FROM summary s JOIN item i ON i.session = s.session
        JOIN observation o ON o.item = s.item WHERE i.key = OLD.exchange AND o.extractor NOT LIKE 'llm-session:%';
    DELETE FROM item WHERE key IN (SELECT s.item FROM summary s JOIN item i ON i.session = s.session
        JOIN observation o ON o.item = s.item WHERE i.key = OLD.exchange AND o.extractor NOT LIKE 'llm-session:%');
END;
