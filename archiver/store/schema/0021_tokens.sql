-- Binary embeddings of the tokens of a text. With a rowid, unlike `vector`: without one, each row of a kilobyte takes a
-- page.
CREATE TABLE token (
    item INTEGER NOT NULL,
    part INTEGER NOT NULL,
    signs BLOB NOT NULL,
    PRIMARY KEY (item, part),
    FOREIGN KEY (item, part) REFERENCES vector (item, part) ON DELETE CASCADE
);
