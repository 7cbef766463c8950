-- Token costs of reading the turns of an exchange, as JSON. NULL until they are computed from the current turns.
ALTER TABLE exchange ADD COLUMN turn_costs BLOB;
CREATE INDEX exchange_without_costs ON exchange (item) WHERE turn_costs IS NULL;
CREATE TRIGGER exchange_costs_outdated AFTER UPDATE OF turns ON exchange WHEN OLD.turns IS NOT NEW.turns BEGIN
    UPDATE exchange SET turn_costs = NULL WHERE item = NEW.item;
END;
