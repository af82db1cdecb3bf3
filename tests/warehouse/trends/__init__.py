"""Tests of series out of the lake, and of what changed in them."""
