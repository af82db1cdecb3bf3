"""What changed in a series of nights, since when, by how much and why: segmenter, night judge, causes."""
