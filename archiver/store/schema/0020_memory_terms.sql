-- Few memories have a term, so the invalid ones are counted separately.
CREATE INDEX memory_term ON memory (state, valid_until, valid_from)
    WHERE valid_until IS NOT NULL OR valid_from IS NOT NULL;
