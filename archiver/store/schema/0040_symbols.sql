-- Index of the names of code units by their last part, without case and underscores.
CREATE INDEX chunk_symbol ON chunk (
    lower(replace(substr(name, 1 + length(rtrim(name, replace(name, '.', '')))), '_', ''))
) WHERE name <> '';
