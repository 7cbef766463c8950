-- Roles, teams, people, machines, and the items that people share.
--
-- Roles belong to the whole PostgreSQL server, so they can exist already. The server of Palaver connects as
-- `palaver_app`, which owns nothing and is bound by the policies. `palaver_finder` and `palaver_metrics` own only the
-- functions and views through which rows are read without the policies of `palaver_app`.

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['palaver_owner', 'palaver_finder', 'palaver_metrics', 'palaver_app'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) THEN
            EXECUTE format('CREATE ROLE %I NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS %s', name,
                CASE name WHEN 'palaver_app' THEN 'LOGIN' ELSE 'NOLOGIN' END);
        END IF;
        IF name <> 'palaver_app' AND NOT pg_has_role(name, 'SET') THEN
            EXECUTE format('GRANT %I TO CURRENT_USER', name);
        END IF;
    END LOOP;
END
$$;

GRANT USAGE, CREATE ON SCHEMA palaver TO palaver_owner;
GRANT USAGE ON SCHEMA palaver TO palaver_app, palaver_finder, palaver_metrics;

SET ROLE palaver_owner;

-- Team and person of this transaction. A setting is empty, not NULL, in a later transaction of the same connection.
CREATE FUNCTION palaver.team() RETURNS uuid LANGUAGE sql STABLE
    RETURN nullif(current_setting('palaver.team', true), '')::uuid;
CREATE FUNCTION palaver.person() RETURNS uuid LANGUAGE sql STABLE
    RETURN nullif(current_setting('palaver.person', true), '')::uuid;

CREATE TABLE palaver.team (
    id uuid PRIMARY KEY,
    name text NOT NULL UNIQUE,
    created timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE palaver.person (
    team uuid NOT NULL REFERENCES palaver.team,
    id uuid NOT NULL,
    name text NOT NULL,
    PRIMARY KEY (team, id),
    UNIQUE (team, name)
);

-- Secrets are stored as SHA-256.
CREATE TABLE palaver.invitation (
    team uuid NOT NULL,
    person uuid NOT NULL,
    hash bytea NOT NULL,
    expires timestamptz NOT NULL,
    PRIMARY KEY (team, hash)
);
CREATE UNIQUE INDEX ON palaver.invitation (hash);

-- `batch` is the SHA-256 of the last batch. `earlier_epochs` are those that a new epoch replaced: a machine that still
-- uses one is a copy of another machine.
CREATE TABLE palaver.device (
    team uuid NOT NULL,
    id uuid NOT NULL,
    person uuid NOT NULL,
    name text NOT NULL,
    key bytea NOT NULL,
    epoch uuid NOT NULL,
    cursor bigint NOT NULL DEFAULT 0,
    batch bytea,
    earlier_epochs uuid[] NOT NULL DEFAULT '{}',
    revoked timestamptz,
    PRIMARY KEY (team, id)
);
CREATE UNIQUE INDEX ON palaver.device (id);

CREATE TABLE palaver.challenge (
    team uuid NOT NULL,
    hash bytea NOT NULL,
    device uuid NOT NULL,
    expires timestamptz NOT NULL,
    PRIMARY KEY (team, hash)
);

CREATE TABLE palaver.token (
    team uuid NOT NULL,
    hash bytea NOT NULL,
    person uuid NOT NULL,
    device uuid,
    scopes text[] NOT NULL,
    audience text NOT NULL,
    expires timestamptz NOT NULL,
    PRIMARY KEY (team, hash)
);
CREATE UNIQUE INDEX ON palaver.token (hash);

CREATE TABLE palaver.audit (
    team uuid NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    person uuid,
    action text NOT NULL,
    target text NOT NULL
);
CREATE INDEX ON palaver.audit (team, at);

CREATE SEQUENCE palaver.item_key;
GRANT USAGE ON SEQUENCE palaver.item_key TO palaver_app;

-- Visibility 1: only the person, 2: the team.
CREATE TABLE palaver.item (
    team uuid NOT NULL,
    key bigint NOT NULL DEFAULT nextval('palaver.item_key'),
    id uuid NOT NULL,
    person uuid NOT NULL,
    device uuid NOT NULL,
    visibility smallint NOT NULL,
    kind text NOT NULL,
    project_id text NOT NULL,
    project text NOT NULL,
    session uuid,
    event uuid,
    at bigint,
    path text NOT NULL,
    body bytea NOT NULL,
    hash text NOT NULL,
    seq bigint NOT NULL,
    PRIMARY KEY (team, key),
    UNIQUE (team, id)
) PARTITION BY HASH (team);
CREATE INDEX ON palaver.item (team, session);
CREATE INDEX ON palaver.item (team, event);
CREATE INDEX ON palaver.item (team, person, id);

-- Withdrawn items, by the machine that withdrew them.
CREATE TABLE palaver.gone (
    team uuid NOT NULL,
    person uuid NOT NULL,
    id uuid NOT NULL,
    device uuid NOT NULL,
    seq bigint NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (team, person, id)
) PARTITION BY HASH (team);

-- Deletions whose bytes may still be on disk. `cleaned` is when the owner rewrote the tables.
CREATE TABLE palaver.erasure (
    team uuid NOT NULL,
    id bigint GENERATED ALWAYS AS IDENTITY,
    person uuid NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    items bigint NOT NULL,
    cleaned timestamptz,
    PRIMARY KEY (team, id)
);
CREATE INDEX ON palaver.erasure (team, person);

DO $$
DECLARE
    parent text;
    own text := 'team = (SELECT palaver.team()) AND person = (SELECT palaver.person())';
BEGIN
    FOREACH parent IN ARRAY ARRAY['item', 'gone'] LOOP
        FOR number IN 0..15 LOOP
            EXECUTE format('CREATE TABLE palaver.%s_%s PARTITION OF palaver.%1$s FOR VALUES WITH (MODULUS 16, REMAINDER %2$s)',
                parent, number);
            EXECUTE format('ALTER TABLE palaver.%s_%s ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY',
                parent, number);
        END LOOP;
    END LOOP;
    FOREACH parent IN ARRAY ARRAY[
        'team', 'person', 'invitation', 'device', 'challenge', 'token', 'audit', 'item', 'gone', 'erasure'
    ] LOOP
        EXECUTE format('ALTER TABLE palaver.%s ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', parent);
    END LOOP;
    -- The owner administers identities, and sees no item.
    FOREACH parent IN ARRAY ARRAY['team', 'person', 'invitation', 'device', 'challenge', 'token', 'audit', 'erasure'] LOOP
        EXECUTE format('CREATE POLICY administer ON palaver.%s TO palaver_owner USING (true)', parent);
    END LOOP;
    FOREACH parent IN ARRAY ARRAY['person', 'invitation', 'device', 'challenge', 'token', 'audit'] LOOP
        EXECUTE format('CREATE POLICY team ON palaver.%s TO palaver_app USING (team = (SELECT palaver.team()))', parent);
    END LOOP;
    FOREACH parent IN ARRAY ARRAY['gone', 'erasure'] LOOP
        EXECUTE format('CREATE POLICY own ON palaver.%s TO palaver_app USING (%s)', parent, own);
    END LOOP;
    EXECUTE format(
        'CREATE POLICY read ON palaver.item FOR SELECT TO palaver_app
         USING (team = (SELECT palaver.team()) AND (visibility = 2 OR person = (SELECT palaver.person())))');
    EXECUTE format('CREATE POLICY add ON palaver.item FOR INSERT TO palaver_app WITH CHECK (%s)', own);
    EXECUTE format('CREATE POLICY change ON palaver.item FOR UPDATE TO palaver_app USING (%s)', own);
    EXECUTE format('CREATE POLICY remove ON palaver.item FOR DELETE TO palaver_app USING (%s)', own);
END
$$;
CREATE POLICY own ON palaver.team FOR SELECT TO palaver_app USING (id = (SELECT palaver.team()));

GRANT SELECT ON palaver.team, palaver.person TO palaver_app;
GRANT SELECT, DELETE ON palaver.invitation TO palaver_app;
GRANT SELECT, INSERT ON palaver.device TO palaver_app;
GRANT UPDATE (epoch, cursor, batch, earlier_epochs, revoked) ON palaver.device TO palaver_app;
GRANT SELECT, INSERT, DELETE ON palaver.challenge, palaver.token TO palaver_app;
GRANT INSERT ON palaver.audit TO palaver_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON palaver.item, palaver.gone TO palaver_app;
GRANT SELECT, INSERT ON palaver.erasure TO palaver_app;

-- A request names a secret or a machine before its team is known. These functions return only the ID of the team.
CREATE POLICY find ON palaver.invitation FOR SELECT TO palaver_finder USING (true);
CREATE POLICY find ON palaver.device FOR SELECT TO palaver_finder USING (true);
CREATE POLICY find ON palaver.token FOR SELECT TO palaver_finder USING (true);
GRANT SELECT (team, hash) ON palaver.invitation, palaver.token TO palaver_finder;
GRANT SELECT (team, id) ON palaver.device TO palaver_finder;

-- The view of metrics reads use of all people of the team. It omits groups of fewer than three people, and it has one
-- grouping, so that the difference of two totals reveals no smaller group.
CREATE POLICY count ON palaver.item FOR SELECT TO palaver_metrics
    USING (team = (SELECT palaver.team()) AND kind = 'usage');
GRANT SELECT (team, person, kind, project_id, project, body) ON palaver.item TO palaver_metrics;

RESET ROLE;
GRANT CREATE ON SCHEMA palaver TO palaver_finder, palaver_metrics;

SET ROLE palaver_finder;
CREATE FUNCTION palaver.team_of_invitation(secret bytea) RETURNS uuid
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT team FROM palaver.invitation WHERE hash = secret $$;
CREATE FUNCTION palaver.team_of_token(secret bytea) RETURNS uuid
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT team FROM palaver.token WHERE hash = secret $$;
CREATE FUNCTION palaver.team_of_device(device uuid) RETURNS uuid
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT team FROM palaver.device AS row WHERE row.id = device $$;
REVOKE ALL ON FUNCTION palaver.team_of_invitation, palaver.team_of_token, palaver.team_of_device FROM PUBLIC;
GRANT EXECUTE ON FUNCTION palaver.team_of_invitation, palaver.team_of_token, palaver.team_of_device TO palaver_app;

SET ROLE palaver_metrics;
CREATE VIEW palaver.metrics WITH (security_barrier) AS
    SELECT project, day, agent, model, count(DISTINCT person) AS people,
        sum(sessions)::bigint AS sessions, sum(exchanges)::bigint AS exchanges, sum(tokens_in)::bigint AS tokens_in,
        sum(tokens_out)::bigint AS tokens_out, sum(nano_dollars)::bigint AS nano_dollars
    FROM (
        SELECT project_id, project, person, usage.*
        FROM palaver.item, jsonb_to_record(convert_from(body, 'UTF8')::jsonb) AS usage (
            day text, agent text, model text, sessions bigint, exchanges bigint, tokens_in bigint, tokens_out bigint,
            nano_dollars bigint)
        WHERE team = palaver.team() AND kind = 'usage'
    ) AS used
    GROUP BY project_id, project, day, agent, model HAVING count(DISTINCT person) >= 3;
GRANT SELECT ON palaver.metrics TO palaver_owner;

RESET ROLE;
REVOKE CREATE ON SCHEMA palaver FROM palaver_finder, palaver_metrics;
