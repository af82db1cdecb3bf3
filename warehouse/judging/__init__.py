"""Verdicts: rules run by great-expectations, and what earlier nights answered."""
