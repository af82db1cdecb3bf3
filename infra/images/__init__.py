"""Golden images: a machine with the software on it, kept as a snapshot."""
