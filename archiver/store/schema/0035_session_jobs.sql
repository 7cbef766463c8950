-- A job asks a model about an exchange, or about the session whose first exchange it names.
DROP TRIGGER observation_gone;
CREATE TABLE jobs (
    exchange INTEGER NOT NULL REFERENCES exchange ON DELETE CASCADE,
    kind TEXT NOT NULL DEFAULT 'exchange' CHECK (kind IN ('exchange', 'session')),
    digest TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'leased', 'sent', 'done', 'dead')),
    attempts INTEGER NOT NULL DEFAULT 0,
    due INTEGER NOT NULL,
    batch INTEGER REFERENCES batch,
    outcome TEXT NOT NULL DEFAULT '',
    refused INTEGER NOT NULL DEFAULT 0,
    reason TEXT NOT NULL DEFAULT '',
    reply TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (exchange, kind)
);
INSERT INTO jobs (exchange, digest, state, attempts, due, batch, outcome, refused, reason, reply)
    SELECT exchange, digest, state, attempts, due, batch, outcome, refused, reason, reply FROM job;
DROP TABLE job;
ALTER TABLE jobs RENAME TO job;
CREATE INDEX job_state ON job (state, due);
CREATE INDEX job_batch ON job (batch) WHERE batch IS NOT NULL;
-- Summaries by rules consist of observations, so they are deleted with any of these. Summaries by a model quote lines.
CREATE TRIGGER observation_gone BEFORE DELETE ON observation WHEN OLD.scope = 'exchange' BEGIN
    DELETE FROM job WHERE state = 'done' AND kind = 'exchange' AND exchange IN (
        SELECT e.item FROM confirmation c JOIN exchange e ON e.item = c.exchange
        WHERE c.observation = OLD.item AND e.observed <> 'llm:renounced');
    UPDATE exchange SET observed = NULL
        WHERE item IN (SELECT exchange FROM confirmation WHERE observation = OLD.item)
        AND observed <> 'llm:renounced';
    INSERT INTO change (entity, id) SELECT 'item', s.item FROM summary s JOIN item i ON i.session = s.session
        JOIN observation o ON o.item = s.item WHERE i.key = OLD.exchange AND o.extractor NOT LIKE 'llm-session:%';
    DELETE FROM item WHERE key IN (SELECT s.item FROM summary s JOIN item i ON i.session = s.session
        JOIN observation o ON o.item = s.item WHERE i.key = OLD.exchange AND o.extractor NOT LIKE 'llm-session:%');
END;
