"""Model weights on a machine: from a hub, from a bucket, or generated."""
