"""Tests of the next probe of a search, and of what its probes show."""
