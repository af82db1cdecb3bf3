"""Tests of what the command line prints."""
