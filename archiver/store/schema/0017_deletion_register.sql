-- `register` has the number of the last write of the register file that the tables include; `told` counts what a
-- deletion covers.
CREATE TABLE register (seq INTEGER NOT NULL);
ALTER TABLE forgetting ADD COLUMN told TEXT NOT NULL DEFAULT '{}';
