"""Rent a machine and give it back: every step is in the ledger before it is taken."""
