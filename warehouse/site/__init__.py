"""The static site: one page for each night and each series, what changed, and files for programs."""
