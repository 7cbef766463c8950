"""What does the server of a team answer? Items of its members, searched in PostgreSQL."""
