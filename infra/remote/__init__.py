"""A host over SSH: connections, keys, commands, and the code that is copied there."""
