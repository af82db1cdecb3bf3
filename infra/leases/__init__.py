"""Rent a machine and release it: every step is written to the ledger before it is taken."""
