"""Saturation sweeps and goodput searches: which load to probe next, and what the probes show."""
