"""Models on a machine: downloaded from a hub or a bucket, or generated, and verified."""
