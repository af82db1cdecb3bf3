"""The static site: one page for each night and each series, and what changed."""
