"""Series out of the lake, and what changed in them."""
