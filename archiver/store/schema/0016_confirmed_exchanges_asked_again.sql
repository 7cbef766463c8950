-- When an observation is deleted, a language model is asked again about the exchanges that confirmed it.
DROP TRIGGER observation_gone;
CREATE TRIGGER observation_gone BEFORE DELETE ON observation WHEN OLD.scope = 'exchange' BEGIN
    DELETE FROM job WHERE state = 'done' AND exchange IN (
        SELECT e.item FROM confirmation c JOIN exchange e ON e.item = c.exchange
        WHERE c.observation = OLD.item AND e.observed <> 'llm:renounced');
    UPDATE exchange SET observed = NULL
        WHERE item IN (SELECT exchange FROM confirmation WHERE observation = OLD.item)
        AND observed <> 'llm:renounced';
    INSERT INTO change (entity, id) SELECT 'item', s.item FROM summary s JOIN item i ON i.session = s.session
        WHERE i.key = OLD.exchange;
    DELETE FROM item WHERE key IN (SELECT s.item FROM summary s JOIN item i ON i.session = s.session
        WHERE i.key = OLD.exchange);
END;
