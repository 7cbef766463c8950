-- Lines of the whole unit of a chunk. Units with equal names differ in their first line.
ALTER TABLE chunk ADD COLUMN unit_start INTEGER NOT NULL DEFAULT 0;
ALTER TABLE chunk ADD COLUMN unit_end INTEGER NOT NULL DEFAULT 0;
