-- The twelfth value of a turn lists the files that it wrote.
CREATE TABLE edited (
    exchange INTEGER NOT NULL REFERENCES exchange ON DELETE CASCADE,
    path TEXT NOT NULL,
    PRIMARY KEY (exchange, path)
) WITHOUT ROWID;
INSERT OR IGNORE INTO edited (exchange, path)
    SELECT exchange.item, written.value
    FROM exchange, json_each(CAST(exchange.turns AS TEXT)) AS turn, json_each(turn.value, '$[11]') AS written;
