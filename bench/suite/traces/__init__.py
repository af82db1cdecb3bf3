"""Recorded traces: when requests arrived, how long they were, and which blocks of their prompts were the same."""
