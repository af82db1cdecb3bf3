"""Our own expectations about the tables of a night, in great-expectations' own JSON: a file for each table."""
