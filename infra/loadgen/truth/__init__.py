"""A server whose every write is known: built here from C, run beside a load client, read when it ends."""
