-- The packaged model embeds tokens from version 2 on and gives the same vectors as version 1. The old vectors stay
-- searchable until everything is embedded again.
UPDATE vector SET model = 'all-MiniLM-L6-v2-int8/2' WHERE model = 'all-MiniLM-L6-v2-int8/1';
UPDATE item SET embedded = NULL WHERE embedded = 'all-MiniLM-L6-v2-int8/1';
