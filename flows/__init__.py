"""The story of a night, and the command line that starts it."""
