"""Inference engines on a host: install, start, watch and stop them, and measure the machine with their Python."""
