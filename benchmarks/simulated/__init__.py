"""Runs simulated from first principles, and a writer of each tool's files for them."""
