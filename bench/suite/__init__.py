"""Suite files: their values, and the prompts and traces that they name."""
