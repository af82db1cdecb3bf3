"""Histories of other people's nights: long tables, github-action-benchmark pages, dated result files."""
