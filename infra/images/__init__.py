"""Golden images: snapshots of a machine's disk with the software installed."""
