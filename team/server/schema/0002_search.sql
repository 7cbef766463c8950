-- Search in items: entries (windows of text), terms with their counts, and vectors.

CREATE EXTENSION IF NOT EXISTS vector SCHEMA public;
CREATE EXTENSION IF NOT EXISTS btree_gin SCHEMA public;

SET ROLE palaver_owner;

CREATE SEQUENCE palaver.entry_id;
GRANT USAGE ON SEQUENCE palaver.entry_id TO palaver_app;

-- `stems` contains the stems of the text in order, each between two spaces. `tsv` contains the same stems, and the
-- labels of filters, such as 'project:spoon'. `context` marks the additional window of a short exchange.
CREATE TABLE palaver.entry (
    team uuid NOT NULL,
    id bigint NOT NULL DEFAULT nextval('palaver.entry_id'),
    item bigint NOT NULL,
    event bigint NOT NULL,
    session bigint NOT NULL,
    person uuid NOT NULL,
    visibility smallint NOT NULL,
    path text NOT NULL,
    ordinal integer NOT NULL,
    at bigint NOT NULL,
    start_line integer NOT NULL,
    end_line integer NOT NULL,
    context boolean NOT NULL,
    body text NOT NULL,
    said text NOT NULL,
    stems text NOT NULL,
    length integer NOT NULL,
    model text NOT NULL,
    tsv tsvector NOT NULL,
    PRIMARY KEY (id, team)
) PARTITION BY HASH (team);
CREATE INDEX ON palaver.entry (item);
CREATE INDEX ON palaver.entry (session);
CREATE INDEX ON palaver.entry (at, team);
-- No other index begins with the team: PostgreSQL would read all entries of the team, because it does not count the
-- time to unpack `tsv`. For the same reason, statements that search hide `at` from its index by adding 0.
CREATE INDEX ON palaver.entry USING gin (team, tsv) WITH (fastupdate = off);

-- Number of entries with a term. The term '' has the number of entries, and ' ' their stems.
CREATE TABLE palaver.term (
    team uuid NOT NULL,
    term text COLLATE "C" NOT NULL,
    entries bigint NOT NULL,
    PRIMARY KEY (team, term)
) PARTITION BY HASH (team);

CREATE TABLE palaver.embedding (
    team uuid NOT NULL,
    item bigint NOT NULL,
    event bigint NOT NULL,
    part smallint NOT NULL,
    person uuid NOT NULL,
    visibility smallint NOT NULL,
    model text NOT NULL,
    vec halfvec(384) NOT NULL,
    bits bytea NOT NULL,
    PRIMARY KEY (team, item, part)
) PARTITION BY HASH (team);
CREATE INDEX ON palaver.embedding (team, event);

DO $$
DECLARE
    parent text;
BEGIN
    FOREACH parent IN ARRAY ARRAY['entry', 'term', 'embedding'] LOOP
        FOR number IN 0..15 LOOP
            EXECUTE format(
                'CREATE TABLE palaver.%s_%s PARTITION OF palaver.%s FOR VALUES WITH (MODULUS 16, REMAINDER %s)%s',
                parent, number, parent, number, CASE parent WHEN 'term' THEN ' WITH (fillfactor = 60)' ELSE '' END);
            EXECUTE format(
                'ALTER TABLE palaver.%s_%s ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', parent, number);
        END LOOP;
        EXECUTE format('ALTER TABLE palaver.%s ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', parent);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON palaver.%s TO palaver_app', parent);
    END LOOP;
    FOREACH parent IN ARRAY ARRAY['entry', 'embedding'] LOOP
        EXECUTE format(
            'CREATE POLICY read ON palaver.%s FOR SELECT TO palaver_app
             USING (team = (SELECT palaver.team()) AND (visibility = 2 OR person = (SELECT palaver.person())))', parent);
        EXECUTE format(
            'CREATE POLICY add ON palaver.%s FOR INSERT TO palaver_app
             WITH CHECK (team = (SELECT palaver.team()) AND person = (SELECT palaver.person()))', parent);
        EXECUTE format(
            'CREATE POLICY change ON palaver.%s FOR UPDATE TO palaver_app
             USING (team = (SELECT palaver.team()) AND person = (SELECT palaver.person()))', parent);
        EXECUTE format(
            'CREATE POLICY remove ON palaver.%s FOR DELETE TO palaver_app
             USING (team = (SELECT palaver.team()) AND person = (SELECT palaver.person()))', parent);
    END LOOP;
END
$$;
CREATE POLICY own ON palaver.term TO palaver_app
    USING (team = (SELECT palaver.team())) WITH CHECK (team = (SELECT palaver.team()));

-- PostgreSQL does not use the GIN index under row security, because `@@` is not leakproof. The functions below search
-- as a role that may read only the columns that they need, and return only numbers of entries and items.
CREATE POLICY find ON palaver.entry FOR SELECT TO palaver_finder USING (true);
GRANT SELECT (team, id, item, person, visibility, at, tsv) ON palaver.entry TO palaver_finder;
CREATE POLICY find ON palaver.embedding FOR SELECT TO palaver_finder USING (true);
GRANT SELECT (team) ON palaver.embedding TO palaver_finder;

-- Return the nearest vectors, best first, under row security. The plan knows the team, so that it can use the team's
-- own HNSW index if there is one (see `vector_indexes.py`); otherwise all vectors of the team are compared.
CREATE FUNCTION palaver.nearest_vectors(query halfvec, named text, most int)
    RETURNS TABLE (item bigint, event bigint, part smallint, similarity float8)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, public, palaver, pg_temp
    SET plan_cache_mode = force_custom_plan SET enable_sort = off
    SET hnsw.ef_search = 400 SET hnsw.iterative_scan = strict_order
    AS $$
    DECLARE
        own uuid := palaver.team();
    BEGIN
        RETURN QUERY SELECT e.item, e.event, e.part, 1 - (e.vec <=> query) FROM palaver.embedding e
            WHERE e.team = own AND e.model = named ORDER BY e.vec <=> query LIMIT most;
    END
    $$;
REVOKE ALL ON FUNCTION palaver.nearest_vectors FROM PUBLIC;
GRANT EXECUTE ON FUNCTION palaver.nearest_vectors TO palaver_app;

RESET ROLE;
GRANT CREATE ON SCHEMA palaver TO palaver_finder;

SET ROLE palaver_finder;

-- Return the entries with the highest sum of the weights of the probes that match, and that match `needed`.
-- Each probe is a statement of its own, and its plan does not depend on the probe.
CREATE FUNCTION palaver.text_candidates(probes text[], weights real[], needed text, since bigint, until bigint, most int)
    RETURNS TABLE (entry bigint, score real)
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, palaver, pg_temp
    SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_indexscan = off
    AS $$
    DECLARE
        matching bigint[];
        every bigint[] := '{}';
        points real[] := '{}';
        own uuid := palaver.team();
        reader uuid := palaver.person();
        query tsquery;
    BEGIN
        IF own IS NULL OR reader IS NULL THEN
            RETURN;
        END IF;
        FOR number IN 1..cardinality(probes) LOOP
            query := CASE WHEN needed = '' THEN probes[number] ELSE probes[number] || '&' || needed END;
            SELECT array_agg(e.id) INTO matching FROM palaver.entry e
            WHERE e.team = own AND e.tsv @@ query AND (e.visibility = 2 OR e.person = reader)
                AND e.at + 0 >= since AND e.at + 0 < until;
            every := every || matching;
            points := points || array_fill(weights[number], ARRAY[coalesce(cardinality(matching), 0)]);
        END LOOP;
        RETURN QUERY SELECT id, sum(weight)::real AS total FROM unnest(every, points) AS found (id, weight)
            GROUP BY id ORDER BY total DESC, id LIMIT most;
    END
    $$;

-- Return items with an entry that matches `needed`.
CREATE FUNCTION palaver.matching_items(needed text, since bigint, until bigint)
    RETURNS TABLE (item bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, palaver, pg_temp
    AS $$
        SELECT DISTINCT e.item FROM palaver.entry e
        WHERE e.team = palaver.team() AND (e.visibility = 2 OR e.person = palaver.person())
            AND (needed = '' OR e.tsv @@ needed::tsquery) AND e.at + 0 >= since AND e.at + 0 < until
    $$;

-- Return teams with at least so many vectors, for the owner, who sees no row.
CREATE FUNCTION palaver.large_teams(vectors bigint)
    RETURNS TABLE (team uuid)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, palaver, pg_temp
    AS $$ SELECT e.team FROM palaver.embedding e GROUP BY e.team HAVING count(*) >= vectors $$;

REVOKE ALL ON FUNCTION palaver.text_candidates, palaver.matching_items, palaver.large_teams FROM PUBLIC;
GRANT EXECUTE ON FUNCTION palaver.text_candidates, palaver.matching_items TO palaver_app;
GRANT EXECUTE ON FUNCTION palaver.large_teams TO palaver_owner;

RESET ROLE;
REVOKE CREATE ON SCHEMA palaver FROM palaver_finder;
