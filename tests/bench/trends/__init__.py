"""Tests of the segmenter, the night judge and the causes of changes."""
