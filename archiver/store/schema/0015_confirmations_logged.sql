-- The index entry of an exchange includes what it confirms.
CREATE TRIGGER confirmation_made AFTER INSERT ON confirmation BEGIN
    INSERT INTO change (entity, id) VALUES ('item', NEW.exchange);
END;
CREATE TRIGGER confirmation_gone AFTER DELETE ON confirmation BEGIN
    INSERT INTO change (entity, id) VALUES ('item', OLD.exchange);
END;
INSERT INTO change (entity, id) SELECT DISTINCT 'item', exchange FROM confirmation;
