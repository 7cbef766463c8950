-- Full copies of exchanges. Their texts are in the raw store, encrypted: an item of the kind 'raw' has the name of its
-- object there as its body.

SET ROLE palaver_owner;

-- Objects of the raw store. `withdrawn` ones belong to no item any more, and are to be deleted. The owner reads this
-- table to delete them, and sees no item.
CREATE TABLE palaver.raw_object (
    team uuid NOT NULL,
    name text NOT NULL,
    person uuid NOT NULL,
    withdrawn boolean NOT NULL DEFAULT false,
    PRIMARY KEY (team, name)
);
CREATE INDEX ON palaver.raw_object (team, person) WHERE withdrawn;
ALTER TABLE palaver.raw_object ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY administer ON palaver.raw_object TO palaver_owner USING (true);
CREATE POLICY own ON palaver.raw_object TO palaver_app
    USING (team = (SELECT palaver.team()) AND person = (SELECT palaver.person()));
GRANT SELECT, INSERT, UPDATE, DELETE ON palaver.raw_object TO palaver_app;

-- Keep the table above in step with the items, whichever statement adds, replaces or deletes them.
CREATE FUNCTION palaver.list_raw_object() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, palaver, pg_temp
    AS $$
    BEGIN
        IF TG_OP <> 'INSERT' AND OLD.kind = 'raw' THEN
            INSERT INTO palaver.raw_object VALUES (OLD.team, convert_from(OLD.body, 'UTF8'), OLD.person, true)
                ON CONFLICT (team, name) DO UPDATE SET withdrawn = true;
        END IF;
        IF TG_OP <> 'DELETE' AND NEW.kind = 'raw' THEN
            INSERT INTO palaver.raw_object VALUES (NEW.team, convert_from(NEW.body, 'UTF8'), NEW.person, false)
                ON CONFLICT (team, name) DO UPDATE SET withdrawn = false;
        END IF;
        RETURN NULL;
    END
    $$;
REVOKE ALL ON FUNCTION palaver.list_raw_object FROM PUBLIC;
GRANT EXECUTE ON FUNCTION palaver.list_raw_object TO palaver_app;
CREATE TRIGGER list_raw_object_of_new AFTER INSERT ON palaver.item FOR EACH ROW
    WHEN (NEW.kind = 'raw') EXECUTE FUNCTION palaver.list_raw_object();
CREATE TRIGGER list_raw_object_of_changed AFTER UPDATE ON palaver.item FOR EACH ROW
    WHEN (OLD.kind = 'raw' OR NEW.kind = 'raw') EXECUTE FUNCTION palaver.list_raw_object();
CREATE TRIGGER list_raw_object_of_deleted AFTER DELETE ON palaver.item FOR EACH ROW
    WHEN (OLD.kind = 'raw') EXECUTE FUNCTION palaver.list_raw_object();

RESET ROLE;
