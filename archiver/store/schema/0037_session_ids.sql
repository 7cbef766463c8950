-- Index of session IDs, to find their shortest unambiguous beginnings.
CREATE INDEX session_native_id ON session (native_id);
