"""The search for the fastest flags of an engine: its nights, their suites, and its budget."""
