-- Messages of an exchange share vectors, and thinking has none. The old vectors stay searchable until they are replaced.
UPDATE item SET embedded = NULL WHERE key IN (
    SELECT v.item FROM vector v JOIN exchange e ON e.item = v.item WHERE v.part > 0
);
