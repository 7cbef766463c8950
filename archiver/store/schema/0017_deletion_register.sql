-- `register` contains the number of the last write of the register file that these tables include. `told` contains the
-- numbers of items that a deletion covers.
CREATE TABLE register (seq INTEGER NOT NULL);
ALTER TABLE forgetting ADD COLUMN told TEXT NOT NULL DEFAULT '{}';
