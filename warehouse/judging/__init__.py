"""Verdicts: rules run by great-expectations, and comparison with the answers of earlier nights."""
