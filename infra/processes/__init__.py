"""Processes that we start: detached, cancelled, locked, and known to be alive."""
