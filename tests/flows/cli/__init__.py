"""Tests of the command line's commands."""
