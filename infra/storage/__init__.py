"""Run folders on disk, and their copies in a bucket."""
