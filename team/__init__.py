"""What do teams share? A server on PostgreSQL, and what the machines of its members send to it."""
