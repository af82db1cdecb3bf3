"""The error of load clients: measured against a known truth, and kept as limits."""
