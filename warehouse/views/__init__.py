"""One .sql file a question."""
