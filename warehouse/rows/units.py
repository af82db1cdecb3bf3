"""Factors between the units of code (seconds) and of the lake (milliseconds)."""

MS_PER_S = 1e3
S_PER_NS = 1e-9
S_PER_HOUR = 3600.0
TOKENS_PER_MTOK = 1e6
