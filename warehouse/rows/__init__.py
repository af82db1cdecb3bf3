"""Rows for the tables, from run folders and from imported claims."""
