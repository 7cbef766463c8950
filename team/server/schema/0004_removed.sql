-- People who were removed, and whether a server needs a store of full copies.

SET ROLE palaver_owner;

-- Removed people keep their row, because the records of their deletion belong to it. A new invitation clears `removed`.
ALTER TABLE palaver.person ADD removed timestamptz;
UPDATE palaver.person AS person SET removed = latest.at
    FROM (SELECT DISTINCT ON (team, person) team, person, action, at FROM palaver.audit
        WHERE action IN ('invite', 'remove') ORDER BY team, person, at DESC) AS latest
    WHERE latest.team = person.team AND latest.person = person.id AND latest.action = 'remove';

CREATE POLICY find ON palaver.raw_object FOR SELECT TO palaver_finder USING (NOT withdrawn);
GRANT SELECT (withdrawn) ON palaver.raw_object TO palaver_finder;

RESET ROLE;
GRANT CREATE ON SCHEMA palaver TO palaver_finder;

-- A server starts without a team, and then sees no row of the table.
SET ROLE palaver_finder;
CREATE FUNCTION palaver.has_full_copies() RETURNS boolean
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT EXISTS (SELECT FROM palaver.raw_object WHERE NOT withdrawn) $$;
REVOKE ALL ON FUNCTION palaver.has_full_copies FROM PUBLIC;
GRANT EXECUTE ON FUNCTION palaver.has_full_copies TO palaver_app;

RESET ROLE;
REVOKE CREATE ON SCHEMA palaver FROM palaver_finder;
