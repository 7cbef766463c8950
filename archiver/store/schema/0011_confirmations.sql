-- When an observation is deleted, the exchanges that confirmed it are observed again and the summary of its session is
-- rebuilt.
ALTER TABLE exchange ADD COLUMN refused INTEGER NOT NULL DEFAULT 0;
ALTER TABLE observation ADD COLUMN scope TEXT NOT NULL DEFAULT 'exchange';
ALTER TABLE observation ADD COLUMN mark TEXT NOT NULL DEFAULT '';
CREATE INDEX observation_mark ON observation (mark) WHERE mark != '';
CREATE TABLE confirmation (
    observation INTEGER NOT NULL REFERENCES observation ON DELETE CASCADE,
    exchange INTEGER NOT NULL REFERENCES exchange ON DELETE CASCADE,
    evidence TEXT NOT NULL,
    PRIMARY KEY (observation, exchange)
) WITHOUT ROWID;
CREATE INDEX confirmation_exchange ON confirmation (exchange);
CREATE TABLE summary (
    session INTEGER PRIMARY KEY REFERENCES session ON DELETE CASCADE,
    item INTEGER NOT NULL REFERENCES item ON DELETE CASCADE
);
CREATE INDEX summary_item ON summary (item);
CREATE TRIGGER observation_gone BEFORE DELETE ON observation WHEN OLD.scope = 'exchange' BEGIN
    UPDATE exchange SET observed = NULL
        WHERE item IN (SELECT exchange FROM confirmation WHERE observation = OLD.item)
        AND observed NOT LIKE 'llm:%';
    INSERT INTO change (entity, id) SELECT 'item', s.item FROM summary s JOIN item i ON i.session = s.session
        WHERE i.key = OLD.exchange;
    DELETE FROM item WHERE key IN (SELECT s.item FROM summary s JOIN item i ON i.session = s.session
        WHERE i.key = OLD.exchange);
END;
