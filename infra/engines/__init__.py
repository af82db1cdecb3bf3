"""Inference engines on a host: install, start, watch and stop them."""
